"""The interface of a combination: how active causes make a mean."""

from abc import abstractmethod
from typing import Any

import jax.numpy as jnp
import numpy as np

from multicause.arrays import Array
from multicause.model import Moments
from multicause.parts import Part
from multicause.posteriors.state_tree import StateTree


class Combination(Part):
    """w̄_d(s, W), and its derivative with respect to W_hd, which is the credit of cause h for dimension d."""

    #: Whether w̄ is linear in W and s.
    linear = False
    #: Whether components must not be negative.
    nonnegative = False
    #: Whether each mean is that of one cause alone, so that increasing functions can be taken of causes, not of states.
    selects = False

    @abstractmethod
    def combine(self, components: Array, tree: StateTree, empty: Array | None = None) -> Array:
        """w̄(s) of all states of a tree: (S, D). The state without causes has the mean ``empty`` (D,), by default zero.

        With ``shift(components, o)`` and an empty state of −o, these are all means relative to o.
        """

    @abstractmethod
    def shift(self, components: Array, origin: Array) -> Array:
        """Components that make means relative to an origin (D,), if the state without causes has its negative."""

    def relative_means(self, components: Array, tree: StateTree, origin: Array | None) -> Array:
        """w̄(s) of all states of a tree relative to an origin, if there is one: (S, D)."""
        if origin is None:
            return self.combine(components, tree)
        return self.combine(self.shift(components, origin), tree, -origin)

    def natural(self, noise: Any, components: Array, tree: StateTree, parameters: dict[str, Array]) -> Array:
        """Return η(w̄(s)) of all states of a tree, for noise without an origin: (S, D)."""
        if not self.selects:
            return noise.natural(self.combine(components, tree), parameters)
        nothing = noise.natural(jnp.zeros_like(components[0]), parameters)
        return self.combine(noise.natural(components, parameters), tree, nothing)

    @abstractmethod
    def mean(self, components: Array, causes: Array) -> Array:
        """w̄ of given causes (n, H), which may be fractions such as posterior means: (n, D)."""

    @abstractmethod
    def pull(self, components: Array, tree: StateTree, values: Array, temperature: Array) -> Array:
        """Σ_s ∂w̄_d(s)/∂W_hd · v_d(s) for values (..., S, D): (..., H, D)."""

    @abstractmethod
    def overlap(self, tree: StateTree) -> np.ndarray:
        """Σ_h ∂w̄_d(s)/∂W_hd, how many causes share one mean, for each state: (S, 1)."""

    @abstractmethod
    def initialize(self, generator: np.random.RandomState, n_components: int, moments: Moments) -> np.ndarray:
        """Random components of the data's scale: (H, D)."""


def random_positive(generator: np.random.RandomState, n_components: int, moments: Moments) -> np.ndarray:
    """MCA08 appendix E.1: Gaussian numbers of unit mean and standard deviation 1/3, times the data's mean.

    Where the data's mean is not positive, half its standard deviation is the scale instead. Absolute values
    keep the rare negative draw from starting as a dead pixel.
    """
    mean, deviation = float(np.mean(moments.mean)), np.sqrt(moments.variance)
    scale = mean if mean > 0 else deviation / 2
    draws = np.abs(generator.normal(1, 1 / 3, (n_components, moments.mean.shape[-1])))
    return scale * draws / draws.mean()
