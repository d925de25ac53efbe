"""Base class of inference over binary states of causes with a strength."""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property
from typing import NamedTuple

import jax.numpy as jnp

from multicause.arrays import Array, matmul, sum_in_double
from multicause.compatibility import Support
from multicause.generative import GenerativeModel
from multicause.posteriors.beams.beam_search import Strengths
from multicause.posteriors.expectations.row_weights import RowWeights
from multicause.records import Block, Parameters


class RecognizedStrengths(NamedTuple):
    """The most probable states of some rows, best first, and the strengths of their causes."""

    states: Array  # (n, K, H) of zeros and ones
    probabilities: Array  # (n, K)
    log_evidence: Array  # (n,)
    strengths: Array  # (n, K, H) posterior means given each state; zero for inactive causes


def strengths_of(model: GenerativeModel, parameters: Parameters) -> Strengths:
    """Return the prior of the strengths of causes; binary causes have strength one."""
    activity = jnp.asarray(model.prior.activity(parameters.prior))
    log_odds = jnp.log(activity) - jnp.log1p(-activity)
    if model.prior.support is Support.NORMAL_SLABS:
        return Strengths(log_odds, *(jnp.asarray(parameters.prior[name]) for name in ("slab_mean", "slab_variance")))
    return Strengths(log_odds, jnp.ones_like(activity), jnp.zeros_like(activity))


class SpikeInference(RowWeights):
    """Expectations under q_n(s) ∝ p(s, y_n)^β over states of each row, with the exact posterior of the strengths.

    The temperature only applies to the states: p(s, y) is the integral over all strengths. A subclass calls
    :meth:`_weigh` with log p(s, y_n) of all states, and has ``mean_causes``, ``total_active``, ``cause_pairs`` and
    ``cause_means``.

    ``observed`` (n, D) is one for observed values and zero for missing ones, for which rows may hold any value; None
    means that all values were observed. Missing values are latent variables, so that the M-step of the components does
    not change.
    """

    def __init__(
        self,
        model: GenerativeModel,
        parameters: Parameters,
        block: Block,
        temperature: Array,
        observed: Array | None = None,
    ) -> None:
        self._model, self._parameters, self._block = model, parameters, block
        self.rows, self.row_weights, self.observed = block.rows, block.weights, observed
        self._data = block.rows if observed is None else jnp.where(observed > 0, block.rows, 0)
        self._temperature = temperature.astype(block.rows.dtype)
        # For causes without a strength, squares are computed around the origin of the noise, by ``residuals``.
        self.linear = model.prior.support is Support.NORMAL_SLABS

    @property
    def _log_base(self) -> Array:
        """Σ_d b(y_d) over observed values: (n,)."""
        noise, parameters = self._model.noise, self._parameters.noise
        of_all = noise.log_base(self._data, self._block.summary, parameters)
        if self.observed is None:
            return of_all
        return of_all + 0.5 * matmul(1 - self.observed, jnp.log(2 * jnp.pi * self._variance).astype(of_all.dtype))

    @property
    def _variance(self) -> Array:
        """Variance of the noise in each dimension, in double precision: (D,)."""
        noise = self._model.noise
        return noise.variance(self._parameters.components[0], self._parameters.noise).astype(jnp.float64)

    @property
    @abstractmethod
    def mean_causes(self) -> Array:  # type: ignore[override]
        """Posterior mean ⟨s∘z⟩ of the causes: (n, H)."""

    @property
    @abstractmethod
    def total_active(self) -> Array:
        """Expected number of rows in which each cause is active, Σ_n w_n ⟨s⟩: (H,)."""

    @cached_property
    def _products(self) -> Array:
        """Products of posterior means and data, Σ_n w_n ⟨s∘z⟩ y_nᵀ over observed values: (H, D)."""
        return matmul((self.mean_causes * self.row_weights[:, None]).T, self._data).astype(jnp.float64)

    @property
    @abstractmethod
    def cause_means(self) -> Array:
        """Products of causes and means, Σ_n w_n ⟨(s∘z) w̄ᵀ⟩ over observed values, in double precision: (H, D)."""

    @cached_property
    def cause_data(self) -> Array:  # type: ignore[override]
        """Σ_n w_n ⟨s∘z⟩ y_nᵀ, with the posterior of missing values under the current components: (H, D)."""
        if self.observed is None:
            return self._products
        return self._products + matmul(self.cause_pairs, self._components) - self.cause_means

    @property
    def _components(self) -> Array:
        return self._parameters.components.astype(jnp.float64)

    @cached_property
    def residuals(self) -> Array:  # type: ignore[override]
        """Expected squared residuals Σ_n w_n ⟨(y_nd − w̄_d)²⟩ over observed values, from moments: (D,)."""
        squares = sum_in_double(self.row_weights[:, None] * self._data**2, axis=0)
        return squares + jnp.sum(self._components * (self.cause_means - 2 * self._products), axis=0)

    @property
    def total_log_likelihood(self) -> Array:  # type: ignore[override]
        """Expected log-likelihood Σ_n w_n ⟨log p(y_n | s∘z)⟩ of observed values, from the residuals."""
        weights = self.row_weights.astype(jnp.float64)
        n_values = jnp.sum(weights) if self.observed is None else matmul(weights, self.observed.astype(jnp.float64))
        return -0.5 * jnp.sum(self.residuals / self._variance + n_values * jnp.log(2 * jnp.pi * self._variance))

    def mean_data(self) -> Array:
        """Return the reconstruction ⟨w̄⟩ of each row: (n, D)."""
        return matmul(self.mean_causes, self._parameters.components)
