"""What inference over on/off states of causes with a strength has in common, however the states were found."""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property
from typing import NamedTuple

import jax.numpy as jnp

from multicause.arrays import Array, matmul, sum_in_double
from multicause.compatibility import Support
from multicause.model import Block, Model, Parameters
from multicause.posteriors.base import Inference
from multicause.posteriors.beam_search import Strengths


class RecognizedStrengths(NamedTuple):
    """The most probable states of some rows, best first, and what the strengths of their causes are."""

    states: Array  # (n, K, H) of zeros and ones
    probabilities: Array  # (n, K)
    log_evidence: Array  # (n,)
    strengths: Array  # (n, K, H) posterior means given each state; zero where a cause is off


def strengths_of(model: Model, parameters: Parameters) -> Strengths:
    """Return the prior of causes with a strength; that of binary causes is one."""
    activity = jnp.asarray(model.prior.activity(parameters.prior))
    log_odds = jnp.log(activity) - jnp.log1p(-activity)
    if model.prior.support is Support.SPIKE_SLAB:
        return Strengths(log_odds, *(jnp.asarray(parameters.prior[name]) for name in ("slab_mean", "slab_variance")))
    return Strengths(log_odds, jnp.ones_like(activity), jnp.zeros_like(activity))


class SpikeInference(Inference):
    """q_n(s) ∝ p(s, y_n)^β over states of each row, with the exact posterior of the strengths given each state.

    Temperature acts on the states alone: p(s, y) is the integral over all strengths. A subclass calls :meth:`_weigh`
    with log p(s, y_n) of all states, and has ``mean_causes``, ``total_active`` and ``cause_pairs``.
    """

    def __init__(self, model: Model, parameters: Parameters, block: Block, temperature: Array) -> None:
        self._model, self._parameters, self._block = model, parameters, block
        self.rows, self.row_weights = block.rows, block.weights
        self._temperature = temperature.astype(block.rows.dtype)
        # Squares of binary causes are taken around the origin of the noise by way of ``residuals``.
        self.linear = model.prior.support is not Support.BINARY

    def _weigh(self, log_joint: Array, base: Array) -> None:
        """Take note of log p(s, y_n) of all states (n, S), without what all states of a row have in common (n,)."""
        self._base, beta = base, 1 / self._temperature
        largest = jnp.max(log_joint, axis=1)
        u = jnp.exp(beta * (log_joint - largest[:, None]))
        z = jnp.sum(u, axis=1)
        #: q_n(s): (n, S).
        self.probabilities = u / z[:, None]
        self._log_z = jnp.log(z) + beta * largest
        finite = jnp.where(jnp.isfinite(log_joint), log_joint, 0)
        self._log_joint = jnp.sum(self.probabilities * finite, axis=1)

    @property
    @abstractmethod
    def mean_causes(self) -> Array:  # type: ignore[override]
        """⟨s∘z⟩: (n, H)."""

    @property
    @abstractmethod
    def total_active(self) -> Array:
        """Σ_n w_n ⟨s⟩: (H,)."""

    @property
    def log_evidence(self) -> Array:  # type: ignore[override]
        """Log Σ p(s, y) over the states considered: (n,)."""
        return self._log_z + self._base

    @property
    def free_energy(self) -> Array:  # type: ignore[override]
        """T log Σ p^β + b(y): (n,)."""
        return self._temperature * self._log_z + self._base

    @property
    def total_bound(self) -> Array:  # type: ignore[override]
        """F = ⟨log p⟩ + H(q) with H(q) = −β⟨log p⟩ + log Σ p^β."""
        return sum_in_double(self.row_weights * ((1 - 1 / self._temperature) * self._log_joint + self.log_evidence))

    @property
    def total_free_energy(self) -> Array:  # type: ignore[override]
        """Σ_n w_n (⟨log p⟩ + T H(q))."""
        return sum_in_double(self.row_weights * self.free_energy)

    @property
    def magnitude(self) -> Array:  # type: ignore[override]
        """As the noise says."""
        size = self._model.noise.magnitude(self.rows, self._block.summary, self._parameters.noise)
        return sum_in_double(self.row_weights * size)

    @property
    def total_causes(self) -> Array:  # type: ignore[override]
        """Σ_n w_n ⟨s∘z⟩: (H,)."""
        return sum_in_double(self.mean_causes * self.row_weights[:, None], axis=0)

    @cached_property
    def cause_data(self) -> Array:  # type: ignore[override]
        """Σ_n w_n ⟨s∘z⟩ y_nᵀ: (H, D)."""
        return matmul((self.mean_causes * self.row_weights[:, None]).T, self.rows).astype(jnp.float64)

    @cached_property
    def residuals(self) -> Array:  # type: ignore[override]
        """Σ_n w_n ⟨(y_nd − w̄_d)²⟩ from first and second moments: (D,)."""
        components = self._parameters.components.astype(jnp.float64)
        squares = sum_in_double(self.row_weights[:, None] * self.rows**2, axis=0)
        return squares + jnp.sum(components * (matmul(self.cause_pairs, components) - 2 * self.cause_data), axis=0)

    @property
    def total_log_likelihood(self) -> Array:  # type: ignore[override]
        """Σ_n w_n ⟨log p(y_n | s∘z)⟩, from the residuals."""
        variance = self._model.noise.variance(self.rows[0], self._parameters.noise).astype(jnp.float64)
        constant = sum_in_double(self.row_weights) * jnp.log(2 * jnp.pi * variance)
        return -0.5 * jnp.sum(self.residuals / variance + constant)

    def mean_data(self) -> Array:
        """⟨w̄⟩: (n, D)."""
        return matmul(self.mean_causes, self._parameters.components)
