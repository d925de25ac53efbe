"""Inference of as many causes as dimensions that generate the data without noise: TN10 eq. 10.33–10.35."""

from typing import Any

import jax.numpy as jnp

from multicause.arrays import Array, matmul
from multicause.compatibility import Capability, Expectation, Likelihood, Requirements, Rule, Support
from multicause.expectations import Inference, Recognized
from multicause.generative import GenerativeModel
from multicause.posteriors.base import Posterior
from multicause.posteriors.expectations.row_totals import ScaleFreeTotals
from multicause.records import Block, Parameters

# Number of arrays (n, H) that are in memory at once.
ARRAYS = 8


class Inverse(Posterior):
    """The deterministic and exact posterior v = W·u with W = G⁻¹."""

    monotone = True
    requires = Requirements(
        supports=frozenset({Support.REAL, Support.GAUSSIAN}),
        rules=frozenset({Rule.SUM}),
        likelihoods=frozenset({Likelihood.NONE}),
        capabilities=frozenset({Capability.WHITENED}),  # for steps of the natural gradient
    )
    offers = frozenset({Expectation.MOMENTS, Expectation.EFFECTS, Expectation.SLOPES})

    def bind(self, model: GenerativeModel, n_components: int, n_features: int, n_rows: int) -> "Inverse":
        """Return this posterior; raise ValueError unless there are as many causes as dimensions."""
        if n_components != n_features:
            raise ValueError(
                f"Inverse needs as many causes as dimensions, so that they can be read off the data; got n_components="
                f"{n_components} and {n_features} features. Use n_components={n_features}, or IndependentComponents, "
                "which reduces dimensions first."
            )
        return self

    @property
    def bound_label(self) -> str:
        """Description of the bound, which is the log evidence itself."""
        return "log evidence"

    def n_states(self, n_components: int) -> int:
        """Return one, as causes are determined by the data."""
        return 1

    def check(self, n_components: int) -> None:
        """Accept any number of causes."""
        return

    def bytes_per_row(self, n_components: int, n_features: int, itemsize: int, linear: bool = False) -> int:
        """Return the memory of a row: a few numbers for each cause, of which there are as many as features."""
        return itemsize * ARRAYS * n_features

    def bytes_of_states(self, n_components: int, n_features: int, itemsize: int) -> int:
        """Return the memory of a few square matrices."""
        return itemsize * ARRAYS * n_features**2

    def infer(self, model: GenerativeModel, parameters: Parameters, block: Block, temperature: Array) -> Inference:
        """Return expectations under the one state of each row."""
        return Inverted(model, parameters, block)


class Inverted(ScaleFreeTotals):
    """Expectations under q_n(v) = δ(v − W·u_n), which is exact: F is the log-likelihood (TN10 eq. 10.35)."""

    def __init__(self, model: GenerativeModel, parameters: Parameters, block: Block) -> None:
        self._model, self._parameters, self._block = model, parameters, block
        self.rows, self.row_weights = block.rows, block.weights
        self._prior: Any = model.prior
        self._log_det = jnp.linalg.slogdet(parameters.components)[1]
        #: W·u: (n, H).
        self.mean_causes = matmul(block.rows, jnp.linalg.inv(parameters.components))
        self._standard = self.mean_causes / parameters.prior["scale"]

    @property
    def log_evidence(self) -> Array:  # type: ignore[override]
        """Log evidence Σ_a g(v_a) + log |det W| of each row: (n,)."""
        base = self._model.noise.log_base(self.rows, self._block.summary, self._parameters.noise)
        return self._prior.log_probability(self.mean_causes, self._parameters.prior) - self._log_det + base

    @property
    def free_energy(self) -> Array:  # type: ignore[override]
        """Free energy of each row, which equals the log evidence at every temperature: (n,)."""
        return self.log_evidence

    @property
    def _weighted_slope(self) -> Array:
        return self._prior.slope(self._standard) * (self.row_weights[:, None] / self._parameters.prior["scale"])

    @property
    def slope_causes(self) -> Array:  # type: ignore[override]
        """Products Σ_n w_n g′(v_a) v_b of the prior's slope and the causes: (H, H)."""
        return matmul(self._weighted_slope.T, self.mean_causes)

    @property
    def curvature_squares(self) -> Array:  # type: ignore[override]
        """Products Σ_n w_n g″(v_a) v_b² of the prior's curvature and the squared causes: (H, H)."""
        scale = self._parameters.prior["scale"]
        weighted = self._prior.curvature(self._standard) * (self.row_weights[:, None] / scale**2)
        return matmul(weighted.T, self.mean_causes**2)

    @property
    def total_causes(self) -> Array:  # type: ignore[override]
        """Sum of the causes, Σ_n w_n v: (H,)."""
        return matmul(self.row_weights, self.mean_causes)

    @property
    def cause_data(self) -> Array:  # type: ignore[override]
        """Products of causes and data, Σ_n w_n v y_nᵀ: (H, D)."""
        return matmul((self.mean_causes * self.row_weights[:, None]).T, self.rows)

    @property
    def cause_pairs(self) -> Array:  # type: ignore[override]
        """Diagonal matrix of Σ_n w_n v²; other second moments are never used: (H, H)."""
        return jnp.diag(matmul(self.row_weights, self.mean_causes**2))

    @property
    def total_effects(self) -> Array:  # type: ignore[override]
        """Total weight of rows for causes that are not always zero, as noiseless data depend on every cause: (H,)."""
        return jnp.where(jnp.diagonal(self.cause_pairs) > 0, jnp.sum(self.row_weights), 0)

    def mean_data(self) -> Array:
        """Return G·W·u, the data themselves: (n, D)."""
        return matmul(self.mean_causes, self._parameters.components)

    def recognize(self, top: int) -> Recognized:
        """Return the causes of each row, its only state."""
        return Recognized(self.mean_causes[:, None], jnp.ones((len(self.rows), 1), self.rows.dtype), self.log_evidence)
