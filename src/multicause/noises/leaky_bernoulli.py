"""Bernoulli noise for binary data in which features may be one without a cause."""

from numbers import Real

import jax.numpy as jnp
import numpy as np

from multicause.arrays import Array
from multicause.compatibility import Requirements, Rule, Spread
from multicause.noises.binary import BinaryNoise

# Probabilities are clipped at one minus this number, so that log(1 − p) is finite in single precision, too.
MARGIN = 1e-6


class LeakyBernoulli(BinaryNoise):
    """Leaky noise P(y = 1 | w) = 1 − (1 − ε)(1 − w): a feature is one because of a cause, or without any.

    Parameters
    ----------
    leak : float, default=1e-3
        ε, the probability that a feature is one without a cause. It keeps features that no active cause explains from
        being impossible.
    """

    spread = Spread.LEAKY
    requires = Requirements(rules=frozenset({Rule.NOISY_OR}))

    def __init__(self, *, leak: float = 1e-3) -> None:
        self.leak = leak

    def validate(self) -> None:
        """Raise ValueError unless the leak is a probability between zero and one."""
        if not (isinstance(self.leak, Real) and MARGIN <= self.leak < 1 - MARGIN):
            raise ValueError(f"leak of LeakyBernoulli must lie between {MARGIN:g} and 1; got {self.leak!r}.")

    def probability(self, mean: Array) -> Array:
        """Return P(y = 1 | w), elementwise."""
        return jnp.minimum(mean + self.leak * (1 - mean), 1 - MARGIN)

    def magnitude(self, rows: Array, summary: Array, parameters: dict[str, Array]) -> Array:
        """Return the size of the largest log-likelihood of each row, as b(y) is zero: (n,)."""
        return summary - rows.shape[-1] * float(np.log(min(self.leak, 1 - self.leak)))

    def expected(self, mean: Array, parameters: dict[str, Array]) -> Array:
        """Return 1 − (1 − ε)(1 − w̄), which includes features that are one without a cause."""
        return mean + self.leak * (1 - mean)

    def typical_rows(self, means: np.ndarray) -> np.ndarray:
        """Return ones where a one is more probable than a zero."""
        return (means + self.leak * (1 - means) > 0.5).astype(means.dtype)
