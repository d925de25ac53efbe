"""The sum of active causes, optionally with an upper bound: ET10 eq. 25."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from multicause.arrays import Array, matmul
from multicause.combinations.base import Combination, random_positive, random_signed
from multicause.compatibility import Rule
from multicause.records import Moments
from multicause.states.state_list import StateList


class Sum(Combination):
    """The sum w̄_d(s, W) = Σ_h s_h W_hd, or min{Σ_h s_h W_hd, upper}.

    Parameters
    ----------
    nonnegative : bool, default=False
        Whether components must be non-negative.
    upper : float, optional
        Upper bound at which means are clipped, and of components: 1.0 for means that are probabilities. By default
        there is none. If a sum exceeds it, no cause has credit for the mean.
    """

    def __init__(self, *, nonnegative: bool = False, upper: float | None = None) -> None:
        self.nonnegative = nonnegative
        self.upper = upper

    @property
    def rule(self) -> Rule:  # type: ignore[override]
        """Kind of rule, which says whether sums are clipped."""
        return Rule.SUM if self.upper is None else Rule.CLIPPED_SUM

    @property
    def bounds(self) -> tuple[float, float]:  # type: ignore[override]
        """Bounds of the components: zero if they must be non-negative, and the upper bound."""
        return (0.0 if self.nonnegative else -np.inf), (np.inf if self.upper is None else float(self.upper))

    def within(self, means: tuple[float, float]) -> "Sum":
        """Return this rule with the upper bound of means, and non-negative components if means must be non-negative."""
        upper = min(means[1], self.bounds[1])
        return Sum(nonnegative=self.nonnegative or means[0] >= 0, upper=upper if np.isfinite(upper) else None)

    def combine(self, components: Array, tree: StateList, empty: Array | None = None) -> Array:
        """Return S·W plus the empty state's mean, added in double precision because they may cancel: (S, D)."""
        if empty is None:
            return self._cut(matmul(jnp.asarray(tree.states(), dtype=components.dtype), components))
        sums = matmul(jnp.asarray(tree.states(), dtype=jnp.float64), components.astype(jnp.float64))
        sums = (sums + empty).astype(components.dtype)
        return sums if self.upper is None else jnp.minimum(sums, self.upper + empty)

    def shift(self, components: Array, origin: Array) -> Array:
        """Return the components unchanged: the empty state's mean shifts all means alike."""
        return components

    def mean(self, components: Array, causes: Array) -> Array:
        """Return s·W of given causes, clipped at the upper bound: (n, D)."""
        return self._cut(matmul(causes, components))

    def _cut(self, sums: Array) -> Array:
        return sums if self.upper is None else jnp.minimum(sums, self.upper)

    def pull_states(self, components: Array, states: Array, values: Array, temperature: Array) -> Array:
        """Return Sᵀv, in which each active cause has full credit, except for clipped sums."""
        if self.upper is not None:
            values = jnp.where(matmul(states, components) <= self.upper, values, 0)
        return matmul(states.T, values)

    def overlap(self, states: Any) -> Any:
        """Return the number |s| of active causes of each state: (S, 1)."""
        return states.sum(axis=1, keepdims=True)

    def initialize(self, generator: np.random.RandomState, n_components: int, moments: Moments) -> np.ndarray:
        """Return random numbers of both signs, or positive ones if components must be non-negative: (H, D)."""
        if self.nonnegative:
            return self.reflect(random_positive(generator, n_components, moments))
        return self.reflect(random_signed(generator, n_components, moments))
