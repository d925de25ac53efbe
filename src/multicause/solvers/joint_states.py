"""States of rows under the log joint of a model, found by the search of a posterior, and their probabilities."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from multicause.arrays import Array
from multicause.posteriors.evolution.breeding import is_first
from multicause.posteriors.log_joint_search import LogJointSearch
from multicause.solvers.joint_model import JointModel


def evaluate(model: JointModel, parameters: Any, states: Array, rows: Array) -> Array:
    """Return log p(s, y) of states (n, S, H) with matrix products in full precision; −∞ in place of NaN: (n, S)."""
    with jax.default_matmul_precision("highest"):
        scores = model.log_joint(parameters, states.astype(rows.dtype), rows)
    return jnp.where(jnp.isnan(scores), -jnp.inf, scores)


def probabilities_of(model: JointModel, parameters: Any, states: Array, rows: Array) -> tuple[Array, Array]:
    """Return probabilities of the states of each row (n, S), each counted once, and log Σ p(s, y) (n,)."""
    scores = jnp.where(is_first(states), evaluate(model, parameters, states, rows), -jnp.inf)
    return jax.nn.softmax(scores, axis=1), jax.nn.logsumexp(scores, axis=1)


def first_states(search: LogJointSearch, model: JointModel, parameters: Any, rows: Array, n_components: int) -> Array:
    """Return states of rows that have none yet: (n, S, H)."""
    return search.first_states(lambda states: evaluate(model, parameters, states, rows), len(rows), n_components)


def next_states(
    search: LogJointSearch, model: JointModel, parameters: Any, states: Array, rows: Array, key: Array
) -> Array:
    """Return the states of the next pass, given those of the last one: (n, S, H)."""
    return search.next_states(lambda states: evaluate(model, parameters, states, rows), states, key)
