"""The posterior of Gaussian causes, given rows with missing values: each row has its own covariance.

With the mask m of a row, Ψ = (1/scale² + Σ_d m_d G_d G_dᵀ/Σ_d)⁻¹ and the mean is Ψ Gᵀ Σ⁻¹ (m ∘ u).
"""

from __future__ import annotations

from functools import cached_property

import jax
import jax.numpy as jnp

from multicause.arrays import Array, inverse_and_log_det, matmul, observed_data, sum_in_double
from multicause.expectations import Recognized
from multicause.generative import GenerativeModel
from multicause.posteriors.expectations.observed import cause_data_of, log_base, mask_of
from multicause.posteriors.expectations.row_totals import RowTotals
from multicause.records import Block, Parameters


class IncompleteGaussianCauses(RowTotals):
    """Expectations under q_n(v) = N(m_n, TΨ_n) at temperature T, for rows with missing values.

    In the ``limit`` of vanishing noise, causes of complete rows are inferred without the prior. A row with missing
    values may have too few observed ones to determine its causes, and keeps the prior.

    The noise may have an ``offset`` (D,), the mean of the data relative to what was subtracted before; it is learned
    with the components, because the mean of the observed values is not the maximum-likelihood estimate.
    """

    linear = True

    def __init__(
        self,
        model: GenerativeModel,
        parameters: Parameters,
        block: Block,
        temperature: Array,
        *,
        limit: bool,
        damping: float,
    ) -> None:
        self._model, self._parameters, self._block, self._limit = model, parameters, block, limit
        self.rows, self.row_weights = block.rows, block.weights
        self._temperature = temperature.astype(block.rows.dtype)
        observed = mask_of(model, block.rows)
        assert observed is not None
        self.observed = observed
        self._data = observed_data(block.rows, parameters.noise.get("offset"), observed)
        components = parameters.components
        H, D = components.shape
        natural = model.noise.natural(components, parameters.noise)
        products = (natural[:, None] * components).reshape(H * H, D)
        self._grams = matmul(observed, products.T).reshape(-1, H, H)
        self._scale = model.prior.activity(parameters.prior)
        prior = jnp.broadcast_to(self._scale**-2, (len(self.rows), H))
        if limit:
            complete = jnp.all(observed > 0, axis=1, keepdims=True)
            damped = damping * jnp.finfo(prior.dtype).eps * jnp.diagonal(self._grams, axis1=1, axis2=2)
            prior = jnp.where(complete, damped, prior)
        precisions = self._grams + prior[:, :, None] * jnp.eye(H, dtype=prior.dtype)
        self._covariances, log_det = inverse_and_log_det(precisions)  # Ψ: (n, H, H)
        self._log_det = -log_det  # of Ψ: (n,)
        self._projected = matmul(self._data, natural.T)
        self._precisions = self._grams if limit else precisions
        #: Ψ Gᵀ Σ⁻¹ (m ∘ u): (n, H).
        mean = _product(self._covariances, self._projected)
        # A second step removes rounding errors of inverses of nearly singular matrices.
        self.mean_causes = mean + _product(self._covariances, self._projected - _product(precisions, mean))
        self._base = log_base(model.noise, self._data, block.summary, parameters.noise, observed)

    def _energy(self, weight_of_entropy: Array) -> Array:
        """Return ⟨log p⟩ + weight · H(q); in the limit, log p at the mean without the prior: (n,)."""
        quadratic = jnp.einsum("nij,nj->ni", self._precisions, self.mean_causes, precision=jax.lax.Precision.HIGHEST)
        joint = self._base + jnp.sum(self.mean_causes * (self._projected - 0.5 * quadratic), axis=1)
        if self._limit:
            return joint
        H = len(self._scale)
        joint = joint - jnp.sum(jnp.log(self._scale)) - 0.5 * H * jnp.log(2 * jnp.pi)
        entropy = 0.5 * (H * (1 + jnp.log(2 * jnp.pi * self._temperature)) + self._log_det)
        return joint - 0.5 * H * self._temperature + weight_of_entropy * entropy

    @property
    def log_evidence(self) -> Array:  # type: ignore[override]
        """Log density of the observed values of each row; in the limit, F: (n,)."""
        return self._energy(jnp.ones((), self.rows.dtype))

    @property
    def free_energy(self) -> Array:  # type: ignore[override]
        """Free energy ⟨log p⟩ + T H(q) of each row: (n,)."""
        return self._energy(self._temperature)

    @property
    def magnitude(self) -> Array:  # type: ignore[override]
        """Size of the terms that cancel in the log-likelihood, as given by the noise, summed over rows."""
        size = self._model.noise.magnitude(self._data, self._block.summary, self._parameters.noise)
        return sum_in_double(self.row_weights * size)

    @cached_property
    def _residual_data(self) -> Array:
        """Residuals y − G·m of the observed values, zero for missing ones: (n, D)."""
        assert self.observed is not None
        return self._data - self.observed * self.mean_data()

    @cached_property
    def _doubts(self) -> Array:
        """Posterior covariances Σ_n w_n m_nd TΨ_n G_d over the observed values of each dimension: (H, D)."""
        components, (n, H, _) = self._parameters.components, self._covariances.shape
        if self._limit:
            return jnp.zeros_like(components)
        assert self.observed is not None
        weighted = (self.observed * self.row_weights[:, None]).T
        of_features = matmul(weighted, self._covariances.reshape(n, H * H)).reshape(-1, H, H)
        products = jnp.einsum("dij,jd->id", of_features, components, precision=jax.lax.Precision.HIGHEST)
        return self._temperature * products

    @property
    def total_log_likelihood(self) -> Array:  # type: ignore[override]
        """Expected log-likelihood of the observed values, Σ_n w_n ⟨log p(y_o | v)⟩."""
        scores = jnp.sum(self.mean_causes * self._projected, axis=1)
        explained = jnp.einsum("nij,ni,nj->n", self._grams, self.mean_causes, self.mean_causes)
        if not self._limit:
            explained += self._temperature * jnp.sum(self._grams * self._covariances, axis=(1, 2))
        return sum_in_double(self.row_weights * (scores - 0.5 * explained + self._base))

    @cached_property
    def total_causes(self) -> Array:  # type: ignore[override]
        """Sum of the posterior means, Σ_n w_n m_n: (H,)."""
        return matmul(self.row_weights, self.mean_causes)

    @cached_property
    def cause_pairs(self) -> Array:  # type: ignore[override]
        """Second moments Σ_n w_n (m_n m_nᵀ + TΨ_n) of the causes: (H, H)."""
        pairs = matmul((self.mean_causes * self.row_weights[:, None]).T, self.mean_causes)
        if self._limit:
            return pairs
        return pairs + self._temperature * jnp.tensordot(self.row_weights, self._covariances, axes=1)

    @cached_property
    def cause_data(self) -> Array:  # type: ignore[override]
        """Products of causes and data, Σ_n w_n ⟨v y_nᵀ⟩, with missing values as latent variables: (H, D)."""
        slope = matmul((self.mean_causes * self.row_weights[:, None]).T, self._residual_data) - self._doubts
        return cause_data_of(self.cause_pairs, self._parameters.components, slope)

    @property
    def total_effects(self) -> Array:  # type: ignore[override]
        """Contribution ½ Σ_n w_n ⟨v_a²⟩ Σ_d m_d G_ad²/Σ_d of each cause to the log-likelihood of all rows: (H,)."""
        squares = self.mean_causes**2
        if not self._limit:
            squares = squares + self._temperature * jnp.diagonal(self._covariances, axis1=1, axis2=2)
        return 0.5 * matmul(self.row_weights, squares * jnp.diagonal(self._grams, axis1=1, axis2=2))

    @property
    def residuals(self) -> Array:  # type: ignore[override]
        """Expected squared residuals Σ_n w_n ⟨(y − G·v)²⟩ over the observed values: (D,)."""
        of_means = matmul(self.row_weights.astype(jnp.float64), self._residual_data.astype(jnp.float64) ** 2)
        return of_means + jnp.sum(self._parameters.components * self._doubts, axis=0)

    def mean_data(self) -> Array:
        """Return the reconstruction G·m of each row: (n, D)."""
        return matmul(self.mean_causes, self._parameters.components)

    def recognize(self, top: int) -> Recognized:
        """Return the posterior mean of each row, which is also the most probable state."""
        return Recognized(self.mean_causes[:, None], jnp.ones((len(self.rows), 1), self.rows.dtype), self.log_evidence)


def _product(matrices: Array, vectors: Array) -> Array:
    """Return the products of matrices (n, H, H) and vectors (n, H), in full precision."""
    return jnp.einsum("nij,nj->ni", matrices, vectors, precision=jax.lax.Precision.HIGHEST)
