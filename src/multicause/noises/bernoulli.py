"""Bernoulli noise, for binary data whose mean is the probability of a one."""

import jax.numpy as jnp
import numpy as np

from multicause.arrays import Array
from multicause.noises.binary import BinaryNoise


class Bernoulli(BinaryNoise):
    """Bernoulli noise P(y = 1 | w) = w, for data of zeros and ones and means between zero and one.

    Parameters
    ----------
    floor : float, default=1e-3
        Means are clipped to the range from ``floor`` to ``1 - floor``, so that a value that contradicts all active
        causes is improbable, not impossible.
    """

    def __init__(self, *, floor: float = 1e-3) -> None:
        self.floor = floor

    def validate(self) -> None:
        """Raise ValueError unless the floor is between 0 and 0.5."""
        if not 0 < self.floor < 0.5:
            raise ValueError(f"floor of Bernoulli must lie between 0 and 0.5; got {self.floor!r}.")

    def probability(self, mean: Array) -> Array:
        """Return P(y = 1 | w), elementwise."""
        return jnp.clip(mean, self.floor, 1 - self.floor)

    def magnitude(self, rows: Array, summary: Array, parameters: dict[str, Array]) -> Array:
        """Return the size of the largest log-likelihood of each row, as b(y) is zero: (n,)."""
        return summary - rows.shape[-1] * jnp.log(self.floor)

    def typical_rows(self, means: np.ndarray) -> np.ndarray:
        """Return one where a one is more probable than a zero, else zero."""
        return (means > 0.5).astype(means.dtype)
