"""Bernoulli noise, for binary data whose mean is the probability of a one."""

import jax
import jax.numpy as jnp
import numpy as np

from multicause.arrays import Array
from multicause.noises.base import Noise


class Bernoulli(Noise):
    """Bernoulli noise P(y = 1 | w) = w, for data of zeros and ones and means between zero and one.

    Parameters
    ----------
    floor : float, default=1e-3
        Means are clipped to the range from ``floor`` to ``1 - floor``, so that a value that contradicts all active
        causes is improbable, not impossible.
    """

    means = (0.0, 1.0)

    def __init__(self, *, floor: float = 1e-3) -> None:
        self.floor = floor

    def validate(self) -> None:
        """Raise ValueError unless the floor is between 0 and 0.5."""
        if not 0 < self.floor < 0.5:
            raise ValueError(f"floor of Bernoulli must lie between 0 and 0.5; got {self.floor!r}.")

    def probability(self, mean: Array) -> Array:
        """Return P(y = 1 | w), elementwise."""
        return jnp.clip(mean, self.floor, 1 - self.floor)

    def natural(self, mean: Array, parameters: dict[str, Array]) -> Array:
        """Return the natural parameter η(w) = log w/(1 − w)."""
        chance = self.probability(mean)
        return jnp.log(chance) - jnp.log1p(-chance)

    def log_normalizer(self, mean: Array, parameters: dict[str, Array]) -> Array:
        """Return the log normalizer A(w) = −log(1 − w)."""
        return -jnp.log1p(-self.probability(mean))

    def log_base(self, rows: Array, summary: Array, parameters: dict[str, Array]) -> Array:
        """Return zeros, because all terms of log p(y) depend on the mean."""
        return summary

    def magnitude(self, rows: Array, summary: Array, parameters: dict[str, Array]) -> Array:
        """Return the size of the largest log-likelihood of each row, as b(y) is zero: (n,)."""
        return summary - rows.shape[-1] * jnp.log(self.floor)

    def variance(self, mean: Array, parameters: dict[str, Array]) -> Array:
        """Return the variance w (1 − w)."""
        chance = self.probability(mean)
        return chance * (1 - chance)

    def sample(self, key: Array, mean: Array, parameters: dict[str, Array]) -> Array:
        """Draw zeros and ones with given means."""
        return (jax.random.uniform(key, mean.shape, mean.dtype) < self.probability(mean)).astype(mean.dtype)

    def typical_rows(self, means: np.ndarray) -> np.ndarray:
        """Return one where a one is more probable than a zero, else zero."""
        return (means > 0.5).astype(means.dtype)

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
