"""Inference over separate states of each row, for any combination and noise with a likelihood of means."""

from __future__ import annotations

from functools import cached_property

import jax
import jax.numpy as jnp
import numpy as np

from multicause.arrays import Array, matmul, observed_data, relative, sum_in_double
from multicause.expectations import Recognized, Term
from multicause.generative import GenerativeModel
from multicause.posteriors.expectations.expansion import absolute
from multicause.posteriors.expectations.observed import cause_data_of, log_base, mask_of
from multicause.posteriors.expectations.row_weights import RowWeights
from multicause.records import Block, Parameters

# Number of arrays (n, S, D) that are in memory at once: means, a function of them, and its products with data.
ARRAYS_PER_MEAN = 4


def bytes_of_row(n_states: int, n_components: int, n_features: int, itemsize: int) -> int:
    """Return the memory of one row: states, their means and a few numbers of each."""
    per_state = 2 * n_components + ARRAYS_PER_MEAN * n_features + 8
    return itemsize * (n_states * per_state + 4 * n_features)


def scores_of(model: GenerativeModel, parameters: Parameters, rows: Array, states: Array) -> tuple[Array, Array]:
    """Return Σ_d η(w̄_d)·y_d − A(w̄_d) of states (n, S, H) in rows (n, D): (n, S), and means w̄ − o: (n, S, D)."""
    noise = model.noise
    origin, observed = noise.origin(parameters.noise), mask_of(model, rows)
    data = observed_data(rows, origin, observed)
    flat = states.reshape(-1, states.shape[-1]).astype(rows.dtype)
    means = relative(model.combination.mean(parameters.components, flat), origin).reshape(*states.shape[:2], -1)
    normalizers = noise.log_normalizer(means, parameters.noise)
    if observed is not None:
        normalizers = normalizers * observed[:, None]
    products = noise.natural(means, parameters.noise) * data[:, None]
    return jnp.sum(products - normalizers, axis=-1), means


def log_prior_of(model: GenerativeModel, parameters: Parameters, states: Array) -> Array:
    """Return log p(s) of states (n, S, H): (n, S)."""
    dtype = parameters.components.dtype
    flat = states.reshape(-1, states.shape[-1]).astype(dtype)
    return model.prior.log_probability(flat, parameters.prior).reshape(states.shape[:2])


class RowStates(RowWeights):
    """Expectations under q_n(s) ∝ p(s, y_n)^β over states (n, S, H) of each row.

    ``valid`` (n, S) says which of them count, by default all: a state must not be counted twice. Data and means are
    relative to the noise's origin. Blocks must be small enough for arrays (n, S, D); see :func:`bytes_of_row`.
    """

    def __init__(
        self,
        model: GenerativeModel,
        parameters: Parameters,
        block: Block,
        temperature: Array,
        states: Array,
        valid: Array | None = None,
    ) -> None:
        self._model, self._parameters, self._block = model, parameters, block
        self.rows, self.row_weights = block.rows, block.weights
        self.observed = mask_of(model, block.rows)
        self._origin = model.noise.origin(parameters.noise)
        self._data = observed_data(block.rows, self._origin, self.observed)
        self._temperature = temperature.astype(block.rows.dtype)
        self._states = states.astype(block.rows.dtype)
        self._scores, self._means = scores_of(model, parameters, block.rows, states)
        log_joint = self._scores + log_prior_of(model, parameters, states)
        if valid is not None:
            log_joint = jnp.where(valid, log_joint, -jnp.inf)
        base = log_base(model.noise, self._data, block.summary, parameters.noise, self.observed)
        self._weigh(log_joint, base)

    @property
    def _weights(self) -> Array:
        """Probabilities of states times the weight of their row, w_n q_n(s): (n, S)."""
        return self.probabilities * self.row_weights[:, None]

    @property
    def _flat(self) -> Array:
        return self._states.reshape(-1, self._states.shape[-1])

    @cached_property
    def mean_causes(self) -> Array:  # type: ignore[override]
        """Posterior mean ⟨s⟩ of the causes: (n, H)."""
        return jnp.einsum("ns,nsh->nh", self.probabilities, self._states, precision=jax.lax.Precision.HIGHEST)

    @cached_property
    def mean_active(self) -> Array:
        """Probability that each cause is not zero: (n, H)."""
        active = (self._states != 0).astype(self.rows.dtype)
        return jnp.einsum("ns,nsh->nh", self.probabilities, active, precision=jax.lax.Precision.HIGHEST)

    @property
    def total_active(self) -> Array:
        """Expected number of rows in which each cause is not zero: (H,)."""
        return sum_in_double(self.mean_active * self.row_weights[:, None], axis=0)

    def level_counts(self, levels: tuple[float, ...]) -> Array:
        """Return the expected number of rows with each level of each cause: (H, K)."""
        weights = self._weights[..., None]
        counts = [sum_in_double(jnp.sum(jnp.where(self._states == level, weights, 0), axis=1), 0) for level in levels]
        return jnp.stack(counts, axis=1)

    @cached_property
    def cause_pairs(self) -> Array:  # type: ignore[override]
        """Second moments Σ_n w_n ⟨s sᵀ⟩ of the causes: (H, H)."""
        return matmul((self._flat * self._weights.reshape(-1, 1)).T, self._flat).astype(jnp.float64)

    @property
    def cause_data(self) -> Array:  # type: ignore[override]
        """Σ_n w_n ⟨s⟩ y_nᵀ: (H, D)."""
        if self.observed is not None:
            seen = self._weights[..., None] * self.observed[:, None]
            residuals = (seen * (self._data[:, None] - self._means)).reshape(len(self._flat), -1)
            slope = matmul(self._flat.T, residuals)
            return cause_data_of(self.cause_pairs, self._parameters.components, slope)
        products = matmul((self.mean_causes * self.row_weights[:, None]).T, self._data)
        return absolute(products, self.total_causes, self._origin)

    def pull(self, *terms: Term) -> Array:
        """Return the sums of :attr:`Inference.pull`, state by state."""
        combination, noise = self._model.combination, self._parameters.noise
        flat, means = self._flat, self._means.reshape(len(self._flat), -1)
        overlap, n_states = combination.overlap(flat), self._states.shape[1]
        weights = self._weights.reshape(-1, 1)
        if self.observed is not None:
            weights = weights * jnp.repeat(self.observed, n_states, axis=0)
        data = jnp.repeat(self._data, n_states, axis=0)
        values = []
        for of_data, of_mean in terms:
            value = jnp.zeros_like(means)
            value += 0 if of_data is None else of_data(means, overlap, noise) * data
            value += 0 if of_mean is None else of_mean(means, overlap, noise)
            values.append(value * weights)
        pulled = combination.pull_states(self._parameters.components, flat, jnp.stack(values), self._temperature)
        return pulled.astype(jnp.float64)

    @property
    def residuals(self) -> Array:  # type: ignore[override]
        """Expected squared residuals Σ_n w_n ⟨(y_nd − w̄_d)²⟩ over observed values: (D,)."""
        squares = jnp.sum((self._data[:, None] - self._means) ** 2 * self._weights[..., None], axis=1)
        return sum_in_double(squares if self.observed is None else squares * self.observed, axis=0)

    @property
    def total_log_likelihood(self) -> Array:  # type: ignore[override]
        """Expected log-likelihood Σ_n w_n ⟨log p(y_n | s)⟩."""
        expected = jnp.sum(self.probabilities * self._scores, axis=1)
        return sum_in_double(self.row_weights * (expected + self._base))

    def mean_data(self) -> Array:
        """Return the reconstruction ⟨w̄(s)⟩ of each row: (n, D)."""
        precision = jax.lax.Precision.HIGHEST
        means = jnp.einsum("ns,nsd->nd", self.probabilities, self._means, precision=precision)
        return means if self._origin is None else means + self._origin

    def recognize(self, top: int) -> Recognized:
        """Return the most probable states of each row."""
        probabilities, best = jax.lax.top_k(self.probabilities, top)
        states = jnp.take_along_axis(self._states, best[..., None], axis=1)
        whole = all(value == np.round(value) for value in self._model.prior.strengths)
        return Recognized(states.astype(jnp.int8) if whole else states, probabilities, self.log_evidence)
