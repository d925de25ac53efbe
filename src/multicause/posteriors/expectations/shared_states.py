"""Inference over one list of states that is the same for every row, so that all scores are matrix products."""

from functools import cached_property

import jax
import jax.numpy as jnp

from multicause.arrays import Array, matmul, observed_data, relative, sum_in_double
from multicause.expectations import Inference, Recognized, Term
from multicause.generative import GenerativeModel
from multicause.posteriors.expectations import masked_sums
from multicause.posteriors.expectations.expansion import absolute, coordinates
from multicause.posteriors.expectations.observed import cause_data_of, log_base, mask_of
from multicause.records import Block, Parameters
from multicause.states.state_list import StateList

# Number of arrays (S, n) that are in memory at once: log joint, its scaled copy, and the weights.
ARRAYS_PER_STATE = 3
# Number of arrays (S, D): means, their natural parameters, sums over rows, credits and the tree that they descend.
ARRAYS_PER_MEAN = 12


class SharedStates(Inference):
    """Expectations under q_n(s) ∝ p(s, y_n)^β over the states of a tree, β = 1/temperature (MCA08 eq. 12 and 36).

    Arrays over states and rows are (S, n), with rows along the fastest axis: sums over states are then vectorized
    over rows (on one core 1.0 instead of 2.5 ms for 1024 states of 500 rows). The weights u = exp(β log p − max) are
    never divided by their sum Z; rows are multiplied by the quotient w/Z instead.

    Data and means are relative to the noise's origin (:mod:`multicause.posteriors.expectations.expansion`).
    """

    def __init__(
        self, model: GenerativeModel, parameters: Parameters, tree: StateList, block: Block, temperature: Array
    ) -> None:
        self._model, self._parameters, self._tree = model, parameters, tree
        rows, self.row_weights = block.rows, block.weights
        self.rows, self._summary, self._temperature = rows, block.summary, temperature
        self._origin = model.noise.origin(parameters.noise)
        self.observed = mask_of(model, rows)
        self._data = observed_data(rows, self._origin, self.observed)
        self._states = jnp.asarray(tree.states(), dtype=rows.dtype)
        self._log_prior = model.prior.log_probability(self._states, parameters.prior)
        self._beta = (1 / temperature).astype(rows.dtype)
        #: b(y), and other terms that all states of a row have in common: (n,).
        self._base = log_base(model.noise, self._data, block.summary, parameters.noise, self.observed)
        if model.linear:
            self._weigh_sums()
        else:
            self._weigh_means()

        self.log_joint = self._masked(self._products + (self._log_prior - self._normalizers)[:, None])
        scaled = self._beta * self.log_joint
        largest = jnp.max(scaled, axis=0)
        self._u = jnp.exp(scaled - largest)
        self._z = jnp.sum(self._u, axis=0)
        self._log_z = jnp.log(self._z) + largest

    def _weigh_means(self) -> None:
        """Set η(w̄)·y of every state and row (S, n) and A(w̄) (S,), or zero if it is included in the former."""
        noise, parameters = self._model.noise, self._parameters.noise
        if self.observed is not None:
            self._products = self._scores_of_observed(self.observed)
            self._normalizers = jnp.zeros(len(self._states), self._states.dtype)
            return
        self._products = matmul(self._natural, self._data.T)
        self._normalizers = jnp.sum(noise.log_normalizer(self._means, parameters), axis=1)

    def _scores_of_observed(self, observed: Array) -> Array:
        """Return η(w̄)·y − A(w̄) over the observed values of each row: (S, n)."""
        noise, parameters = self._model.noise, self._parameters

        def of_means() -> Array:
            normalizers = noise.log_normalizer(self._tree_means(), parameters.noise)
            return matmul(self._tree_natural(), self._data.T) - matmul(normalizers, observed.T)

        if not self._by_pairs:
            return of_means()

        def of_pairs() -> Array:
            means = relative(jnp.concatenate([jnp.zeros_like(components[:1]), components]), self._origin)
            of_few = noise.score_singles(means, parameters.noise, self._data, observed)
            products = masked_sums.products_of_all(self._model, parameters, observed)
            return masked_sums.scores(self._tree, of_few[1:], of_few[0], products)

        components = parameters.components
        return jax.lax.cond(self._far, of_means, of_pairs)

    @property
    def _by_pairs(self) -> bool:
        """Whether values are missing and pairs of causes need less work than means of states."""
        binary, n_features = self._tree.strengths == (1,), self._parameters.components.shape[1]
        few = masked_sums.n_products(self._tree) < 2 * n_features
        return self._model.missing and self._model.sums_squares and binary and few

    @cached_property
    def _far(self) -> Array:
        return masked_sums.is_far(self._model, self._parameters)

    def _weigh_sums(self) -> None:
        """Set products (S, n) and normalizers (S,) if causes add up, in H coordinates instead of D dimensions."""
        self._coordinates = frame = coordinates(self._model, self._parameters)
        data = self._model.noise.standardize(self._data, self._parameters.noise)
        self._projected = matmul(data, frame.basis)
        means = frame.means(self._states).astype(data.dtype)
        self._products = matmul(means, self._projected.T)
        self._normalizers = 0.5 * jnp.sum(means**2, axis=1)
        self._base -= frame.misfit * (matmul(data, frame.beyond) + 0.5 * frame.misfit)

    def _tree_means(self) -> Array:
        return self._model.combination.relative_means(self._parameters.components, self._tree, self._origin)

    def _tree_natural(self) -> Array:
        noise, parameters = self._model.noise, self._parameters
        if self._origin is None:
            return self._model.combination.natural(noise, parameters.components, self._tree, parameters.noise)
        return noise.natural(self._tree_means(), parameters.noise)

    @cached_property
    def _means(self) -> Array:
        """Means w̄(s) of all states, relative to the origin: (S, D)."""
        return self._tree_means()

    @cached_property
    def _natural(self) -> Array:
        """Natural parameters η(w̄(s)) of all states: (S, D)."""
        return self._tree_natural()

    def _masked(self, log_joint: Array) -> Array:
        """Return the log joint with −∞ for states that are excluded in some rows."""
        return log_joint

    @property
    def _credited(self) -> StateList:
        """The states whose causes have credit for data, which are the first of all states."""
        return self._tree

    @property
    def log_evidence(self) -> Array:  # type: ignore[override]
        """Log evidence log Σ_s p(s, y) of each row: (n,)."""
        return self._log_z + self._base

    @property
    def mean_causes(self) -> Array:  # type: ignore[override]
        """Posterior mean ⟨s⟩ of the causes: (n, H)."""
        return (matmul(self._states.T, self._u) / self._z).T

    @property
    def mean_active(self) -> Array:
        """Probability that each cause is not zero: (n, H)."""
        return (matmul((self._states != 0).astype(self._u.dtype).T, self._u) / self._z).T

    def level_counts(self, levels: tuple[float, ...]) -> Array:
        """Return the expected number of rows with each level of each cause: (H, K)."""
        weights = self._state_weights.astype(jnp.float64)
        return jnp.stack([matmul(weights, (self._states == level).astype(weights.dtype)) for level in levels], axis=1)

    @cached_property
    def _state_sums(self) -> tuple[Array, Array]:
        """Sums M_s = Σ_n w_n q_n(s) y_n (S, D) and R_s = Σ_n w_n q_n(s) (S,), in one matrix product."""
        scale = (self.row_weights / self._z)[:, None]
        sums = matmul(self._u, jnp.concatenate([self._data * scale, scale], axis=1))
        return sums[:, :-1], sums[:, -1]

    @cached_property
    def _state_weights(self) -> Array:
        alone = self._model.linear or self._model.missing
        return matmul(self._u, self.row_weights / self._z) if alone else self._state_sums[1]

    @cached_property
    def _state_counts(self) -> Array:
        """Sums Σ_n w_n q_n(s) over the rows in which each dimension was observed: (S, D)."""
        assert self.observed is not None
        return matmul(self._u, self.observed * (self.row_weights / self._z)[:, None])

    @cached_property
    def _total_products(self) -> Array:
        """Σ_n w_n ⟨η(w̄)·y⟩, from expected causes or from sums over rows, without expectations state by state."""
        if self._model.linear:
            means = self._coordinates.means(self.mean_causes)
            return sum_in_double(self.row_weights[:, None] * self._projected * means)
        if self.observed is not None:
            expected = jnp.sum(self._u * self._products, axis=0) / self._z
            return sum_in_double(self.row_weights * expected)
        return sum_in_double(self._state_sums[0] * self._natural)

    @cached_property
    def _total_scores(self) -> Array:
        """Expected log-likelihood without b(y), Σ_n w_n ⟨η(w̄)·y − A(w̄)⟩."""
        return self._total_products - sum_in_double(self._state_weights * self._normalizers)

    @property
    def total_log_likelihood(self) -> Array:  # type: ignore[override]
        """Expected log-likelihood Σ_n w_n ⟨η(w̄)·y − A(w̄) + b(y)⟩."""
        return self._total_scores + sum_in_double(self.row_weights * self._base)

    @property
    def total_bound(self) -> Array:  # type: ignore[override]
        """Bound F = ⟨log p⟩ + H(q) with H(q) = −β⟨log p⟩ + log Σ p^β: valid at any temperature, tight at one."""
        # A state that the prior excludes has log p = −∞ and weight zero, whose product would be NaN.
        log_prior = jnp.where(self._state_weights > 0, self._log_prior, 0)
        expected = self._total_scores + sum_in_double(self._state_weights * log_prior)
        return (1 - self._beta) * expected + sum_in_double(self.row_weights * self.log_evidence)

    @property
    def free_energy(self) -> Array:  # type: ignore[override]
        """Free energy ⟨log p⟩ + T H(q) = T log Σ p^β of each row, plus b(y), which has no temperature: (n,)."""
        return self._temperature * self._log_z + self._base

    @property
    def total_free_energy(self) -> Array:  # type: ignore[override]
        """Free energy, summed over all rows."""
        return sum_in_double(self.row_weights * self.free_energy)

    @property
    def magnitude(self) -> Array:  # type: ignore[override]
        """Size of the terms that cancel in the log-likelihood, as given by the noise, summed over rows."""
        size = self._model.noise.magnitude(self._data, self._summary, self._parameters.noise)
        return sum_in_double(self.row_weights * size)

    @cached_property
    def _active(self) -> Array:
        """Sum of the posterior means, Σ_s R_s s, in double precision: (H,)."""
        return matmul(self._state_weights.astype(jnp.float64), self._states.astype(jnp.float64))

    @property
    def total_causes(self) -> Array:  # type: ignore[override]
        """Sum of the posterior means, Σ_n w_n ⟨s⟩ = Σ_s R_s s: (H,)."""
        return self._active

    @cached_property
    def cause_data(self) -> Array:  # type: ignore[override]
        """Σ_n w_n ⟨s⟩ y_nᵀ, computed from ⟨s⟩, which takes H instead of D products for each state: (H, D)."""
        if self.observed is not None:
            return cause_data_of(self.cause_pairs, self._parameters.components, self._slope)
        products = matmul((self.mean_causes * self.row_weights[:, None]).T, self._data)
        return absolute(products, self._active, self._origin)

    @property
    def _slope(self) -> Array:
        """Products of causes and residuals, Σ_n w_n ⟨s (y − w̄)ᵀ⟩ over observed values: (H, D)."""
        assert self.observed is not None
        observed, scale = self.observed, self.row_weights / self._z

        def by_states() -> Array:
            data, counts = matmul(self._u, self._data * scale[:, None]), matmul(self._u, observed * scale[:, None])
            return matmul(self._states.T.astype(jnp.float64), data - counts * self._tree_means().astype(jnp.float64))

        if not self._by_pairs:
            return by_states()

        def by_pairs() -> Array:
            causes, pairs = (each * scale for each in masked_sums.moments(self._tree, self._u))
            return masked_sums.slope_from(self._parameters, self._origin, self._data, observed, causes, pairs)

        return jax.lax.cond(self._far, by_states, by_pairs)

    @property
    def cause_pairs(self) -> Array:  # type: ignore[override]
        """Second moments Σ_s R_s s sᵀ of the causes: (H, H)."""
        states = self._states.astype(jnp.float64)
        return matmul((states * self._state_weights[:, None]).T, states)

    def pull(self, *terms: Term) -> Array:
        """Return the sums of :attr:`Inference.pull` as f(w̄_s) M_s + g(w̄_s) R_s, state by state.

        Terms are linear in y, so the sum over rows comes first.
        """
        tree = self._credited
        means = self._means[: tree.n_states]
        counts = self._state_weights[:, None] if self.observed is None else self._state_counts
        of_states = counts[: tree.n_states]
        overlap, noise = (
            jnp.asarray(self._model.combination.overlap(tree.states()), dtype=means.dtype),
            self._parameters.noise,
        )
        values = []
        for of_data, of_mean in terms:
            value = jnp.zeros_like(means)
            if of_data is not None:
                value += of_data(means, overlap, noise) * self._state_sums[0]
            if of_mean is not None:
                value += of_mean(means, overlap, noise) * of_states
            values.append(value)
        return self._model.combination.pull(self._parameters.components, tree, jnp.stack(values), self._temperature)

    @property
    def residuals(self) -> Array:  # type: ignore[override]
        """Expected squared residuals Σ_n w_n ⟨(y_nd − w̄_d)²⟩, from sums over rows: (D,)."""
        weights = self.row_weights / self._z
        data = matmul(self._u * weights, self._data).astype(jnp.float64)
        means = self._means.astype(jnp.float64)
        if self.observed is None:
            of_states = matmul(self._u, weights).astype(jnp.float64)[:, None]
        else:
            of_states = matmul(self._u * weights, self.observed).astype(jnp.float64)
        squares = matmul(self.row_weights.astype(jnp.float64), self._data.astype(jnp.float64) ** 2)
        return squares + jnp.sum(means * (means * of_states - 2 * data), axis=0)

    def mean_data(self) -> Array:
        """Return the reconstruction Σ_s q_n(s) w̄(s) of each row: (n, D)."""
        means = (matmul(self._means.T, self._u) / self._z).T
        return means if self._origin is None else means + self._origin

    def recognize(self, top: int) -> Recognized:
        """Return the most probable states of each row."""
        probabilities, best = jax.lax.top_k((self._u / self._z).T, top)
        states = jnp.asarray(self._tree.states())[best]
        return Recognized(states, probabilities, self.log_evidence)
