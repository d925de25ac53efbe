"""Recognition where as many causes as dimensions make the data without noise: TN10 eq. 10.33–10.35."""

from functools import cached_property
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp

from multicause.arrays import Array, matmul, sum_in_double
from multicause.compatibility import Expectation, Likelihood, Requirements, Rule, Support
from multicause.posteriors.base import Inference, Posterior, Recognized

if TYPE_CHECKING:
    from multicause.model import Block, Model, Parameters

# Arrays of (n, H) that are alive at once.
ARRAYS = 8


class Inverse(Posterior):
    """v = W·u with W = G⁻¹, exactly and without doubt."""

    monotone = True
    requires = Requirements(
        supports=frozenset({Support.REAL, Support.GAUSSIAN}),
        rules=frozenset({Rule.SUM}),
        likelihoods=frozenset({Likelihood.NONE}),
        estimator="IndependentComponents",  # steps of the natural gradient need whitened data
    )
    offers = frozenset({Expectation.MOMENTS, Expectation.EFFECTS, Expectation.SLOPES})

    def bind(self, model: "Model", n_components: int, n_features: int, n_rows: int) -> "Inverse":
        """The same, if there are as many causes as dimensions."""
        if n_components != n_features:
            raise ValueError(
                f"Inverse needs as many causes as dimensions, so that they can be read off the data; got n_components="
                f"{n_components} and {n_features} features. Use n_components={n_features}, or IndependentComponents, "
                "which reduces dimensions first."
            )
        return self

    @property
    def bound_label(self) -> str:
        """The log evidence itself."""
        return "log evidence"

    def n_states(self, n_components: int) -> int:
        """One."""
        return 1

    def check(self, n_components: int) -> None:
        """Any number of causes will do."""
        return

    def bytes_per_row(self, n_components: int, n_features: int, itemsize: int, linear: bool = False) -> int:
        """A few numbers for each cause, of which there are as many as features."""
        return itemsize * ARRAYS * n_features

    def bytes_of_states(self, n_components: int, n_features: int, itemsize: int) -> int:
        """Some square matrices."""
        return itemsize * ARRAYS * n_features**2

    def infer(self, model: "Model", parameters: "Parameters", block: "Block", temperature: Array) -> Inference:
        """The one state of each row."""
        return Inverted(model, parameters, block)


class Inverted(Inference):
    """q_n(v) = δ(v − W·u_n), which is exact: F is the log-likelihood (TN10 eq. 10.35)."""

    def __init__(self, model: "Model", parameters: "Parameters", block: "Block") -> None:
        self._model, self._parameters, self._block = model, parameters, block
        self.rows, self.row_weights = block.rows, block.weights
        self._prior: Any = model.prior
        self._log_det = jnp.linalg.slogdet(parameters.components)[1]
        #: W·u: (n, H).
        self.mean_causes = matmul(block.rows, jnp.linalg.inv(parameters.components))
        self._standard = self.mean_causes / parameters.prior["scale"]

    @property
    def log_evidence(self) -> Array:  # type: ignore[override]
        """Σ_a g(v_a) + log |det W|: (n,)."""
        base = self._model.noise.log_base(self.rows, self._block.summary, self._parameters.noise)
        return self._prior.log_probability(self.mean_causes, self._parameters.prior) - self._log_det + base

    @property
    def free_energy(self) -> Array:  # type: ignore[override]
        """The same at every temperature."""
        return self.log_evidence

    @cached_property
    def total_bound(self) -> Array:  # type: ignore[override]
        """Of all rows."""
        return sum_in_double(self.row_weights * self.log_evidence)

    @property
    def total_free_energy(self) -> Array:  # type: ignore[override]
        """Of all rows."""
        return self.total_bound

    @property
    def total_log_likelihood(self) -> Array:  # type: ignore[override]
        """There is no noise that would need it."""
        return jnp.zeros((), jnp.float64)

    @property
    def magnitude(self) -> Array:  # type: ignore[override]
        """Nothing cancels but the rounding of F itself."""
        return jnp.abs(self.total_bound)

    @property
    def _weighted_slope(self) -> Array:
        return self._prior.slope(self._standard) * (self.row_weights[:, None] / self._parameters.prior["scale"])

    @property
    def slope_causes(self) -> Array:  # type: ignore[override]
        """Σ_n w_n g′(v_a) v_b: (H, H)."""
        return matmul(self._weighted_slope.T, self.mean_causes)

    @property
    def curvature_squares(self) -> Array:  # type: ignore[override]
        """Σ_n w_n g″(v_a) v_b²: (H, H)."""
        scale = self._parameters.prior["scale"]
        weighted = self._prior.curvature(self._standard) * (self.row_weights[:, None] / scale**2)
        return matmul(weighted.T, self.mean_causes**2)

    @property
    def total_causes(self) -> Array:  # type: ignore[override]
        """Σ_n w_n v: (H,)."""
        return matmul(self.row_weights, self.mean_causes)

    @property
    def cause_data(self) -> Array:  # type: ignore[override]
        """Σ_n w_n v y_nᵀ: (H, D)."""
        return matmul((self.mean_causes * self.row_weights[:, None]).T, self.rows)

    @property
    def cause_pairs(self) -> Array:  # type: ignore[override]
        """Only the diagonal is asked for: Σ_n w_n v²."""
        return jnp.diag(matmul(self.row_weights, self.mean_causes**2))

    @property
    def total_effects(self) -> Array:  # type: ignore[override]
        """Σ_n w_n of a cause that is not always zero, as data without noise depend on every cause: (H,)."""
        return jnp.where(jnp.diagonal(self.cause_pairs) > 0, jnp.sum(self.row_weights), 0)

    def mean_data(self) -> Array:
        """G·W·u, the data themselves: (n, D)."""
        return matmul(self.mean_causes, self._parameters.components)

    def recognize(self, top: int) -> Recognized:
        """The one state."""
        return Recognized(self.mean_causes[:, None], jnp.ones((len(self.rows), 1), self.rows.dtype), self.log_evidence)
