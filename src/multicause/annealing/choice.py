"""The annealing schedule that a constructor argument stands for."""

from multicause.annealing.base import Annealing
from multicause.annealing.linear import NoAnnealing
from multicause.parts import resolve


def choose_annealing(annealing: str | Annealing | None) -> Annealing:
    """Return the user's annealing schedule, or ``NoAnnealing()`` for None."""
    return NoAnnealing() if annealing is None else resolve(annealing, {}, "annealing", Annealing)
