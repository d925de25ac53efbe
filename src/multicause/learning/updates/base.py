"""The interface of an update of the components, and the choice of one that serves the other parts."""

from __future__ import annotations

from abc import abstractmethod

from multicause.arrays import Array
from multicause.combinations.base import Combination
from multicause.compatibility import unmet
from multicause.model import Model, Parameters
from multicause.noises.base import Noise
from multicause.parts import Part, resolve
from multicause.posteriors.base import Inference, Posterior
from multicause.priors.base import Prior


class Update(Part):
    """How the components W move in an M-step, and which sums over the data it needs for that."""

    #: Whether the bound cannot fall at a fixed temperature, rounding apart.
    monotone = False

    def is_monotone(self, combination: Combination) -> bool:
        """Whether it is so for this combination."""
        return self.monotone

    @abstractmethod
    def statistics(self, model: Model, parameters: Parameters, inference: Inference) -> dict[str, Array]:
        """Sums over rows."""

    @abstractmethod
    def maximize(self, model: Model, parameters: Parameters, statistics: dict[str, Array]) -> Array:
        """New components: (H, D)."""


def of_features(active: Array) -> Array:
    """Return how often causes are active (H,), or (H, D) where values may be missing, for division of (H, D)."""
    return active[:, None] if active.ndim == 1 else active


def choose_update(
    prior: Prior, combination: Combination, noise: Noise, posterior: Posterior, update: str | Update | None = None
) -> Update:
    """Return the given update, or else the first in order of preference with which the other parts fit together.

    If they do with none, it is one with which they do best.
    """
    from multicause.learning.updates import NAMES

    if update is not None:
        return resolve(update, NAMES, "update", Update)

    def reasons(candidate: Update) -> int:
        return len(list(unmet(Model(prior, combination, noise, posterior, candidate, frozenset()))))

    return min((cls() for cls in NAMES.values()), key=reasons)
