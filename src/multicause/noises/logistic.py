"""Binary data whose log odds add up: TN10 eq. 10.40."""

import jax
import numpy as np

from multicause.arrays import Array
from multicause.compatibility import Link
from multicause.model import Moments
from multicause.noises.base import Noise
from multicause.noises.bernoulli import check_binary

# Pixels that are always on or off start this far from certainty.
MARGIN = 0.02


class LogisticBernoulli(Noise):
    """P(y = 1 | w) = f(bias + w) with f the logistic function; combinations make w, the bias belongs to the noise."""

    link = Link.LOGIT
    means = (-np.inf, np.inf)

    def natural(self, mean: Array, parameters: dict[str, Array]) -> Array:
        """η(w) = bias + w."""
        return mean + parameters["bias"]

    def log_normalizer(self, mean: Array, parameters: dict[str, Array]) -> Array:
        """A(w) = log(1 + e^{bias + w})."""
        return jax.nn.softplus(mean + parameters["bias"])

    def log_base(self, rows: Array, summary: Array, parameters: dict[str, Array]) -> Array:
        """Return zeros: all of log p(y) depends on the mean."""
        return summary

    def variance(self, mean: Array, parameters: dict[str, Array]) -> Array:
        """p (1 − p)."""
        chance = jax.nn.sigmoid(mean + parameters["bias"])
        return chance * (1 - chance)

    def sample(self, key: Array, mean: Array, parameters: dict[str, Array]) -> Array:
        """Draw zeros and ones, whose log odds are the bias plus the mean."""
        chance = jax.nn.sigmoid(mean + parameters["bias"])
        return (jax.random.uniform(key, mean.shape, mean.dtype) < chance).astype(mean.dtype)

    def initialize(self, moments: Moments, noise_scale: float | None) -> dict[str, np.ndarray]:
        """The bias that gives each dimension its mean."""
        super().initialize(moments, noise_scale)
        mean = np.clip(moments.mean, MARGIN, 1 - MARGIN)
        return {"bias": np.log(mean) - np.log1p(-mean)}

    def check_data(self, X: np.ndarray) -> None:
        """Zeros and ones alone."""
        check_binary(X)
