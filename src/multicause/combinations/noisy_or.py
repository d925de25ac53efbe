"""The noisy-or of Bayesian networks: each active cause may set a feature to one, independently of the others."""

from functools import partial, reduce
from numbers import Real
from typing import Any

import jax.numpy as jnp
import numpy as np

from multicause.arrays import Array, matmul, rows_at
from multicause.combinations.base import Combination, random_positive
from multicause.compatibility import Rule
from multicause.records import Moments
from multicause.states.state_list import StateList


class NoisyOr(Combination):
    """The noisy-or w̄_d(s, W) = 1 − Π_h (1 − W_hd)^{s_h}: the probability that an active cause sets feature d to one.

    Each active cause has full credit for a mean: the probabilities with which causes have set the feature to one are
    computed by the update :class:`multicause.updates.ActivationShares`.

    Parameters
    ----------
    upper : float, default=0.999
        Upper bound of components, so that a feature that is zero does not make a cause impossible.
    """

    rule = Rule.NOISY_OR

    def __init__(self, *, upper: float = 0.999) -> None:
        self.upper = upper

    @property
    def bounds(self) -> tuple[float, float]:  # type: ignore[override]
        """Bounds of the components, probabilities from zero to the upper bound."""
        return 0.0, float(self.upper)

    def validate(self) -> None:
        """Raise ValueError unless the upper bound is a probability below one."""
        if not (isinstance(self.upper, Real) and 0 < self.upper < 1):
            raise ValueError(f"upper of NoisyOr must be a probability below 1; got {self.upper!r}.")

    def combine(self, components: Array, tree: StateList, empty: Array | None = None) -> Array:
        """Return the noisy-or of all states, plus the empty state's mean: (S, D).

        Members of sparse states are added one by one, w̄ ← w̄ + (1 − w̄) W_hd, which is faster than exp and log.
        """
        if tree.sparsest_first and tree.strengths == (1,):
            weights = jnp.concatenate([self.project(components), jnp.zeros_like(components[:1])])
            means = reduce(
                lambda mean, more: mean + (1 - mean) * more, map(partial(rows_at, weights), tree.padded_members().T)
            )
        else:
            means = self.mean(components, jnp.asarray(tree.states(), dtype=components.dtype))
        return means if empty is None else means + empty

    def shift(self, components: Array, origin: Array) -> Array:
        """Return the components unchanged: the empty state's mean is added after the product."""
        return components

    def mean(self, components: Array, causes: Array) -> Array:
        """Return 1 − exp(s·log(1 − W)) of given causes: (n, D)."""
        return -jnp.expm1(matmul(causes, jnp.log1p(-jnp.minimum(components, self.upper))))

    def pull_states(self, components: Array, states: Array, values: Array, temperature: Array) -> Array:
        """Return Sᵀv, in which each active cause receives the whole value of a state."""
        return matmul(states.T, values)

    def overlap(self, states: Any) -> Any:
        """Return the number |s| of active causes of each state: (S, 1)."""
        return states.sum(axis=1, keepdims=True)

    def initialize(self, generator: np.random.RandomState, n_components: int, moments: Moments) -> np.ndarray:
        """Return positive random numbers around the data's mean: (H, D)."""
        return self.reflect(random_positive(generator, n_components, moments))
