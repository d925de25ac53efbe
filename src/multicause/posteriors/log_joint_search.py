"""Interface of a search for the states of rows that needs nothing but the log joint of a model."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from multicause.arrays import Array
from multicause.posteriors.evolution.breeding import is_first

# Number of causes from which on there are more states than any search considers.
MOST_DIGITS = 40

#: ``log_joint(states)`` returns log p(s, y) of binary states (n, S, H) of n rows: (n, S). It never returns NaN.
LogJointOfStates = Callable[[Array], Array]


class LogJointSearch(ABC):
    """Search for the most probable states of rows under a log joint; equal searches are equal objects."""

    @abstractmethod
    def n_states(self, n_components: int) -> int:
        """Return the number S of states of a row."""

    @abstractmethod
    def n_at_once(self, n_components: int) -> int:
        """Return the largest number of states of a row whose log joints are evaluated at once."""

    def first_states(self, log_joint: LogJointOfStates, n_rows: int, n_components: int) -> Array:
        """Return states of rows that have none yet (n, S, H); those of a row do not depend on the other rows."""
        if self._has_all(n_components):
            every = np.arange(2**n_components)[:, None] >> np.arange(n_components) & 1
            return jnp.broadcast_to(jnp.asarray(every, jnp.int8), (n_rows, *every.shape))
        return self._search(log_joint, n_rows, n_components)

    def next_states(self, log_joint: LogJointOfStates, states: Array, key: Array) -> Array:
        """Return the states of the next pass over the data (n, S, H), given those of the last one."""
        return states if self._has_all(states.shape[-1]) else self._improve(log_joint, states, key)

    def _has_all(self, n_components: int) -> bool:
        """Return whether all 2^H states are considered."""
        return 2 ** min(n_components, MOST_DIGITS) <= self.n_states(n_components)

    @abstractmethod
    def _search(self, log_joint: LogJointOfStates, n_rows: int, n_components: int) -> Array:
        """Return states of rows that have none yet, if there are more states than the search considers."""

    @abstractmethod
    def _improve(self, log_joint: LogJointOfStates, states: Array, key: Array) -> Array:
        """Return the states of the next pass, if there are more states than the search considers."""


def survivors(states: Array, scores: Array, size: int) -> tuple[Array, Array]:
    """Return the best states of each row, each once, best first (n, size, H), and their log joints (n, size)."""
    best, places = jax.lax.top_k(jnp.where(is_first(states), scores, -jnp.inf), size)
    return jnp.take_along_axis(states, places[..., None], axis=1), best
