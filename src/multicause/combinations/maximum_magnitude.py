"""The rule of maximum magnitude: the active cause that is farthest from zero determines the mean, with its sign."""

import jax.numpy as jnp
import numpy as np

from multicause.arrays import Array
from multicause.combinations.base import random_signed
from multicause.combinations.maximum import Maximum
from multicause.compatibility import Rule
from multicause.records import Moments
from multicause.states.state_list import StateList


class MaximumMagnitude(Maximum):
    """The rule w̄_d(s, W) = W_hd of the active cause h with the largest |W_hd|, for components of both signs.

    Causes of both signs occlude each other, as in MMCA (J. Bornschein, M. Henniges and J. Lücke, Are V1 Simple Cells
    Optimized for Visual Occlusions? A Comparative Study, PLoS Computational Biology 9 (2013) e1003062). Where no
    component is negative, it is :class:`Maximum`. Of two causes with the same magnitude and different signs, the
    positive one is seen.

    Parameters
    ----------
    credit, least_temperature
        As for :class:`Maximum`; credit is shared by magnitudes.
    """

    rule = Rule.MAXIMUM_MAGNITUDE
    upper = None

    def __init__(self, *, credit: str = "power", least_temperature: float = 1.02) -> None:
        self.credit = credit
        self.least_temperature = least_temperature

    @property
    def bounds(self) -> tuple[float, float]:  # type: ignore[override]
        """Bounds of the components: none."""
        return -np.inf, np.inf

    def within(self, means: tuple[float, float]) -> "MaximumMagnitude":
        """Return this rule, which has no bounds."""
        return self

    def combine(self, components: Array, tree: StateList, empty: Array | None = None) -> Array:
        """Return the larger one of the largest positive and negative weights, plus the empty state's mean: (S, D)."""
        above, below = (super(MaximumMagnitude, self).combine(each, tree) for each in _parts(components))
        means = jnp.where(above >= below, above, -below)
        return means if empty is None else means + empty

    def shift(self, components: Array, origin: Array) -> Array:
        """Return the components unchanged: the empty state's mean is added after the comparison."""
        return components

    def mean(self, components: Array, causes: Array) -> Array:
        """Return s_h W_hd of the largest magnitude, for causes (n, H) that are not negative: (n, D)."""
        above, below = (super(MaximumMagnitude, self).mean(each, causes) for each in _parts(components))
        return jnp.where(above >= below, above, -below)

    def _strengths(self, components: Array) -> Array:
        """Return the magnitudes, of which the largest wins."""
        return jnp.abs(components)

    def initialize(self, generator: np.random.RandomState, n_components: int, moments: Moments) -> np.ndarray:
        """Return random numbers of both signs: (H, D)."""
        return random_signed(generator, n_components, moments)


def _parts(components: Array) -> tuple[Array, Array]:
    """Return the positive part of the components and that of their negatives."""
    return jnp.maximum(components, 0), jnp.maximum(-components, 0)
