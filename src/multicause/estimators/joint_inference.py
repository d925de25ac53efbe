"""Inference with a fitted model that is given by its log joint, block by block."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from multicause.arrays import Array
from multicause.engines.base import Data
from multicause.engines.blocks import zero_summary
from multicause.records import Block
from multicause.solvers.joint_learning import JointMethod
from multicause.solvers.joint_states import first_states, probabilities_of

# Number of arrays (S, H), and of those with as many columns as a row or a layer, that are in memory for each row.
ARRAYS_OF_STATES, ARRAYS_OF_VALUES = 4, 4


def arranged(method: JointMethod, parameters: Any, data: Data, dtype: Any, n_components: int) -> Data:
    """Return data in the model's precision and in blocks for which inference fits into the memory budget."""
    data = data if data.dtype == dtype else data.transformed(partial(np.asarray, dtype=dtype))
    widest = max((np.shape(leaf)[-1] for leaf in jax.tree.leaves(parameters) if np.ndim(leaf)), default=1)
    widths = ARRAYS_OF_STATES * n_components + ARRAYS_OF_VALUES * max(widest, data.n_features)
    return data.arranged(zero_summary, np.dtype(dtype).itemsize * method.search.n_at_once(n_components) * widths)


@partial(jax.jit, static_argnums=(0, 1, 2))
def of_block(function: Any, method: JointMethod, n_components: int, parameters: Any, block: Block) -> Any:
    """Return ``function(model, parameters, states, probabilities, evidence)`` of the rows of a block."""
    states = first_states(method.search, method.model, parameters, block.rows, n_components)
    probabilities, evidence = probabilities_of(method.model, parameters, states, block.rows)
    return function(method.model, parameters, states.astype(block.rows.dtype), probabilities, evidence)


def mean_states(model: Any, parameters: Any, states: Array, probabilities: Array, evidence: Array) -> Array:
    """Return the probability of each cause: (n, H)."""
    return jnp.einsum("ns,nsh->nh", probabilities, states, precision="highest")


def log_evidence(model: Any, parameters: Any, states: Array, probabilities: Array, evidence: Array) -> Array:
    """Return log Σ p(s, y) of the states considered: (n,)."""
    return evidence


def best_states(model: Any, parameters: Any, states: Array, probabilities: Array, evidence: Array) -> Any:
    """Return all states, most probable first (n, S, H), their probabilities (n, S), and the log evidence (n,)."""
    order = jnp.argsort(-probabilities, axis=1, stable=True)
    ordered = jnp.take_along_axis(states, order[..., None], axis=1)
    return ordered, jnp.take_along_axis(probabilities, order, axis=1), evidence


def mean_rows(model: Any, parameters: Any, states: Array, probabilities: Array, evidence: Array) -> Array:
    """Return the posterior mean of the data of a model with a decoder: (n, D)."""
    return jnp.einsum("ns,nsd->nd", probabilities, model.decode(parameters, states), precision="highest")


def check_parameters(method: JointMethod, parameters: Any, n_components: int, n_features: int, moments: Any) -> None:
    """Raise an error if parameters or the optimizer's arrays do not fit a model of so many causes and features."""
    dtype = np.asarray(jax.tree.leaves(parameters)[0]).dtype
    states = jax.ShapeDtypeStruct((1, 2, n_components), dtype)
    rows = jax.ShapeDtypeStruct((1, n_features), dtype)
    log_joint = jax.eval_shape(method.model.log_joint, parameters, states, rows)
    if log_joint.shape != (1, 2):
        raise ValueError(f"the log joint of its parameters has shape {log_joint.shape}, not (1, 2)")
    arrays = jax.eval_shape(method.optimizer.transformation(jnp.ones(())).init, parameters)
    shapes = [leaf.shape for leaf in jax.tree.leaves(arrays)], [np.shape(leaf) for leaf in moments]
    if shapes[0] != shapes[1]:
        raise ValueError(f"the optimizer's arrays have shapes {shapes[1]}, not {shapes[0]}")
