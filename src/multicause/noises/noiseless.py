"""The limit without noise, in which causes determine the data: TN10 eq. 10.33."""

import jax.numpy as jnp
import numpy as np

from multicause.arrays import Array
from multicause.compatibility import Likelihood
from multicause.noises.base import Noise
from multicause.records import Moments


class Noiseless(Noise):
    """Absence of noise, p(y | w) = δ(y − w). Densities of data follow from those of causes by the change of volume.

    ``parameters["log_volume"]`` is log |det| of a linear map that was applied to the data before, so that densities are
    those of the original data.
    """

    likelihood = Likelihood.NONE
    means = (-np.inf, np.inf)

    def variance(self, mean: Array, parameters: dict[str, Array]) -> Array:
        """Return zeros, because data have no noise."""
        return jnp.zeros_like(mean)

    def log_base(self, rows: Array, summary: Array, parameters: dict[str, Array]) -> Array:
        """Return the log change of volume for each row: (n,)."""
        return summary + parameters["log_volume"]

    def sample(self, key: Array, mean: Array, parameters: dict[str, Array]) -> Array:
        """Return the means, because data have no noise."""
        return mean

    def initialize(self, moments: Moments, noise_scale: float | None) -> dict[str, np.ndarray]:
        """Return a log change of volume of zero."""
        super().initialize(moments, noise_scale)
        return {"log_volume": np.zeros(())}
