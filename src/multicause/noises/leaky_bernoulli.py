"""Bernoulli noise for binary data in which features may be one without a cause."""

import jax
import jax.numpy as jnp
import numpy as np

from multicause.arrays import Array
from multicause.compatibility import Requirements, Rule, Spread
from multicause.noises.base import Noise
from multicause.noises.bernoulli import check_binary

# Probabilities are clipped at one minus this number, so that log(1 − p) is finite in single precision, too.
MARGIN = 1e-6


class LeakyBernoulli(Noise):
    """Leaky noise P(y = 1 | w) = 1 − (1 − ε)(1 − w): a feature is one because of a cause, or without any.

    Parameters
    ----------
    leak : float, default=1e-3
        ε, the probability that a feature is one without a cause. It keeps features that no active cause explains from
        being impossible.
    """

    spread = Spread.LEAKY
    means = (0.0, 1.0)
    requires = Requirements(rules=frozenset({Rule.NOISY_OR}))

    def __init__(self, *, leak: float = 1e-3) -> None:
        self.leak = leak

    def validate(self) -> None:
        """Raise ValueError unless the leak is a probability between zero and one."""
        if not MARGIN <= self.leak < 1 - MARGIN:
            raise ValueError(f"leak of LeakyBernoulli must lie between {MARGIN:g} and 1; got {self.leak!r}.")

    def probability(self, mean: Array) -> Array:
        """Return P(y = 1 | w), elementwise."""
        return jnp.minimum(mean + self.leak * (1 - mean), 1 - MARGIN)

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

    def magnitude(self, rows: Array, summary: Array, parameters: dict[str, Array]) -> Array:
        """Return the size of the largest log-likelihood of each row, as b(y) is zero: (n,)."""
        return summary - rows.shape[-1] * float(np.log(min(self.leak, 1 - self.leak)))

    def variance(self, mean: Array, parameters: dict[str, Array]) -> Array:
        """Return the variance p (1 − p)."""
        chance = self.probability(mean)
        return chance * (1 - chance)

    def sample(self, key: Array, mean: Array, parameters: dict[str, Array]) -> Array:
        """Draw zeros and ones with given means."""
        return (jax.random.uniform(key, mean.shape, mean.dtype) < self.probability(mean)).astype(mean.dtype)

    def expected(self, mean: Array, parameters: dict[str, Array]) -> Array:
        """Return 1 − (1 − ε)(1 − w̄), which also counts features that are on by themselves."""
        return mean + self.leak * (1 - mean)

    def typical_rows(self, means: np.ndarray) -> np.ndarray:
        """Return ones where a one is more probable than a zero."""
        return (means + self.leak * (1 - means) > 0.5).astype(means.dtype)

    def check_data(self, X: np.ndarray) -> None:
        """Raise ValueError unless all values are zeros and ones."""
        check_binary(X)
