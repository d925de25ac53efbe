"""Causes that add up: ET10 eq. 25."""

import jax.numpy as jnp
import numpy as np

from multicause.arrays import Array, matmul
from multicause.combinations.base import Combination, random_positive
from multicause.model import Moments
from multicause.posteriors.state_tree import StateTree


class Sum(Combination):
    """w̄_d(s, W) = Σ_h s_h W_hd.

    Parameters
    ----------
    nonnegative : bool, default=False
        Whether components must not be negative.
    """

    linear = True

    def __init__(self, *, nonnegative: bool = False) -> None:
        self.nonnegative = nonnegative

    def combine(self, components: Array, tree: StateTree, empty: Array | None = None) -> Array:
        """S·W plus the empty state's mean, in double precision: it may leave far less than both are."""
        if empty is None:
            return matmul(jnp.asarray(tree.states(), dtype=components.dtype), components)
        sums = matmul(jnp.asarray(tree.states(), dtype=jnp.float64), components.astype(jnp.float64))
        return (sums + empty).astype(components.dtype)

    def shift(self, components: Array, origin: Array) -> Array:
        """The same: what the empty state's mean loses, all others lose too."""
        return components

    def mean(self, components: Array, causes: Array) -> Array:
        """s·W."""
        return matmul(causes, components)

    def pull(self, components: Array, tree: StateTree, values: Array, temperature: Array) -> Array:
        """Each active cause has full credit: Sᵀv."""
        return matmul(jnp.asarray(tree.states().T, dtype=values.dtype), values)

    def overlap(self, tree: StateTree) -> np.ndarray:
        """|s|."""
        return tree.states().sum(axis=1, keepdims=True)

    def initialize(self, generator: np.random.RandomState, n_components: int, moments: Moments) -> np.ndarray:
        """A third of the data's standard deviation around its mean (the proportions of ET10 §4.3.1)."""
        if self.nonnegative:
            return random_positive(generator, n_components, moments)
        deviation = np.sqrt(moments.variance)
        return moments.mean / 2 + deviation / 3 * generator.normal(size=(n_components, len(moments.mean)))
