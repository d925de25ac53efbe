"""Beam search for the states of rows under any log joint."""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp

from multicause.arrays import Array
from multicause.posteriors.beams.beam_search import numbers_of_states
from multicause.posteriors.log_joint_search import LogJointOfStates, LogJointSearch, survivors


@dataclass(frozen=True)
class LogJointBeam(LogJointSearch):
    """Search that adds one cause at a time and keeps the states of each size with the largest log joints."""

    max_active: int
    width: int

    def n_states(self, n_components: int) -> int:
        """Return the number of states that are kept, including the empty one."""
        return 1 + sum(numbers_of_states(n_components, self.max_active, self.width))

    def n_at_once(self, n_components: int) -> int:
        """Return a bound of the number of children: each state may grow by any cause."""
        return self.n_states(n_components) * n_components

    def _search(self, log_joint: LogJointOfStates, n_rows: int, n_components: int) -> Array:
        """Return the empty state and those that are kept, of any size up to ``max_active``: (n, S, H)."""
        n, H = n_rows, n_components
        level = jnp.zeros((n, 1, H), jnp.int8)
        levels, causes = [level], jnp.eye(H, dtype=jnp.int8)
        for size in numbers_of_states(H, self.max_active, self.width):
            grown = jnp.maximum(level[:, :, None], causes).reshape(n, -1, H)
            larger = jnp.sum(grown, axis=-1) > jnp.repeat(jnp.sum(level, axis=-1), H, axis=1)
            level, _ = survivors(grown, jnp.where(larger, log_joint(grown), -jnp.inf), size)
            levels.append(level)
        return jnp.concatenate(levels, axis=1)

    def _improve(self, log_joint: LogJointOfStates, states: Array, key: Array) -> Array:
        """Return the states of a new search, which uses nothing of the last one."""
        return self._search(log_joint, len(states), states.shape[-1])
