"""Base class of inference over separate states of each row, with their probabilities as an array (n, S)."""

from __future__ import annotations

import jax.numpy as jnp

from multicause.arrays import Array, sum_in_double
from multicause.expectations import Inference
from multicause.generative import GenerativeModel
from multicause.records import Block, Parameters


class RowWeights(Inference):
    """Probabilities q_n(s) ∝ p(s, y_n)^β of states of each row, and bounds. A subclass calls :meth:`_weigh`."""

    _model: GenerativeModel
    _parameters: Parameters
    _block: Block
    _data: Array  # rows with zeros for missing values, relative to the origin of the noise where there is one
    _temperature: Array
    _base: Array  # b(y), and other terms that all states of a row have in common: (n,)
    probabilities: Array  # (n, S) q_n(s)

    def _weigh(self, log_joint: Array, base: Array) -> None:
        """Set probabilities of all states, given log p(s, y_n) (n, S) without terms common to all states of a row."""
        self._base, beta = base, 1 / self._temperature
        largest = jnp.max(log_joint, axis=1)
        u = jnp.exp(beta * (log_joint - largest[:, None]))
        z = jnp.sum(u, axis=1)
        self.probabilities = u / z[:, None]
        self._log_z = jnp.log(z) + beta * largest
        finite = jnp.where(jnp.isfinite(log_joint), log_joint, 0)
        self._log_joint = jnp.sum(self.probabilities * finite, axis=1)

    @property
    def log_evidence(self) -> Array:  # type: ignore[override]
        """Log evidence log Σ p(s, y) over the states considered: (n,)."""
        return self._log_z + self._base

    @property
    def free_energy(self) -> Array:  # type: ignore[override]
        """Free energy T log Σ p^β + b(y) of each row: (n,)."""
        return self._temperature * self._log_z + self._base

    @property
    def total_bound(self) -> Array:  # type: ignore[override]
        """Bound F = ⟨log p⟩ + H(q) with H(q) = −β⟨log p⟩ + log Σ p^β, summed over all rows."""
        return sum_in_double(self.row_weights * ((1 - 1 / self._temperature) * self._log_joint + self.log_evidence))

    @property
    def total_free_energy(self) -> Array:  # type: ignore[override]
        """Free energy Σ_n w_n (⟨log p⟩ + T H(q)), summed over all rows."""
        return sum_in_double(self.row_weights * self.free_energy)

    @property
    def magnitude(self) -> Array:  # type: ignore[override]
        """Size of the terms that cancel in the log-likelihood, as given by the noise, summed over rows."""
        size = self._model.noise.magnitude(self._data, self._block.summary, self._parameters.noise)
        return sum_in_double(self.row_weights * size)

    @property
    def total_causes(self) -> Array:  # type: ignore[override]
        """Sum of the posterior means of the causes: (H,)."""
        return sum_in_double(self.mean_causes * self.row_weights[:, None], axis=0)
