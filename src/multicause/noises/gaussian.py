"""Gaussian noise with the same variance in all dimensions: ET10 eq. 24."""

import jax
import jax.numpy as jnp
import numpy as np

from multicause.arrays import Array, sum_in_double
from multicause.compatibility import Expectation, Requirements, Spread
from multicause.expectations import Inference
from multicause.noises.base import Noise
from multicause.noises.offset import maximized_offset, offset_statistics
from multicause.records import Moments

# The learned variance stays above this fraction of the data's variance over rows (or above 1000 rounding errors of it,
# in single precision): data without noise would otherwise drive it to zero and the likelihood to infinity.
RELATIVE_FLOOR = 1e-6
ROUNDINGS = 1e3


class Gaussian(Noise):
    """Gaussian noise p(y | w) = N(y; w, σ²), with σ the estimator's ``noise_scale``.

    It is learned unless ``learn`` leaves out "noise".
    """

    spread = Spread.CONSTANT
    means = (-np.inf, np.inf)
    of_features = ("origin",)
    requires = Requirements(expectations=frozenset({Expectation.LIKELIHOOD}))

    def natural(self, mean: Array, parameters: dict[str, Array]) -> Array:
        """Return the natural parameter η(w) = w/σ²."""
        return mean * (1 / parameters["variance"])

    def log_normalizer(self, mean: Array, parameters: dict[str, Array]) -> Array:
        """Return the log normalizer A(w) = w²/2σ²."""
        return mean**2 * (0.5 / parameters["variance"])

    def origin(self, parameters: dict[str, Array]) -> Array | None:
        """Return the mean of the initial data, or None if it was not stored."""
        return parameters.get("origin")

    def standardize(self, values: Array, parameters: dict[str, Array]) -> Array:
        """Return values in units of the standard deviation of the noise, y/σ."""
        return values * (1 / jnp.sqrt(parameters["variance"]))

    def log_base(self, rows: Array, summary: Array, parameters: dict[str, Array]) -> Array:
        """Return b(y) = −y²/2σ² − ½ log 2πσ², summed over dimensions: (n,)."""
        variance = parameters["variance"]
        return -0.5 * (jnp.sum(rows**2, axis=-1) / variance + rows.shape[-1] * jnp.log(2 * jnp.pi * variance))

    def variance(self, mean: Array, parameters: dict[str, Array]) -> Array:
        """Return the variance σ², which does not depend on the mean."""
        return jnp.full_like(mean, parameters["variance"])

    def sample(self, key: Array, mean: Array, parameters: dict[str, Array]) -> Array:
        """Draw observations: the mean plus Gaussian noise."""
        return mean + jnp.sqrt(parameters["variance"]) * jax.random.normal(key, mean.shape, mean.dtype)

    def initialize(self, moments: Moments, noise_scale: float | None) -> dict[str, np.ndarray]:
        """Return σ² with σ half the data's standard deviation, unless the user gives ``noise_scale``."""
        floor = max(RELATIVE_FLOOR, ROUNDINGS * moments.epsilon) * (moments.spread or moments.variance)
        if noise_scale is None:
            variance = moments.variance / 4
        elif np.ndim(noise_scale) == 0 and np.isfinite(noise_scale) and noise_scale > 0:
            variance = float(noise_scale) ** 2
        else:
            raise ValueError(
                f"noise_scale must be one positive number, the standard deviation of the noise; got {noise_scale!r}."
            )
        return {"variance": np.asarray(variance), "floor": np.asarray(floor), "origin": np.asarray(moments.mean)}

    def statistics(self, inference: Inference, parameters: dict[str, Array]) -> dict[str, Array]:
        """Return Σ_n w_n ⟨‖y − w̄(s)‖²⟩, from the expected log-likelihood −⟨‖y − w̄‖²⟩/2σ² − ½ D log 2πσ²."""
        variance = parameters["variance"].astype(jnp.float64)
        if inference.observed is not None:
            observed = sum_in_double(inference.row_weights[:, None] * inference.observed)
            constant = 0.5 * jnp.log(2 * jnp.pi * variance) * observed
            residual = -2 * variance * (inference.total_log_likelihood + constant)
            return {"residual": residual, "observed": observed, **offset_statistics(inference, parameters)}
        constant = 0.5 * inference.rows.shape[1] * jnp.log(2 * jnp.pi * variance) * sum_in_double(inference.row_weights)
        return {"residual": -2 * variance * (inference.total_log_likelihood + constant)}

    def maximize(
        self, parameters: dict[str, Array], statistics: dict[str, Array], weight: Array, n_features: int
    ) -> dict[str, Array]:
        """Return σ², the mean squared residual of all observed values."""
        observed = statistics.get("observed", weight * n_features)
        variance = (statistics["residual"] / observed).astype(parameters["variance"].dtype)
        return {**parameters, "variance": jnp.maximum(variance, parameters["floor"])}

    def maximize_around(
        self, parameters: dict[str, Array], statistics: dict[str, Array], weight: Array, components: Array
    ) -> dict[str, Array]:
        """Return σ², and the mean of the data if it is learned (:mod:`multicause.noises.offset`)."""
        new = super().maximize_around(parameters, statistics, weight, components)
        return maximized_offset(new, statistics, components)
