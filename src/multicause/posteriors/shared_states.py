"""Inference over one list of states that is the same for every row: all scores are matrix products."""

from functools import cached_property

import jax
import jax.numpy as jnp

from multicause.arrays import Array, matmul
from multicause.model import Model, Parameters
from multicause.posteriors.base import Inference, Recognized, Term
from multicause.posteriors.state_tree import StateTree


class SharedStates(Inference):
    """q_n(s) ∝ p(s, y_n)^β over the states of a tree, β = 1/temperature (MCA08 eq. 12 and 36)."""

    def __init__(
        self, model: Model, parameters: Parameters, tree: StateTree, rows: Array, weights: Array, temperature: Array
    ) -> None:
        self._model, self._parameters, self._tree = model, parameters, tree
        self._rows, self._weights, self._temperature = rows, weights, temperature
        self._states = jnp.asarray(tree.states(), dtype=rows.dtype)
        self._means = model.combination.combine(parameters.components, tree)

        scores = self._scores()
        self.log_joint = log_joint = scores + model.prior.log_probability(self._states, parameters.prior)
        beta = (1 / temperature).astype(rows.dtype)
        log_normalizer = jax.nn.logsumexp(beta * log_joint, axis=1)
        self._q = jnp.exp(beta * log_joint - log_normalizer[:, None])
        # F = ⟨log p⟩ + H(q) with H(q) = −β⟨log p⟩ + log Σ p^β: a bound at any temperature, tight at one.
        expected = jnp.sum(self._q * log_joint, axis=1)
        self.bound = (1 - beta) * expected + log_normalizer + model.noise.log_base(rows, parameters.noise)
        self.expected_score = jnp.sum(self._q * scores, axis=1)
        self.mean_causes = matmul(self._q, self._states)

    def _scores(self) -> Array:
        """Σ_d η(w̄_d)·y_d − A(w̄_d) of every row and state: (n, S)."""
        combination, noise = self._model.combination, self._model.noise
        normalizers = jnp.sum(noise.log_normalizer(self._means, self._parameters.noise), axis=1)
        if combination.linear and noise.linear:
            # η(Ws)·y = s·(η(W) y): H products instead of D for each state.
            projections = matmul(self._rows, noise.natural(self._parameters.components, self._parameters.noise).T)
            return matmul(projections, self._states.T) - normalizers
        return matmul(self._rows, noise.natural(self._means, self._parameters.noise).T) - normalizers

    @cached_property
    def total_causes(self) -> Array:  # type: ignore[override]
        """Σ_n w_n ⟨s⟩."""
        return matmul(self._state_weights, self._states)

    @cached_property
    def _state_weights(self) -> Array:
        """R_s = Σ_n w_n q_n(s): (S,)."""
        return matmul(self._weights, self._q)

    @cached_property
    def _state_data(self) -> Array:
        """M_s = Σ_n w_n q_n(s) y_n: (S, D)."""
        return matmul((self._q * self._weights[:, None]).T, self._rows)

    def cause_pairs(self) -> Array:
        """Σ_s R_s s sᵀ."""
        return matmul((self._states * self._state_weights[:, None]).T, self._states)

    def pull(self, *terms: Term) -> Array:
        """Terms are linear in y, so the sum over rows comes first: f(w̄_s) M_s + g(w̄_s) R_s, state by state."""
        values = []
        for of_data, of_mean in terms:
            value = jnp.zeros_like(self._means)
            if of_data is not None:
                value += of_data(self._means) * self._state_data
            if of_mean is not None:
                value += of_mean(self._means) * self._state_weights[:, None]
            values.append(value)
        return self._model.combination.pull(
            self._parameters.components, self._tree, jnp.stack(values), self._temperature
        )

    def overlap(self) -> Array:
        """The same for all rows: (S, 1)."""
        return jnp.asarray(self._model.combination.overlap(self._tree), dtype=self._means.dtype)

    def mean_data(self) -> Array:
        """Σ_s q_n(s) w̄(s)."""
        return matmul(self._q, self._means)

    def recognize(self, top: int) -> Recognized:
        """The best of the list, row by row."""
        probabilities, best = jax.lax.top_k(self._q, top)
        states = jnp.asarray(self._tree.states())[best]
        return Recognized(states, probabilities, self.bound)
