"""Gaussian noise with a different variance in each dimension: TN10 eq. 10.18, the noise of factor analysis."""

import jax
import jax.numpy as jnp
import numpy as np

from multicause.arrays import Array, matmul, observed_data
from multicause.compatibility import Expectation, Requirements, Spread
from multicause.expectations import Inference
from multicause.noises.base import Noise
from multicause.noises.gaussian import RELATIVE_FLOOR, ROUNDINGS
from multicause.noises.offset import maximized_offset, offset_statistics
from multicause.records import Moments


class DiagonalGaussian(Noise):
    """Gaussian noise p(y | w) = Π_d N(y_d; w_d, Σ_d) with one variance per dimension.

    A learned variance stays above a millionth of the data's in its dimension (or above 1000 rounding errors of it): a
    cause that explains one dimension completely would otherwise make the likelihood infinite (a Heywood case).
    """

    spread = Spread.CONSTANT
    means = (-np.inf, np.inf)
    of_features = ("origin", "variance")
    requires = Requirements(expectations=frozenset({Expectation.RESIDUALS}))

    def natural(self, mean: Array, parameters: dict[str, Array]) -> Array:
        """Return the natural parameter η(w) = w/Σ."""
        return mean / parameters["variance"]

    def log_normalizer(self, mean: Array, parameters: dict[str, Array]) -> Array:
        """Return the log normalizer A(w) = w²/2Σ."""
        return mean**2 / (2 * parameters["variance"])

    def standardize(self, values: Array, parameters: dict[str, Array]) -> Array:
        """Return values in units of the standard deviation of each dimension, y/√Σ."""
        return values * (1 / jnp.sqrt(parameters["variance"]))

    def log_base(self, rows: Array, summary: Array, parameters: dict[str, Array]) -> Array:
        """Return b(y) = −½ Σ_d (y_d²/Σ_d + log 2πΣ_d) of each row: (n,)."""
        variance = parameters["variance"]
        return -0.5 * (matmul(rows**2, 1 / variance) + jnp.sum(jnp.log(2 * jnp.pi * variance)))

    def origin(self, parameters: dict[str, Array]) -> Array | None:
        """Return the mean of the initial data, or None if it was not stored."""
        return parameters.get("origin")

    def variance(self, mean: Array, parameters: dict[str, Array]) -> Array:
        """Return the variance Σ, which does not depend on the mean."""
        return jnp.broadcast_to(parameters["variance"], mean.shape)

    def sample(self, key: Array, mean: Array, parameters: dict[str, Array]) -> Array:
        """Draw observations: the mean plus Gaussian noise."""
        return mean + jnp.sqrt(parameters["variance"]) * jax.random.normal(key, mean.shape, mean.dtype)

    def initialize(self, moments: Moments, noise_scale: float | None) -> dict[str, np.ndarray]:
        """Return half the data's standard deviation in all dimensions, unless the user gives ``noise_scale``."""
        variance = moments.variance / 4 if noise_scale is None else float(noise_scale) ** 2
        floor = max(RELATIVE_FLOOR, ROUNDINGS * moments.epsilon)
        return {
            "variance": np.full(len(moments.mean), variance),
            "relative_floor": np.asarray(floor),
            "origin": np.asarray(moments.mean),
        }

    def statistics(self, inference: Inference, parameters: dict[str, Array]) -> dict[str, Array]:
        """Return Σ_n w_n of y², ⟨s⟩ y and ⟨s sᵀ⟩, or of (y − origin)² and ⟨(y − w̄)²⟩.

        The former are for real-valued causes that add up, the latter for all others.
        """
        if inference.observed is not None:
            data = observed_data(inference.rows, self.origin(parameters), inference.observed)
            weights = inference.row_weights.astype(jnp.float64)
            return {
                "squares": matmul(weights, data.astype(jnp.float64) ** 2),
                "residuals": inference.residuals,
                "observed": matmul(weights, inference.observed),
                **offset_statistics(inference, parameters),
            }
        if inference.linear:
            squares = matmul(inference.row_weights, inference.rows**2)
            return {"squares": squares, "cause_data": inference.cause_data, "cause_pairs": inference.cause_pairs}
        origin = self.origin(parameters)
        rows = inference.rows if origin is None else inference.rows - origin
        return {"squares": matmul(inference.row_weights, rows**2), "residuals": inference.residuals}

    def maximize_around(
        self, parameters: dict[str, Array], statistics: dict[str, Array], weight: Array, components: Array
    ) -> dict[str, Array]:
        """Return Σ_d, the mean squared residual in dimension d (the table of TN10's appendix).

        Residuals are around the new components if moments determine them, else around the old ones.
        """
        if "residuals" in statistics:
            residual = statistics["residuals"]
        else:
            explained = matmul(statistics["cause_pairs"], components) - 2 * statistics["cause_data"]
            residual = statistics["squares"] + jnp.sum(components * explained, axis=0)
        if "observed" in statistics:
            return self._maximize_observed(parameters, statistics, components)
        relative, squares = parameters["relative_floor"], statistics["squares"] / weight
        # A constant dimension has the floor of a dimension a thousand times smaller than the others.
        floor = relative * jnp.maximum(squares, relative * jnp.mean(squares))
        variance = jnp.maximum(residual / weight, floor)
        return {**parameters, "variance": variance.astype(parameters["variance"].dtype)}

    def _maximize_observed(
        self, parameters: dict[str, Array], statistics: dict[str, Array], components: Array
    ) -> dict[str, Array]:
        """Return mean squared residuals over observed values; a dimension without values keeps its variance."""
        seen, old, relative = statistics["observed"] > 0, parameters["variance"], parameters["relative_floor"]
        weight = jnp.where(seen, statistics["observed"], 1)
        squares = statistics["squares"] / weight
        floor = relative * jnp.maximum(squares, relative * jnp.mean(squares))
        variance = jnp.where(seen, jnp.maximum(statistics["residuals"] / weight, floor), old)
        new = {**parameters, "variance": variance.astype(old.dtype)}
        return maximized_offset(new, statistics, components)
