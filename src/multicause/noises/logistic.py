"""Bernoulli noise for binary data whose log odds are sums over causes: TN10 eq. 10.40."""

import jax
import numpy as np

from multicause.arrays import Array
from multicause.compatibility import Link
from multicause.noises.base import Noise
from multicause.noises.binary import check_binary
from multicause.records import Moments

# Initial probabilities of dimensions that are always one or zero keep this distance from one and zero.
MARGIN = 0.02


class LogisticBernoulli(Noise):
    """Bernoulli noise P(y = 1 | w) = f(bias + w) with f the logistic function; the bias is a parameter of the noise."""

    link = Link.LOGIT
    means = (-np.inf, np.inf)

    def natural(self, mean: Array, parameters: dict[str, Array]) -> Array:
        """Return the natural parameter η(w) = bias + w."""
        return mean + parameters["bias"]

    def log_normalizer(self, mean: Array, parameters: dict[str, Array]) -> Array:
        """Return the log normalizer A(w) = log(1 + e^{bias + w})."""
        return jax.nn.softplus(mean + parameters["bias"])

    def log_base(self, rows: Array, summary: Array, parameters: dict[str, Array]) -> Array:
        """Return zeros, because all terms of log p(y) depend on the mean."""
        return summary

    def variance(self, mean: Array, parameters: dict[str, Array]) -> Array:
        """Return the variance p (1 − p)."""
        chance = jax.nn.sigmoid(mean + parameters["bias"])
        return chance * (1 - chance)

    def sample(self, key: Array, mean: Array, parameters: dict[str, Array]) -> Array:
        """Draw zeros and ones whose log odds are the bias plus the mean."""
        chance = jax.nn.sigmoid(mean + parameters["bias"])
        return (jax.random.uniform(key, mean.shape, mean.dtype) < chance).astype(mean.dtype)

    def initialize(self, moments: Moments, noise_scale: float | None) -> dict[str, np.ndarray]:
        """Return the bias for which each dimension has the mean of the data."""
        super().initialize(moments, noise_scale)
        mean = np.clip(moments.mean, MARGIN, 1 - MARGIN)
        return {"bias": np.log(mean) - np.log1p(-mean)}

    def check_data(self, X: np.ndarray) -> None:
        """Raise ValueError unless all values are zeros and ones."""
        check_binary(X)
