"""The exact posterior of Gaussian causes that add up under Gaussian noise: TN10 eq. 10.20 and its appendix."""

from functools import cached_property

import jax
import jax.numpy as jnp

from multicause.arrays import Array, matmul, sum_in_double
from multicause.compatibility import Expectation, Likelihood, Link, Requirements, Rule, Spread, Support
from multicause.expectations import Inference, Recognized
from multicause.generative import GenerativeModel
from multicause.posteriors.base import Posterior
from multicause.posteriors.expectations.row_totals import RowTotals
from multicause.posteriors.incomplete_gaussian import IncompleteGaussianCauses
from multicause.records import Block, Parameters

# Numbers of arrays (n, H) and (n, D) that are in memory at once.
ARRAYS_PER_CAUSE = 4
ARRAYS_PER_FEATURE = 3
# Number of matrices (H, H) of each row that are in memory at once, if values may be missing.
MATRICES_PER_ROW = 5
# Damping of each cause in the limit, in rounding errors of its precision, which is singular if causes are parallel.
DAMPING = 64


class LinearGaussian(Posterior):
    """Exact posterior p(v | u) = N(v; W·u, Ψ) with Ψ = (1/scale² + Gᵀ Σ⁻¹ G)⁻¹ and W = Ψ Gᵀ Σ⁻¹.

    Parameters
    ----------
    limit : bool, default=False
        Whether to take the limit of vanishing noise: causes are then deterministic, v = (GᵀG)⁻¹ Gᵀ u if all dimensions
        are equally noisy, and the prior has no influence (TN10 eq. 10.22–10.23). In this limit, factor analysis becomes
        principal components analysis.
    """

    monotone = True
    requires = Requirements(
        supports=frozenset({Support.GAUSSIAN}),
        rules=frozenset({Rule.SUM}),
        links=frozenset({Link.MEAN}),
        likelihoods=frozenset({Likelihood.OF_MEANS}),
        spreads=frozenset({Spread.CONSTANT}),
    )
    offers = frozenset({Expectation.MOMENTS, Expectation.EFFECTS, Expectation.LIKELIHOOD, Expectation.RESIDUALS})

    def __init__(self, *, limit: bool = False) -> None:
        self.limit = limit

    @property
    def bound_label(self) -> str:
        """Description of the bound: the log evidence, or in the limit F without the prior (TN10 eq. 10.23)."""
        return "free energy without the prior" if self.limit else "log evidence"

    def n_states(self, n_components: int) -> int:
        """Return one, as only the posterior mean is listed."""
        return 1

    def check(self, n_components: int) -> None:
        """Accept any number of causes."""
        return

    def bytes_per_row(self, n_components: int, n_features: int, itemsize: int, linear: bool = False) -> int:
        """Return the memory of a row: a few numbers for each cause and feature."""
        return itemsize * (ARRAYS_PER_CAUSE * n_components + ARRAYS_PER_FEATURE * n_features)

    def bytes_of_mask(self, n_components: int, n_features: int, itemsize: int) -> int:
        """Return the additional memory of a row with missing values: a few matrices (H, H)."""
        return itemsize * (ARRAYS_PER_FEATURE * n_features + MATRICES_PER_ROW * n_components**2)

    def bytes_of_states(self, n_components: int, n_features: int, itemsize: int) -> int:
        """Return the memory of components, and of covariances of the causes."""
        return itemsize * ARRAYS_PER_CAUSE * n_components * (n_components + n_features)

    def infer(self, model: GenerativeModel, parameters: Parameters, block: Block, temperature: Array) -> Inference:
        """Return expectations under one covariance for all rows, or one per row if values may be missing."""
        if model.missing:
            posterior = (model, parameters, block, temperature)
            return IncompleteGaussianCauses(*posterior, limit=self.limit, damping=DAMPING)
        return GaussianCauses(model, parameters, block, temperature, limit=self.limit)


class GaussianCauses(RowTotals):
    """Expectations under q_n(v) = N(m_n, TΨ) at temperature T, which scales the covariance and not the mean."""

    linear = True

    def __init__(
        self, model: GenerativeModel, parameters: Parameters, block: Block, temperature: Array, *, limit: bool
    ) -> None:
        self._model, self._parameters, self._block, self._limit = model, parameters, block, limit
        self.rows, self.row_weights = block.rows, block.weights
        self._temperature = temperature.astype(block.rows.dtype)
        components = parameters.components
        self._natural = model.noise.natural(components, parameters.noise)
        self._gram = matmul(self._natural, components.T)  # Gᵀ Σ⁻¹ G
        self._scale = model.prior.activity(parameters.prior)
        # Except in the limit, the prior keeps the precision matrix regular.
        damping = DAMPING * jnp.finfo(self._gram.dtype).eps * jnp.diagonal(self._gram)
        precision = self._gram + jnp.diag(damping if limit else self._scale**-2)
        factor = jnp.linalg.cholesky(precision)
        self._log_det = -2 * jnp.sum(jnp.log(jnp.diagonal(factor)))  # of Ψ
        identity = jnp.eye(len(components), dtype=precision.dtype)
        self.covariance = jax.scipy.linalg.cho_solve((factor, True), identity)  # Ψ
        projected = matmul(block.rows, self._natural.T)
        #: W·u: (n, H).
        self.mean_causes = jax.scipy.linalg.cho_solve((factor, True), projected.T).T
        self._precision = precision
        self._projected = projected
        self._base = model.noise.log_base(block.rows, block.summary, parameters.noise)

    @property
    def _log_joint_at_mean(self) -> Array:
        """Log joint log p(m, y) at the posterior mean; in the limit, without the prior: (n,)."""
        # At the maximum, errors of m only matter to second order; other formulas lose most digits for singular data.
        slope = self._projected - 0.5 * matmul(self.mean_causes, self._precision)
        joint = self._base + jnp.sum(self.mean_causes * slope, axis=1)
        if self._limit:
            return joint
        return joint - jnp.sum(jnp.log(self._scale)) - 0.5 * len(self._scale) * jnp.log(2 * jnp.pi)

    def _energy(self, weight_of_entropy: Array) -> Array:
        """Return ⟨log p⟩ + weight · H(q): (n,)."""
        if self._limit:
            return self._log_joint_at_mean
        H = len(self._scale)
        entropy = 0.5 * (H * (1 + jnp.log(2 * jnp.pi * self._temperature)) + self._log_det)
        return self._log_joint_at_mean - 0.5 * H * self._temperature + weight_of_entropy * entropy

    @property
    def log_evidence(self) -> Array:  # type: ignore[override]
        """Log evidence log N(y; 0, G Gᵀ + Σ) of each row (TN10 eq. 10.21); in the limit, F: (n,)."""
        return self._energy(jnp.ones((), self.rows.dtype))

    @property
    def free_energy(self) -> Array:  # type: ignore[override]
        """Free energy ⟨log p⟩ + T H(q) of each row: (n,)."""
        return self._energy(self._temperature)

    @property
    def magnitude(self) -> Array:  # type: ignore[override]
        """Size of the terms that cancel in the log-likelihood, from the noise; in the limit, times the damping."""
        roundings = DAMPING if self._limit else 1
        size = self._model.noise.magnitude(self.rows, self._block.summary, self._parameters.noise)
        return roundings * sum_in_double(self.row_weights * size)

    @cached_property
    def total_log_likelihood(self) -> Array:  # type: ignore[override]
        """Expected log-likelihood Σ_n w_n (⟨vᵀ GᵀΣ⁻¹ y − ½ vᵀ GᵀΣ⁻¹G v⟩ + b(y))."""
        scores = sum_in_double(self.cause_data * self._natural) - 0.5 * sum_in_double(self.cause_pairs * self._gram)
        return scores + sum_in_double(self.row_weights * self._base)

    @cached_property
    def total_causes(self) -> Array:  # type: ignore[override]
        """Sum of the posterior means, Σ_n w_n m_n: (H,)."""
        return matmul(self.row_weights, self.mean_causes)

    @cached_property
    def _weighted_means(self) -> Array:
        return self.mean_causes * self.row_weights[:, None]

    @cached_property
    def cause_data(self) -> Array:  # type: ignore[override]
        """Products of posterior means and data, Σ_n w_n m_n y_nᵀ: (H, D)."""
        return matmul(self._weighted_means.T, self.rows)

    @cached_property
    def cause_pairs(self) -> Array:  # type: ignore[override]
        """Second moments Σ_n w_n (m_n m_nᵀ + TΨ) of the causes: (H, H)."""
        pairs = matmul(self._weighted_means.T, self.mean_causes)
        if self._limit:
            return pairs
        return pairs + jnp.sum(self.row_weights) * self._temperature * self.covariance

    @property
    def total_effects(self) -> Array:  # type: ignore[override]
        """Contribution ½ Σ_n w_n ⟨v_a²⟩ G_aᵀ Σ⁻¹ G_a of each cause to ⟨log p(u | v)⟩ of all rows: (H,)."""
        return 0.5 * jnp.diagonal(self.cause_pairs) * jnp.diagonal(self._gram)

    @property
    def residuals(self) -> Array:  # type: ignore[override]
        """Expected squared residuals Σ_n w_n ((y − G·m)² + T diag(GᵀΨG)): (D,)."""
        apart = (self.rows - self.mean_data()).astype(jnp.float64)
        of_means = matmul(self.row_weights.astype(jnp.float64), apart**2)
        if self._limit:
            return of_means
        components = self._parameters.components
        doubt = jnp.sum(components * matmul(self.covariance, components), axis=0)
        return of_means + jnp.sum(self.row_weights) * self._temperature * doubt

    def mean_data(self) -> Array:
        """Return the reconstruction G·W·u of each row: (n, D)."""
        return matmul(self.mean_causes, self._parameters.components)

    def recognize(self, top: int) -> Recognized:
        """Return the posterior mean of each row, which is also the most probable state."""
        return Recognized(self.mean_causes[:, None], jnp.ones((len(self.rows), 1), self.rows.dtype), self.log_evidence)
