"""Priors of independent real-valued causes: TN10 eq. 10.18, 10.28 and 10.29, and figure 10.4."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from multicause.arrays import Array
from multicause.compatibility import Expectation, Requirements, Support
from multicause.expectations import Inference
from multicause.priors.base import Prior


class Continuous(Prior):
    """Real-valued causes, p(v) = Π_a exp(g(v_a / scale_a)) / scale_a, with exp(g) a density; sparse if heavy-tailed.

    Parameters
    ----------
    scale : float, default=1.0
        Width of the density.
    """

    support = Support.REAL
    requires = Requirements(expectations=frozenset({Expectation.EFFECTS}))
    #: Whether g has a kink at zero, where the density has a sharp peak.
    kinked = False
    #: Largest |g″| at scale one, which limits the length of gradient steps.
    steepest = 1.0

    def __init__(self, *, scale: float = 1.0) -> None:
        self.scale = scale

    def validate(self) -> None:
        """Raise ValueError unless the scale is positive."""
        if not (np.isfinite(self.scale) and self.scale > 0):
            raise ValueError(f"scale of {type(self).__name__} must be a positive number; got {self.scale!r}.")

    @abstractmethod
    def standard(self, value: Array) -> Array:
        """Return g(v) at scale one, normalized, elementwise."""

    @abstractmethod
    def draw(self, key: Array, shape: tuple[int, ...], dtype: Any) -> Array:
        """Draw numbers with density exp(g) at scale one."""

    def slope(self, value: Array) -> Array:
        """Return g′(v) at scale one, elementwise."""
        return jax.grad(lambda v: jnp.sum(self.standard(v)))(value)

    def curvature(self, value: Array) -> Array:
        """Return g″(v) at scale one, elementwise."""
        return jax.grad(lambda v: jnp.sum(self.slope(v)))(value)

    def initialize(self, n_components: int, activity: ArrayLike | None) -> dict[str, np.ndarray]:
        """Return the scale of each cause: (H,)."""
        if activity is not None:
            raise ValueError(f"Causes under {type(self).__name__} are always active; leave activity None.")
        return {"scale": np.full(n_components, float(self.scale))}

    def log_density(self, causes: Array, parameters: dict[str, Array]) -> Array:
        """Return log p(v_a), elementwise on (n, H)."""
        return self.standard(causes / parameters["scale"]) - jnp.log(parameters["scale"])

    def log_probability(self, states: Array, parameters: dict[str, Array]) -> Array:
        """Return Σ_a log p(v_a) of each row: (n,)."""
        return jnp.sum(self.log_density(states, parameters), axis=-1)

    def activity(self, parameters: dict[str, Array]) -> Array:
        """Return the scale of each cause: (H,)."""
        return parameters["scale"]

    def sample(self, key: Array, parameters: dict[str, Array], n_samples: int) -> Array:
        """Draw independent causes: (n_samples, H)."""
        scale = parameters["scale"]
        return scale * self.draw(key, (n_samples, len(scale)), scale.dtype)

    def statistics(self, inference: Inference) -> dict[str, Array]:
        """Return the contribution of each cause to the log-likelihood of all rows, which measures its use: (H,).

        It is dimensionless.
        """
        return {"active": inference.total_effects}

    def maximize(
        self, parameters: dict[str, Array], statistics: dict[str, Array], weight: Array, max_active: int | None = None
    ) -> dict[str, Array]:
        """Return the parameters unchanged: the scale is fixed, because that of the components is free."""
        return parameters


class Gaussian(Continuous):
    """Gaussian causes, g(v) = −v²/2: not sparse, kurtosis 0. Used by factor analysis and PCA (TN10 eq. 10.18)."""

    support = Support.GAUSSIAN

    def standard(self, value: Array) -> Array:
        """Return g(v) = −½ v² − ½ log 2π."""
        return -0.5 * value**2 - 0.5 * np.log(2 * np.pi)

    def draw(self, key: Array, shape: tuple[int, ...], dtype: Any) -> Array:
        """Draw standard normal numbers."""
        return jax.random.normal(key, shape, dtype)


class Laplace(Continuous):
    """Double exponential causes, g(v) = −|v|: kurtosis 3 (TN10 figure 10.4)."""

    kinked = True

    def standard(self, value: Array) -> Array:
        """Return g(v) = −|v| − log 2."""
        return -jnp.abs(value) - np.log(2)

    def slope(self, value: Array) -> Array:
        """Return g′(v) = −sign(v), with 0 at 0."""
        return -jnp.sign(value)

    def curvature(self, value: Array) -> Array:
        """Return g″(v) = 0, which holds except at the kink."""
        return jnp.zeros_like(value)

    def draw(self, key: Array, shape: tuple[int, ...], dtype: Any) -> Array:
        """Draw double exponential numbers."""
        return jax.random.laplace(key, shape, dtype)


class Cauchy(Continuous):
    """Cauchy-distributed causes, g(v) = −log(1 + v²), scaled by β: eq. 10.29, infinite kurtosis. ``scale`` is β."""

    steepest = 2.0

    def standard(self, value: Array) -> Array:
        """Return g(v) = −log(1 + v²) − log π."""
        return -jnp.log1p(value**2) - np.log(np.pi)

    def slope(self, value: Array) -> Array:
        """Return g′(v) = −2v / (1 + v²)."""
        return -2 * value / (1 + value**2)

    def curvature(self, value: Array) -> Array:
        """Return g″(v) = −2 (1 − v²) / (1 + v²)²."""
        return -2 * (1 - value**2) / (1 + value**2) ** 2

    def draw(self, key: Array, shape: tuple[int, ...], dtype: Any) -> Array:
        """Draw numbers with a Cauchy distribution."""
        return jax.random.cauchy(key, shape, dtype)


class HyperbolicSecant(Continuous):
    """Causes with p ∝ 1/cosh, g(v) = −log cosh(v): the chapter's prior of ICA (eq. 10.38), kurtosis 2."""

    def standard(self, value: Array) -> Array:
        """Return g(v) = −log cosh v − log π, without overflow."""
        size = jnp.abs(value)
        return -(size + jnp.log1p(jnp.exp(-2 * size)) - np.log(2)) - np.log(np.pi)

    # Density and both derivatives are computed from one exponential, which is vectorized on a CPU; tanh is not.

    def slope(self, value: Array) -> Array:
        """Return g′(v) = −tanh v = −sign(v) (1 − e) / (1 + e) with e = exp(−2|v|)."""
        e = jnp.exp(-2 * jnp.abs(value))
        return -jnp.sign(value) * (1 - e) / (1 + e)

    def curvature(self, value: Array) -> Array:
        """Return g″(v) = tanh² v − 1 = −4e / (1 + e)² with e = exp(−2|v|)."""
        e = jnp.exp(-2 * jnp.abs(value))
        return -4 * e / (1 + e) ** 2

    def draw(self, key: Array, shape: tuple[int, ...], dtype: Any) -> Array:
        """Draw numbers by the inverse of the distribution function 2/π arctan(e^v)."""
        tiny = jnp.finfo(dtype).tiny
        return jnp.log(jnp.tan(jnp.pi / 2 * jax.random.uniform(key, shape, dtype, minval=tiny)))


class SubGaussian(Continuous):
    """Causes with p ∝ e^{−v²/2} cosh v: bimodal, kurtosis −1/2.

    It is meant for sources that are flatter than a Gaussian, such as uniform noise.
    """

    def standard(self, value: Array) -> Array:
        """Return g(v) = −½ v² + log cosh v − ½ − ½ log 2π, the mean of two Gaussians around ±1."""
        size = jnp.abs(value)
        log_cosh = size + jnp.log1p(jnp.exp(-2 * size)) - np.log(2)
        return -0.5 * value**2 + log_cosh - 0.5 - 0.5 * np.log(2 * np.pi)

    def slope(self, value: Array) -> Array:
        """Return g′(v) = −v + tanh v."""
        return jnp.tanh(value) - value

    def curvature(self, value: Array) -> Array:
        """Return g″(v) = −tanh² v."""
        return -(jnp.tanh(value) ** 2)

    def draw(self, key: Array, shape: tuple[int, ...], dtype: Any) -> Array:
        """Draw numbers as a random sign plus a normal number."""
        sign, normal = jax.random.split(key)
        return jax.random.rademacher(sign, shape, dtype) + jax.random.normal(normal, shape, dtype)
