"""The interface of an update of the components."""

from __future__ import annotations

from abc import abstractmethod

import jax.numpy as jnp

from multicause.arrays import Array
from multicause.combinations.base import Combination
from multicause.expectations import Inference
from multicause.generative import GenerativeModel
from multicause.parts import Part
from multicause.records import Parameters


class Update(Part):
    """The M-step of the components W, and the sums over the data that it needs."""

    #: Whether the bound never falls at a fixed temperature, except by rounding errors.
    monotone = False

    def is_monotone(self, combination: Combination) -> bool:
        """Return whether the update never lowers the bound with this combination."""
        return self.monotone

    @abstractmethod
    def statistics(self, model: GenerativeModel, parameters: Parameters, inference: Inference) -> dict[str, Array]:
        """Return the sums over rows that :meth:`maximize` needs."""

    @abstractmethod
    def maximize(self, model: GenerativeModel, parameters: Parameters, statistics: dict[str, Array]) -> Array:
        """Return new components, given the statistics: (H, D)."""


def shares_of_active(amounts: Array, active: Array, components: Array) -> Array:
    """Return amounts (H, D) per active row of each cause, (H,) or (H, D); unused causes keep their components."""
    tiny, active = jnp.finfo(components.dtype).tiny, of_features(active)
    shares = (amounts / jnp.maximum(active, tiny)).astype(components.dtype)
    return jnp.where(active > tiny, shares, components)


def of_features(active: Array) -> Array:
    """Return counts of active causes (H,), or (H, D) if values may be missing, in a shape that divides (H, D)."""
    return active[:, None] if active.ndim == 1 else active
