"""Causes that add up: ET10 eq. 25."""

import jax.numpy as jnp
import numpy as np

from multicause.arrays import Array, matmul
from multicause.combinations.base import Combination, random_positive
from multicause.compatibility import Rule
from multicause.model import Moments
from multicause.states.state_list import StateList


class Sum(Combination):
    """w̄_d(s, W) = Σ_h s_h W_hd, or min{Σ_h s_h W_hd, upper}.

    Parameters
    ----------
    nonnegative : bool, default=False
        Whether components must not be negative.
    upper : float, optional
        Largest mean, at which sums are cut off, and largest component: 1.0 for means that are probabilities. By default
        there is none. Where a sum would be larger, no cause has credit for its mean.
    """

    def __init__(self, *, nonnegative: bool = False, upper: float | None = None) -> None:
        self.nonnegative = nonnegative
        self.upper = upper

    @property
    def rule(self) -> Rule:  # type: ignore[override]
        """Whether sums are cut off."""
        return Rule.SUM if self.upper is None else Rule.CLIPPED_SUM

    @property
    def bounds(self) -> tuple[float, float]:  # type: ignore[override]
        """Zero, if no component may be negative, and the upper bound."""
        return (0.0 if self.nonnegative else -np.inf), (np.inf if self.upper is None else float(self.upper))

    def within(self, means: tuple[float, float]) -> "Sum":
        """Return the same without negative components where means must not be negative, and with their upper bound."""
        upper = min(means[1], self.bounds[1])
        return Sum(nonnegative=self.nonnegative or means[0] >= 0, upper=upper if np.isfinite(upper) else None)

    def combine(self, components: Array, tree: StateList, empty: Array | None = None) -> Array:
        """S·W plus the empty state's mean, in double precision: it may leave far less than both are."""
        if empty is None:
            return self._cut(matmul(jnp.asarray(tree.states(), dtype=components.dtype), components))
        sums = matmul(jnp.asarray(tree.states(), dtype=jnp.float64), components.astype(jnp.float64))
        sums = (sums + empty).astype(components.dtype)
        return sums if self.upper is None else jnp.minimum(sums, self.upper + empty)

    def shift(self, components: Array, origin: Array) -> Array:
        """The same: what the empty state's mean loses, all others lose too."""
        return components

    def mean(self, components: Array, causes: Array) -> Array:
        """s·W."""
        return self._cut(matmul(causes, components))

    def _cut(self, sums: Array) -> Array:
        return sums if self.upper is None else jnp.minimum(sums, self.upper)

    def pull(self, components: Array, tree: StateList, values: Array, temperature: Array) -> Array:
        """Each active cause has full credit, Sᵀv, but for sums that are cut off."""
        states = jnp.asarray(tree.states(), dtype=values.dtype)
        if self.upper is not None:
            values = jnp.where(matmul(states, components) <= self.upper, values, 0)
        return matmul(states.T, values)

    def overlap(self, tree: StateList) -> np.ndarray:
        """|s|."""
        return tree.states().sum(axis=1, keepdims=True)

    def initialize(self, generator: np.random.RandomState, n_components: int, moments: Moments) -> np.ndarray:
        """A third of the data's standard deviation around its mean (the proportions of ET10 §4.3.1)."""
        if self.nonnegative:
            return self.reflect(random_positive(generator, n_components, moments))
        deviation = np.sqrt(moments.variance)
        draws = moments.mean / 2 + deviation / 3 * generator.normal(size=(n_components, len(moments.mean)))
        return self.reflect(draws)
