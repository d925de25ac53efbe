"""Inference over one list of states that is the same for every row: all scores are matrix products."""

from functools import cached_property

import jax
import jax.numpy as jnp

from multicause.arrays import Array, matmul, sum_in_double
from multicause.model import Block, Model, Parameters
from multicause.posteriors.base import Inference, Recognized, Term
from multicause.posteriors.expansion import absolute, coordinates
from multicause.posteriors.observed import cause_data_of, log_base, mask_of, observed_data
from multicause.posteriors.state_tree import StateTree


class SharedStates(Inference):
    """q_n(s) ∝ p(s, y_n)^β over the states of a tree, β = 1/temperature (MCA08 eq. 12 and 36).

    Arrays over states and rows are (S, n), with rows along the fastest axis: sums over states then run as
    vectors over rows (on one core 1.0 instead of 2.5 ms for 1024 states of 500 rows). The weights
    u = exp(β log p − max) are never divided by their sum Z; the quotient w/Z goes into the rows instead.

    Data and means are relative to the noise's origin (:mod:`multicause.posteriors.expansion`).
    """

    def __init__(self, model: Model, parameters: Parameters, tree: StateTree, block: Block, temperature: Array) -> None:
        self._model, self._parameters, self._tree = model, parameters, tree
        rows, self.row_weights = block.rows, block.weights
        self.rows, self._summary, self._temperature = rows, block.summary, temperature
        self._origin = model.noise.origin(parameters.noise)
        self.observed = mask_of(model, rows)
        self._data = observed_data(rows, self._origin, self.observed)
        self._states = jnp.asarray(tree.states(), dtype=rows.dtype)
        self._log_prior = model.prior.log_probability(self._states, parameters.prior)
        self._beta = (1 / temperature).astype(rows.dtype)
        #: b(y), and what else all states of a row have in common: (n,).
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
        """Set η(w̄)·y of every state and row (S, n) and A(w̄) (S,), or zero where it is a part of the former."""
        noise, parameters = self._model.noise, self._parameters.noise
        self._products = matmul(self._natural, self._data.T)
        normalizers = noise.log_normalizer(self._means, parameters)
        if self.observed is None:
            self._normalizers = jnp.sum(normalizers, axis=1)
        else:
            self._products -= matmul(normalizers, self.observed.T)
            self._normalizers = jnp.zeros(len(normalizers), normalizers.dtype)

    def _weigh_sums(self) -> None:
        """The same where causes add up, in H coordinates instead of D dimensions."""
        self._coordinates = frame = coordinates(self._model, self._parameters)
        data = self._model.noise.standardize(self._data, self._parameters.noise)
        self._projected = matmul(data, frame.basis)
        means = frame.means(self._states).astype(data.dtype)
        self._products = matmul(means, self._projected.T)
        self._normalizers = 0.5 * jnp.sum(means**2, axis=1)
        self._base -= frame.misfit * (matmul(data, frame.beyond) + 0.5 * frame.misfit)

    @cached_property
    def _means(self) -> Array:
        """w̄(s) relative to the origin: (S, D)."""
        return self._model.combination.relative_means(self._parameters.components, self._tree, self._origin)

    @cached_property
    def _natural(self) -> Array:
        """η(w̄(s)): (S, D)."""
        noise, parameters = self._model.noise, self._parameters
        if self._origin is None:
            return self._model.combination.natural(noise, parameters.components, self._tree, parameters.noise)
        return noise.natural(self._means, parameters.noise)

    def _masked(self, log_joint: Array) -> Array:
        """Without the states that some rows cannot have."""
        return log_joint

    @property
    def _credited(self) -> StateTree:
        """The states whose causes have credit for data; they are the first of all states."""
        return self._tree

    @property
    def log_evidence(self) -> Array:  # type: ignore[override]
        """Log Σ_s p(s, y): (n,)."""
        return self._log_z + self._base

    @property
    def mean_causes(self) -> Array:  # type: ignore[override]
        """⟨s⟩: (n, H)."""
        return (matmul(self._states.T, self._u) / self._z).T

    @cached_property
    def _state_sums(self) -> tuple[Array, Array]:
        """M_s = Σ_n w_n q_n(s) y_n (S, D) and R_s = Σ_n w_n q_n(s) (S,), in one product."""
        scale = (self.row_weights / self._z)[:, None]
        sums = matmul(self._u, jnp.concatenate([self._data * scale, scale], axis=1))
        return sums[:, :-1], sums[:, -1]

    @cached_property
    def _state_weights(self) -> Array:
        return matmul(self._u, self.row_weights / self._z) if self._model.linear else self._state_sums[1]

    @cached_property
    def _state_counts(self) -> Array:
        """Σ_n w_n q_n(s) over the rows in which each dimension was observed: (S, D)."""
        assert self.observed is not None
        return matmul(self._u, self.observed * (self.row_weights / self._z)[:, None])

    @cached_property
    def _total_products(self) -> Array:
        """Σ_n w_n ⟨η(w̄)·y⟩, from expected causes or from sums over rows: no expectation is taken state by state."""
        if self._model.linear:
            means = self._coordinates.means(self.mean_causes)
            return sum_in_double(self.row_weights[:, None] * self._projected * means)
        if self.observed is not None:
            normalizers = self._model.noise.log_normalizer(self._means, self._parameters.noise)
            return sum_in_double(self._state_sums[0] * self._natural - self._state_counts * normalizers)
        return sum_in_double(self._state_sums[0] * self._natural)

    @cached_property
    def _total_scores(self) -> Array:
        """Σ_n w_n ⟨η(w̄)·y − A(w̄)⟩."""
        return self._total_products - sum_in_double(self._state_weights * self._normalizers)

    @property
    def total_log_likelihood(self) -> Array:  # type: ignore[override]
        """With b(y)."""
        return self._total_scores + sum_in_double(self.row_weights * self._base)

    @property
    def total_bound(self) -> Array:  # type: ignore[override]
        """F = ⟨log p⟩ + H(q) with H(q) = −β⟨log p⟩ + log Σ p^β: a bound at any temperature, tight at one."""
        # A state that the prior forbids has log p = −∞ and weight zero, and must not turn the sum into NaN.
        log_prior = jnp.where(self._state_weights > 0, self._log_prior, 0)
        expected = self._total_scores + sum_in_double(self._state_weights * log_prior)
        return (1 - self._beta) * expected + sum_in_double(self.row_weights * self.log_evidence)

    @property
    def free_energy(self) -> Array:  # type: ignore[override]
        """⟨log p⟩ + T H(q) = T log Σ p^β, apart from b(y), which no temperature touches: (n,)."""
        return self._temperature * self._log_z + self._base

    @property
    def total_free_energy(self) -> Array:  # type: ignore[override]
        """Of all rows."""
        return sum_in_double(self.row_weights * self.free_energy)

    @property
    def magnitude(self) -> Array:  # type: ignore[override]
        """As the noise says."""
        size = self._model.noise.magnitude(self._data, self._summary, self._parameters.noise)
        return sum_in_double(self.row_weights * size)

    @cached_property
    def _active(self) -> Array:
        """Σ_s R_s s, in double precision: (H,)."""
        return matmul(self._state_weights.astype(jnp.float64), self._states.astype(jnp.float64))

    @property
    def total_causes(self) -> Array:  # type: ignore[override]
        """The same."""
        return self._active

    @cached_property
    def cause_data(self) -> Array:  # type: ignore[override]
        """By way of ⟨s⟩: H products instead of D for each state."""
        if self.observed is not None:
            return cause_data_of(self.cause_pairs, self._parameters.components, self._slope)
        products = matmul((self.mean_causes * self.row_weights[:, None]).T, self._data)
        return absolute(products, self._active, self._origin)

    @property
    def _slope(self) -> Array:
        """Σ_n w_n ⟨s (y − w̄)ᵀ⟩ over observed values: (H, D)."""
        assert self.observed is not None
        scale = (self.row_weights / self._z)[:, None]
        data, counts = matmul(self._u, self._data * scale), matmul(self._u, self.observed * scale)
        return matmul(self._states.T.astype(jnp.float64), data - counts * self._means.astype(jnp.float64))

    @property
    def cause_pairs(self) -> Array:  # type: ignore[override]
        """Σ_s R_s s sᵀ."""
        states = self._states.astype(jnp.float64)
        return matmul((states * self._state_weights[:, None]).T, states)

    def pull(self, *terms: Term) -> Array:
        """Terms are linear in y, so the sum over rows comes first: f(w̄_s) M_s + g(w̄_s) R_s, state by state."""
        tree = self._credited
        means = self._means[: tree.n_states]
        counts = self._state_weights[:, None] if self.observed is None else self._state_counts
        of_states = counts[: tree.n_states]
        overlap, noise = jnp.asarray(self._model.combination.overlap(tree), dtype=means.dtype), self._parameters.noise
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
        """Σ_n w_n ⟨(y_nd − w̄_d)²⟩, from sums over rows: (D,)."""
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
        """Σ_s q_n(s) w̄(s)."""
        means = (matmul(self._means.T, self._u) / self._z).T
        return means if self._origin is None else means + self._origin

    def recognize(self, top: int) -> Recognized:
        """The best of the list, row by row."""
        probabilities, best = jax.lax.top_k((self._u / self._z).T, top)
        states = jnp.asarray(self._tree.states())[best]
        return Recognized(states, probabilities, self.log_evidence)
