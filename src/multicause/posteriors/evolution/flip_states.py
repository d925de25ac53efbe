"""Inference over binary states of each row that are compared with one of them, if causes add up."""

from __future__ import annotations

from functools import cached_property

import jax
import jax.numpy as jnp

from multicause.arrays import Array, matmul, relative, sum_in_double
from multicause.expectations import Recognized
from multicause.generative import GenerativeModel
from multicause.posteriors.evolution.bit_sets import single_changes, unpacked
from multicause.posteriors.evolution.few_flips import FEW
from multicause.posteriors.evolution.flips import FlipMoments, FlipSums, Reference, moments_of
from multicause.posteriors.expectations.expansion import absolute
from multicause.posteriors.expectations.row_states import RowStates
from multicause.records import Block, Parameters


class FlipStates(RowStates):
    """Expectations under q_n(s) ∝ p(s, y_n)^β over states that are bits of words (words, S, n).

    ``scores`` (S, n) are log joints relative to that of ``compared``, −∞ for places without a state. Moments are sums
    over the causes in which states differ from it, so that it should be one of the best.
    """

    def __init__(
        self,
        model: GenerativeModel,
        parameters: Parameters,
        block: Block,
        temperature: Array,
        sums: FlipSums,
        compared: Reference,
        words: Array,
        scores: Array,
    ) -> None:
        self._model, self._parameters, self._block = model, parameters, block
        self.rows, self.row_weights = block.rows, block.weights
        self._origin = model.noise.origin(parameters.noise)
        self._data = relative(block.rows, self._origin)
        self._temperature = temperature.astype(block.rows.dtype)
        self._sums, self._compared, self._words, dtype = sums, compared, words, block.rows.dtype
        beta = 1 / self._temperature
        scores = scores.astype(dtype)
        largest = jnp.max(scores, axis=0)
        u = jnp.exp(beta * (scores - largest))
        z = jnp.sum(u, axis=0)
        self._q = u / z  # (S, n)
        self._largest, self._z = largest, z
        self._has = jnp.isfinite(scores)
        self._log_z = jnp.log(z) + beta * (largest + compared.log_joint)
        self._log_joint = jnp.sum(self._q * jnp.where(self._has, scores, 0), axis=0) + compared.log_joint
        zero = jnp.zeros((1, block.rows.shape[1]), dtype)
        self._constant = model.noise.log_base(zero, model.noise.summarize(zero), parameters.noise)
        self._base = self._constant + model.prior.log_probability_of_singles(parameters.prior)[0]

    @property
    def probabilities(self) -> Array:  # type: ignore[override]
        """Posterior probabilities q_n(s) of the states of each row: (n, S)."""
        return self._q.T

    @cached_property
    def _states(self) -> Array:  # type: ignore[override]
        """States as numbers (n, S, H), for sums over features that some updates need."""
        states = unpacked(self._words, len(self._parameters.components))
        return jnp.transpose(states, (2, 1, 0)).astype(self.rows.dtype)

    @cached_property
    def _means(self) -> Array:  # type: ignore[override]
        """Means of all states, relative to the origin: (n, S, D)."""
        means = self._model.combination.mean(self._parameters.components, self._flat)
        return relative(means, self._origin).reshape(*self._states.shape[:2], -1)

    @cached_property
    def _moments(self) -> FlipMoments:
        """Moments of the changes from the state that all are compared with."""
        compared, dtype = self._compared, self.rows.dtype
        singles = jnp.zeros(compared.on.shape, dtype)
        if len(singles) > FEW:
            kept = unpacked(single_changes(self._words, self._has, compared.words), len(singles))
            gains = compared.gains.astype(dtype)
            singles = jnp.where(kept, jnp.exp((gains - self._largest) / self._temperature) / self._z, 0)
        return moments_of(compared, self._words, self._q, singles, self.row_weights)

    @property
    def _compared_state(self) -> Array:
        """The state of each row that all are compared with: (H, n)."""
        return self._compared.on.astype(self.rows.dtype)

    @cached_property
    def _mean(self) -> Array:
        """Posterior means of the causes: (H, n)."""
        return jnp.clip(self._compared_state + self._moments.mean, 0, 1)

    @property
    def mean_causes(self) -> Array:  # type: ignore[override]
        """Posterior mean ⟨s⟩ of the causes: (n, H)."""
        return self._mean.T

    @property
    def mean_active(self) -> Array:
        """Probability that each cause is on: (n, H)."""
        return self.mean_causes

    @property
    def total_causes(self) -> Array:  # type: ignore[override]
        """Sum of the posterior means of the causes: (H,)."""
        return sum_in_double(self._mean * self.row_weights, axis=1)

    @property
    def total_active(self) -> Array:
        """Expected number of rows in which each cause is on: (H,)."""
        return self.total_causes

    @cached_property
    def cause_pairs(self) -> Array:  # type: ignore[override]
        """Second moments Σ_n w_n ⟨s sᵀ⟩ with s = r + δ, from r (r/2 + ⟨δ⟩)ᵀ, its transpose and ⟨δ δᵀ⟩: (H, H)."""
        half = (0.5 * self._compared_state + self._moments.mean) * self.row_weights
        products = matmul(self._compared_state, half.T).astype(jnp.float64)
        return products + products.T + self._moments.pairs

    @property
    def cause_data(self) -> Array:  # type: ignore[override]
        """Σ_n w_n ⟨s⟩ y_nᵀ: (H, D)."""
        return absolute(matmul(self._mean * self.row_weights, self._data), self.total_causes, self._origin)

    @property
    def residuals(self) -> Array:  # type: ignore[override]
        """Expected squared residuals Σ_n w_n ⟨(y_nd − w̄_d)²⟩, those of one state and its changes: (D,)."""
        components = self._parameters.components
        first = self._data - relative(matmul(self._compared_state.T, components), self._origin)
        changes = matmul(self._moments.mean.T, components)
        squares = sum_in_double(self.row_weights[:, None] * first * (first - 2 * changes), axis=0)
        exact = components.astype(jnp.float64)
        return squares + jnp.sum(exact * matmul(self._moments.pairs, exact), axis=0)

    @property
    def total_log_likelihood(self) -> Array:  # type: ignore[override]
        """Expected log-likelihood Σ_n w_n ⟨log p(y_n | s)⟩."""
        expected = self._log_joint - matmul(self._sums.log_odds, self._mean)
        return sum_in_double(self.row_weights * (expected + self._constant))

    def mean_data(self) -> Array:
        """Return the reconstruction ⟨w̄(s)⟩ of each row: (n, D)."""
        return matmul(self.mean_causes, self._parameters.components)

    def recognize(self, top: int) -> Recognized:
        """Return the most probable states of each row."""
        probabilities, places = (each.T for each in jax.lax.top_k(self._q.T, top))
        words = jnp.stack([jnp.take_along_axis(each, places, axis=0) for each in self._words])
        states = jnp.transpose(unpacked(words, len(self._parameters.components)), (2, 1, 0))
        return Recognized(states.astype(jnp.int8), probabilities.T, self.log_evidence)
