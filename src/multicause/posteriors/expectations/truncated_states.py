"""Inference over all sparse states, of which those with most active causes have no credit: MCA08 §4."""

from functools import cached_property

import jax.numpy as jnp

from multicause.arrays import Array, matmul, sum_in_double
from multicause.generative import GenerativeModel
from multicause.posteriors.expectations.shared_states import SharedStates
from multicause.records import Block, Parameters
from multicause.states.state_list import StateList, sparse_states


class TruncatedStates(SharedStates):
    """Expectations over the states with at most γ active causes, of which those with γ have no credit (MCA08 eq. 16).

    q_n(s) ∝ p(s, y_n)^β. States with γ active causes only compete: rows that they explain best contribute little to the
    components, which keeps causes from learning mixtures. The activities do count them, multiplied by α (eq. 17), to
    account for rows with even more causes, which no state represents.
    """

    def __init__(
        self,
        model: GenerativeModel,
        parameters: Parameters,
        max_active: int,
        block: Block,
        temperature: Array,
        *,
        empty_state: bool,
    ) -> None:
        self._max_active, self._empty_state = max_active, empty_state
        tree = sparse_states(parameters.components.shape[0], max_active)
        super().__init__(model, parameters, tree, block, temperature)

    def _masked(self, log_joint: Array) -> Array:
        """Exclude the empty state in rows that are not all zero, unless it is allowed (MCA08 appendix C.2)."""
        if self._empty_state:
            return log_joint
        nonzero = jnp.any(self.rows != 0 if self.observed is None else (self.rows != 0) & (self.observed > 0), axis=1)
        return log_joint.at[0].set(jnp.where(nonzero, -jnp.inf, log_joint[0]))

    @cached_property
    def _credited(self) -> StateList:
        """The states with fewer than γ active causes, which come first."""
        return sparse_states(self._tree.n_components, self._max_active - 1)

    @cached_property
    def _state_sums(self) -> tuple[Array, Array]:
        """Sums M_s of states with credit only, which saves most of the second matrix product, and R_s of all states."""
        n, scale = self._credited.n_states, self.row_weights / self._z
        return matmul(self._u[:n] * scale, self._data), matmul(self._u, scale)

    @cached_property
    def _state_counts(self) -> Array:
        """Sums over the rows in which each dimension was observed, of states with credit only."""
        assert self.observed is not None
        n, scale = self._credited.n_states, self.row_weights / self._z
        return matmul(self._u[:n], self.observed * scale[:, None])

    @cached_property
    def _total_products(self) -> Array:
        """Σ_n w_n ⟨η(w̄)·y⟩, state by state and row by row, because the data of most states are not summed."""
        return sum_in_double(self._u * self._products * (self.row_weights / self._z))

    @property
    def total_causes(self) -> Array:  # type: ignore[override]
        """Sum of the expected causes, Σ_s R_s s, with R_s multiplied by α for states with γ active causes."""
        n, alpha = self._credited.n_states, self._parameters.posterior["compensation"]
        weights = jnp.concatenate([self._state_weights[:n], alpha * self._state_weights[n:]])
        return matmul(weights.astype(jnp.float64), self._states.astype(jnp.float64))

    @property
    def total_sparse(self) -> Array:
        """Expected number of rows Σ_n w_n q_n(|s| < γ), which α makes consistent with the prior (MCA08 eq. 33)."""
        return jnp.sum(self._state_weights[: self._credited.n_states])
