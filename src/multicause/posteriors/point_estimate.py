"""Deterministic inference of the most probable causes: TN10 eq. 10.14 and 10.30–10.32."""

from collections.abc import Callable
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from multicause.arrays import Array, largest_eigenvalue, matmul, observed_data, sum_in_double
from multicause.compatibility import Expectation, Likelihood, Link, Requirements, Rule, Spread, Support
from multicause.expectations import Inference, Recognized
from multicause.generative import GenerativeModel
from multicause.posteriors.base import Posterior
from multicause.posteriors.expectations.observed import cause_data_of, log_base, mask_of
from multicause.records import Block, Parameters

SOLVERS = ("accelerated", "dynamics")
# Numbers of arrays (n, H) and (n, D) that are in memory at once.
ARRAYS_PER_CAUSE = 8
ARRAYS_PER_FEATURE = 2


class MostProbable(Posterior):
    """Point estimate v(u) = argmax_v log p(v, u), computed by gradient ascent from v = 0.

    Parameters
    ----------
    solver : {"accelerated", "dynamics"}, default="accelerated"
        "dynamics" follows the network of eq. 10.32, τ dv/dt = Gᵀ(u − G·v)/Σ + g′(v), by Euler steps. Where the prior
        has a kink (``Laplace``), its slope is taken at the end of a step instead of its beginning: otherwise v would
        oscillate around zero. "accelerated" takes the same steps with momentum (Nesterov's, for a kink FISTA),
        restarted in each row whose F would fall, and converges to the same solution many times faster.
    max_steps : int, default=2000
        Maximum number of steps.
    tol : float, default=1e-5
        A row has converged when no cause changes by more than this fraction of its prior's scale in one step.
    """

    requires = Requirements(
        supports=frozenset({Support.REAL, Support.GAUSSIAN}),
        rules=frozenset({Rule.SUM}),
        links=frozenset({Link.MEAN}),
        likelihoods=frozenset({Likelihood.OF_MEANS}),
        spreads=frozenset({Spread.CONSTANT}),
    )
    offers = frozenset({Expectation.MOMENTS, Expectation.EFFECTS, Expectation.LIKELIHOOD, Expectation.RESIDUALS})

    def __init__(self, *, solver: str = "accelerated", max_steps: int = 2000, tol: float = 1e-5) -> None:
        self.solver = solver
        self.max_steps = max_steps
        self.tol = tol

    def validate(self) -> None:
        """Raise ValueError unless the solver is known and the numbers are positive."""
        if self.solver not in SOLVERS:
            raise ValueError(f"Unknown solver {self.solver!r}. Known: {', '.join(map(repr, SOLVERS))}.")
        if self.max_steps < 1 or not (np.isfinite(self.tol) and self.tol > 0):
            raise ValueError(
                f"max_steps must be at least 1 and tol a positive number; got {self.max_steps!r} and {self.tol!r}."
            )

    @property
    def bound_label(self) -> str:
        """Description of F, which is not a bound of the log evidence (TN10 eq. 10.30)."""
        return "log joint density of the row and its most probable causes"

    def n_states(self, n_components: int) -> int:
        """Return one, as only the most probable causes are considered."""
        return 1

    def check(self, n_components: int) -> None:
        """Accept any number of causes, also more than features."""
        return

    def bytes_per_row(self, n_components: int, n_features: int, itemsize: int, linear: bool = False) -> int:
        """Return the memory of a row: a few numbers for each cause and feature."""
        return itemsize * (ARRAYS_PER_CAUSE * n_components + ARRAYS_PER_FEATURE * n_features)

    def bytes_of_states(self, n_components: int, n_features: int, itemsize: int) -> int:
        """Return the memory of components and their products."""
        return itemsize * ARRAYS_PER_FEATURE * n_components * (n_components + n_features)

    def infer(self, model: GenerativeModel, parameters: Parameters, block: Block, temperature: Array) -> Inference:
        """Return the point estimate of each row; a temperature scales log p and does not change its maximum."""
        return PointEstimate(model, parameters, block, self)


class PointEstimate(Inference):
    """Expectations under q_n(v) = δ(v − v(u_n)). F omits the entropy of the point, as in TN10 eq. 10.30."""

    linear = True

    def __init__(self, model: GenerativeModel, parameters: Parameters, block: Block, solver: MostProbable) -> None:
        self._model, self._parameters, self._block = model, parameters, block
        self.rows, self.row_weights = block.rows, block.weights
        natural = model.noise.natural(parameters.components, parameters.noise)
        self._natural, self._gram = natural, matmul(natural, parameters.components.T)
        self.observed = mask_of(model, block.rows)
        self._data = observed_data(block.rows, None, self.observed)
        self._drive = matmul(self._data, natural.T)
        self._prior: Any = model.prior
        #: v(u): (n, H).
        self.mean_causes = self._solve(solver)
        self._base = log_base(model.noise, self._data, block.summary, parameters.noise, self.observed)

    def _explained(self, v: Array) -> Array:
        """Return v·GᵀΣ⁻¹G over the observed dimensions of each row: (n, H)."""
        if self.observed is None:
            return matmul(v, self._gram)
        return matmul(self.observed * matmul(v, self._parameters.components), self._natural.T)

    def _solve(self, solver: MostProbable) -> Array:
        """Follow the gradient of F (eq. 10.31) in all rows at once until all have converged."""
        scale, gram, drive, prior = self._parameters.prior["scale"], self._gram, self._drive, self._prior
        explained = self._explained
        kink = prior.kinked
        # If all components are zero, causes do not move and any step length is valid.
        curvature = jnp.maximum(largest_eigenvalue(gram), jnp.finfo(gram.dtype).tiny)
        steepest = 0.0 if kink else prior.steepest / jnp.min(scale) ** 2
        step = 1 / (curvature + steepest)

        def forward(v: Array) -> Array:
            """Return the causes after one Euler step."""
            slope = drive - explained(v)
            if kink:
                moved = v + step * slope
                return jnp.sign(moved) * jnp.maximum(jnp.abs(moved) - step / scale, 0)
            return v + step * (slope + prior.slope(v / scale) / scale)

        def moving(state: tuple[Array, ...]) -> Array:
            return (state[0] < solver.max_steps) & (state[-1] > solver.tol)

        start = jnp.zeros_like(drive)
        first = (jnp.zeros((), jnp.int32), start)
        big = jnp.full((), jnp.inf, drive.dtype)
        if solver.solver == "dynamics":
            # Euler steps are shorter where F is flatter, so the change of one step is compared with the tolerance
            # directly.
            def euler(state: tuple[Array, ...]) -> tuple[Array, ...]:
                count, v, _ = state
                new = forward(v)
                return count + 1, new, jnp.max(jnp.abs(new - v) / scale)

            state: tuple[Array, ...] = (*first, big)
            return jax.lax.while_loop(moving, euler, state)[1]
        return _accelerated(forward, moving, (*first, start, jnp.ones((len(drive), 1), drive.dtype), big), scale)

    @cached_property
    def _log_prior(self) -> Array:
        return self._model.prior.log_probability(self.mean_causes, self._parameters.prior)

    @cached_property
    def _scores(self) -> Array:
        """Log-likelihood η·y − A at v, without b(y): (n,)."""
        explained = jnp.sum(self._explained(self.mean_causes) * self.mean_causes, axis=1)
        return jnp.sum(self.mean_causes * self._drive, axis=1) - 0.5 * explained

    @property
    def free_energy(self) -> Array:  # type: ignore[override]
        """Log joint log p(v(u), u) of each row, TN10 eq. 10.30 with its constants: (n,)."""
        return self._base + self._scores + self._log_prior

    @property
    def log_evidence(self) -> Array:  # type: ignore[override]
        """Log joint of each row, used in place of the log evidence: (n,)."""
        return self.free_energy

    @property
    def total_free_energy(self) -> Array:  # type: ignore[override]
        """Log joint, summed over all rows."""
        return sum_in_double(self.row_weights * self.free_energy)

    @property
    def total_bound(self) -> Array:  # type: ignore[override]
        """Log joint, summed over all rows, used in place of a bound."""
        return self.total_free_energy

    @property
    def total_log_likelihood(self) -> Array:  # type: ignore[override]
        """Log-likelihood Σ_n w_n (η·y − A + b(y)) at the most probable causes."""
        return sum_in_double(self.row_weights * (self._scores + self._base))

    @property
    def magnitude(self) -> Array:  # type: ignore[override]
        """Size of the terms that cancel in the log-likelihood, as given by the noise, summed over rows."""
        size = self._model.noise.magnitude(self._data, self._block.summary, self._parameters.noise)
        return sum_in_double(self.row_weights * size)

    @cached_property
    def total_causes(self) -> Array:  # type: ignore[override]
        """Sum of the most probable causes, Σ_n w_n v: (H,)."""
        return matmul(self.row_weights, self.mean_causes)

    @cached_property
    def cause_data(self) -> Array:  # type: ignore[override]
        """Products of causes and data, Σ_n w_n v y_nᵀ: (H, D)."""
        if self.observed is not None:
            slope = matmul((self.mean_causes * self.row_weights[:, None]).T, self._apart)
            return cause_data_of(self.cause_pairs, self._parameters.components, slope)
        return matmul((self.mean_causes * self.row_weights[:, None]).T, self.rows)

    @property
    def _apart(self) -> Array:
        """Residuals y − G·v of the observed values, zero for missing ones: (n, D)."""
        apart = self._data - self.mean_data()
        return apart if self.observed is None else self.observed * apart

    @cached_property
    def cause_pairs(self) -> Array:  # type: ignore[override]
        """Products of causes, Σ_n w_n v vᵀ: (H, H)."""
        return matmul((self.mean_causes * self.row_weights[:, None]).T, self.mean_causes)

    @property
    def total_effects(self) -> Array:  # type: ignore[override]
        """Contribution ½ Σ_n w_n v_a² G_aᵀ Σ⁻¹ G_a of each cause to log p(u | v) of all rows: (H,)."""
        return 0.5 * jnp.diagonal(self.cause_pairs) * jnp.diagonal(self._gram)

    @property
    def residuals(self) -> Array:  # type: ignore[override]
        """Squared residuals Σ_n w_n (y − G·v)²: (D,)."""
        return matmul(self.row_weights.astype(jnp.float64), self._apart.astype(jnp.float64) ** 2)

    def mean_data(self) -> Array:
        """Return the reconstruction G·v of each row: (n, D)."""
        return matmul(self.mean_causes, self._parameters.components)

    def recognize(self, top: int) -> Recognized:
        """Return the most probable causes of each row, its only state."""
        return Recognized(self.mean_causes[:, None], jnp.ones((len(self.rows), 1), self.rows.dtype), self.free_energy)


def _accelerated(
    forward: Callable[[Array], Array],
    moving: Callable[[tuple[Array, ...]], Array],
    start: tuple[Array, ...],
    scale: Array,
) -> Array:
    """Run gradient steps with momentum, restarted in rows whose step turns back (O'Donoghue & Candès 2015)."""

    def advance(state: tuple[Array, ...]) -> tuple[Array, ...]:
        count, v, ahead, momentum, _ = state
        new = forward(ahead)
        turned = jnp.sum((ahead - new) * (new - v), axis=1, keepdims=True) > 0
        momentum = jnp.where(turned, 1, momentum)
        next_momentum = 0.5 * (1 + jnp.sqrt(1 + 4 * momentum**2))
        ahead = new + (momentum - 1) / next_momentum * jnp.where(turned, 0, 1) * (new - v)
        change = jnp.max(jnp.abs(new - v) / scale)
        return count + 1, new, ahead, next_momentum, change

    return jax.lax.while_loop(moving, advance, start)[1]
