"""The interface of an update of the components, and the choice of one that serves the other parts."""

from __future__ import annotations

from abc import abstractmethod

from multicause.arrays import Array
from multicause.combinations.base import Combination
from multicause.model import Model, Parameters
from multicause.parts import Part
from multicause.posteriors.base import Inference


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
