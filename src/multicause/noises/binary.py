"""Base class of noise on binary data, which is defined by the probability of a one."""

from abc import abstractmethod

import jax
import jax.numpy as jnp
import numpy as np

from multicause.arrays import Array
from multicause.noises.base import Noise


class BinaryNoise(Noise):
    """Noise on zeros and ones, with p = P(y = 1 | w) as :meth:`probability` returns it."""

    means = (0.0, 1.0)

    @abstractmethod
    def probability(self, mean: Array) -> Array:
        """Return p = P(y = 1 | w), elementwise, strictly between zero and one."""

    def natural(self, mean: Array, parameters: dict[str, Array]) -> Array:
        """Return the natural parameter η(w) = log p/(1 − p)."""
        chance = self.probability(mean)
        return jnp.log(chance) - jnp.log1p(-chance)

    def log_normalizer(self, mean: Array, parameters: dict[str, Array]) -> Array:
        """Return the log normalizer A(w) = −log(1 − p)."""
        return -jnp.log1p(-self.probability(mean))

    def log_base(self, rows: Array, summary: Array, parameters: dict[str, Array]) -> Array:
        """Return zeros, because all terms of log p(y) depend on the mean."""
        return summary

    def variance(self, mean: Array, parameters: dict[str, Array]) -> Array:
        """Return the variance p (1 − p)."""
        chance = self.probability(mean)
        return chance * (1 - chance)

    def sample(self, key: Array, mean: Array, parameters: dict[str, Array]) -> Array:
        """Draw zeros and ones with given means."""
        return (jax.random.uniform(key, mean.shape, mean.dtype) < self.probability(mean)).astype(mean.dtype)

    def check_data(self, X: np.ndarray) -> None:
        """Raise ValueError unless all values are zeros and ones."""
        check_binary(X)


def check_binary(X: np.ndarray) -> None:
    """Raise ValueError if there are values other than zeros and ones."""
    other = X[(X != 0) & (X != 1)]
    if other.size:
        negative = "Negative values in data: " if other.min() < 0 else ""
        raise ValueError(
            f"{negative}Binary data are needed, with values 0 and 1 alone; found {other.flat[0]:.6g} and "
            f"{other.size - 1} other values that are neither. Cut grey values at a threshold, for example "
            "X > X.mean()."
        )
