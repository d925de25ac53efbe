"""Causes that each may switch a feature on, independently of each other: the noisy-or of Bayesian networks."""

import jax.numpy as jnp
import numpy as np

from multicause.arrays import Array, matmul
from multicause.combinations.base import Combination, random_positive
from multicause.compatibility import Rule
from multicause.model import Moments
from multicause.states.state_list import StateList


class NoisyOr(Combination):
    """w̄_d(s, W) = 1 − Π_h (1 − W_hd)^{s_h}: the probability that at least one active cause switches feature d on.

    Each active cause has full credit for a mean: which of them have switched the feature on is a question of
    probabilities, which the update :class:`multicause.updates.ActivationShares` answers.

    Parameters
    ----------
    upper : float, default=0.999
        Largest component, so that a feature that is off does not make a cause impossible.
    """

    rule = Rule.NOISY_OR

    def __init__(self, *, upper: float = 0.999) -> None:
        self.upper = upper

    @property
    def bounds(self) -> tuple[float, float]:  # type: ignore[override]
        """Probabilities from zero to the upper bound."""
        return 0.0, float(self.upper)

    def validate(self) -> None:
        """Raise ValueError for an upper bound that is no probability below one."""
        if not 0 < self.upper < 1:
            raise ValueError(f"upper of NoisyOr must be a probability below 1; got {self.upper!r}.")

    def combine(self, components: Array, tree: StateList, empty: Array | None = None) -> Array:
        """1 − exp(S·log(1 − W)), plus the empty state's mean."""
        means = self.mean(components, jnp.asarray(tree.states(), dtype=components.dtype))
        return means if empty is None else means + empty

    def shift(self, components: Array, origin: Array) -> Array:
        """Return the components as they are: the empty state's mean is added after the product."""
        return components

    def mean(self, components: Array, causes: Array) -> Array:
        """1 − exp(s·log(1 − W))."""
        return -jnp.expm1(matmul(causes, jnp.log1p(-jnp.minimum(components, self.upper))))

    def pull(self, components: Array, tree: StateList, values: Array, temperature: Array) -> Array:
        """Return Sᵀv: each active cause gets the whole value of a state."""
        return matmul(jnp.asarray(tree.states(), dtype=values.dtype).T, values)

    def overlap(self, tree: StateList) -> np.ndarray:
        """|s|."""
        return tree.states().sum(axis=1, keepdims=True)

    def initialize(self, generator: np.random.RandomState, n_components: int, moments: Moments) -> np.ndarray:
        """Positive numbers around the data's mean."""
        return self.reflect(random_positive(generator, n_components, moments))
