"""The interface of a combination, the rule by which active causes determine a mean."""

from abc import abstractmethod
from typing import Any, Self

import jax.numpy as jnp
import numpy as np

from multicause.arrays import Array
from multicause.compatibility import Rule
from multicause.noises.base import Noise
from multicause.parts import Part
from multicause.records import Moments
from multicause.states.state_list import StateList


class Combination(Part):
    """The mean w̄_d(s, W) and its derivative with respect to W_hd, the credit of cause h for dimension d."""

    #: Kind of rule by which active causes determine a mean.
    rule = Rule.OTHER
    #: Smallest and largest value of components, and of means if causes are binary.
    bounds: tuple[float, float] = (-np.inf, np.inf)

    @abstractmethod
    def combine(self, components: Array, tree: StateList, empty: Array | None = None) -> Array:
        """Return w̄(s) of all states of a tree: (S, D). The empty state has the mean ``empty`` (D,), by default zero.

        With ``shift(components, o)`` and an empty state of −o, these are all means relative to o.
        """

    @abstractmethod
    def shift(self, components: Array, origin: Array) -> Array:
        """Return components whose means are relative to an origin (D,), if the empty state has the mean −origin."""

    def relative_means(self, components: Array, tree: StateList, origin: Array | None) -> Array:
        """Return w̄(s) of all states of a tree relative to an origin, if there is one: (S, D)."""
        if origin is None:
            return self.combine(components, tree)
        return self.combine(self.shift(components, origin), tree, -origin)

    def natural(self, noise: Noise, components: Array, tree: StateList, parameters: dict[str, Array]) -> Array:
        """Return η(w̄(s)) of all states of a tree, for noise without an origin: (S, D).

        Under the max rule, each mean is the weight of one cause, so that increasing functions can be applied to
        components.
        """
        if self.rule != Rule.MAXIMUM:
            return noise.natural(self.combine(components, tree), parameters)
        nothing = noise.natural(jnp.zeros_like(components[0]), parameters)
        return self.combine(noise.natural(components, parameters), tree, nothing)

    @abstractmethod
    def mean(self, components: Array, causes: Array) -> Array:
        """Return w̄ of given causes (n, H), which may be fractions such as posterior means: (n, D)."""

    def pull(self, components: Array, tree: StateList, values: Array, temperature: Array) -> Array:
        """Return Σ_s ∂w̄_d(s)/∂W_hd · v_d(s) over the states of a tree, for values (..., S, D): (..., H, D)."""
        return self.pull_states(components, jnp.asarray(tree.states(), dtype=values.dtype), values, temperature)

    @abstractmethod
    def pull_states(self, components: Array, states: Array, values: Array, temperature: Array) -> Array:
        """Return Σ_s ∂w̄_d(s)/∂W_hd · v_d(s) over any states (S, H), for values (..., S, D): (..., H, D)."""

    @abstractmethod
    def overlap(self, states: Any) -> Any:
        """Return Σ_h ∂w̄_d(s)/∂W_hd, the number of causes that share one mean, for each state (S, H): (S, 1)."""

    @property
    def linear(self) -> bool:
        """Whether w̄ is linear in W and s."""
        return self.rule == Rule.SUM

    @property
    def bounded(self) -> bool:
        """Whether components have a lower or an upper bound."""
        return bool(np.isfinite(self.bounds).any())

    def within(self, means: tuple[float, float]) -> Self:
        """Return this rule with bounds that keep means between two numbers, if it has such settings."""
        return self

    def project(self, components: Any) -> Any:
        """Return the nearest components within the bounds."""
        return components.clip(*self.bounds) if self.bounded else components

    def reflect(self, components: Any) -> Any:
        """Return components with values beyond a bound reflected at it, so that random ones do not accumulate there."""
        lower, upper = self.bounds
        components = lower + abs(components - lower) if np.isfinite(lower) else components
        components = upper - abs(upper - components) if np.isfinite(upper) else components
        return self.project(components)

    def validate(self) -> None:
        """Raise ValueError if the upper bound is not positive."""
        if not self.bounds[1] > max(self.bounds[0], 0):
            raise ValueError(
                f"upper of {type(self).__name__} must be a positive number, or None; got {self.bounds[1]!r}."
            )

    @abstractmethod
    def initialize(self, generator: np.random.RandomState, n_components: int, moments: Moments) -> np.ndarray:
        """Return random components on the scale of the data: (H, D)."""


def random_positive(generator: np.random.RandomState, n_components: int, moments: Moments) -> np.ndarray:
    """Return Gaussian numbers of unit mean and standard deviation 1/3, times the data's mean (MCA08 appendix E.1).

    If the data's mean is not positive, half its standard deviation is the scale instead. Absolute values are used, so
    that the rare negative numbers do not start as zero weights.
    """
    mean, deviation = float(np.mean(moments.mean)), np.sqrt(moments.variance)
    scale = mean if mean > 0 else deviation / 2
    draws = np.abs(generator.normal(1, 1 / 3, (n_components, moments.mean.shape[-1])))
    return scale * draws / draws.mean()


def random_signed(generator: np.random.RandomState, n_components: int, moments: Moments) -> np.ndarray:
    """Return Gaussian numbers around half the data's mean, with a third of its standard deviation (ET10 §4.3.1)."""
    deviation = np.sqrt(moments.variance)
    return moments.mean / 2 + deviation / 3 * generator.normal(size=(n_components, len(moments.mean)))
