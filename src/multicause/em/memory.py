"""E-steps of posteriors that keep states of every row between iterations, such as ``Evolved``.

The memory of all rows is a dictionary of arrays (starts, blocks, ...), part of the state of EM, so that it is saved in
checkpoints. It stays with the blocks of rows in this process; other engines have no place for it yet.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from multicause.arrays import Array, jit_by_parts, over_active, select
from multicause.em.e_step import statistics_of
from multicause.engines.base import Data
from multicause.engines.local import LocalData, add
from multicause.model import Block, Model, Parameters, Statistics


def check_memory(model: Any, data: Data) -> None:
    """Raise ValueError if the engine cannot keep what a posterior remembers of each row."""
    if not model.posterior.remembers or (isinstance(data, LocalData) and data.mesh is None):
        return
    raise ValueError(
        f"{model.posterior!r} keeps states of every row between iterations, which rows in files, on several devices or "
        "on a cluster cannot do yet. Use engine=Local() with rows that fit into memory, partial_fit, or a posterior "
        "that keeps nothing, such as Preselected(keep=None)."
    )


def first_memory(model: Any, data: Any, starts: Parameters, key: Array) -> dict[str, np.ndarray]:
    """Return the memory before the first E-step, on the host: arrays (starts, blocks, ...)."""
    places, n_blocks = len(starts.components), len(data.blocks)
    # As numbers, so that they can be saved in a checkpoint.
    keys = np.asarray(jax.random.key_data(jax.random.split(key, places * n_blocks))).reshape(places, n_blocks, -1)
    tasks = [keys[:, number] for number in range(n_blocks)]
    return _stacked(data.map(partial(_first_of_block, model), starts, aligned=tasks))


def expect_resident(
    model: Any, blocks: Block, parameters: Parameters, temperature: Array, active: Array, memory: dict[str, Array]
) -> tuple[Statistics, dict[str, Array]]:
    """Compute statistics over all blocks, and the memory after it, as part of a compiled program."""

    def one(parameters: Parameters, temperature: Array, memory: dict[str, Array]) -> tuple[Statistics, Any]:
        def of_block(total: Statistics, own: tuple[Block, Any]) -> tuple[Statistics, Any]:
            statistics, after = _expect_one(model, parameters, temperature, *own)
            return jax.tree.map(jnp.add, total, statistics), after

        first = jax.tree.map(lambda leaf: leaf[0], (blocks, memory))
        shapes = jax.eval_shape(lambda own: _expect_one(model, parameters, temperature, *own)[0], first)
        nothing = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)
        return jax.lax.scan(of_block, nothing, (blocks, memory))

    statistics, after = over_active(one, active, parameters, temperature, memory)
    return statistics, select(active, after, memory)


def expect_blocks(
    model: Model, data: Any, parameters: Parameters, temperature: Any, active: Any, memory: dict[str, Any]
) -> tuple[Statistics, dict[str, np.ndarray]]:
    """Compute statistics over all blocks, and the memory after it, with one call of a program per block."""
    own = [{name: values[:, number] for name, values in memory.items()} for number in range(len(data.blocks))]
    found = data.map(partial(_expect_block, model), parameters, temperature, active, aligned=own)
    total = None
    for statistics, _ in found:
        total = statistics if total is None else add(total, statistics)
    assert total is not None
    return total, _stacked([after for _, after in found])


def _stacked(memories: Any) -> dict[str, np.ndarray]:
    """Return memories of blocks, with a leading axis of starts, as arrays (starts, blocks, ...)."""
    return jax.tree.map(lambda *leaves: np.stack([np.asarray(leaf) for leaf in leaves], axis=1), *memories)


def _expect_one(
    model: Any, parameters: Parameters, temperature: Array, block: Block, memory: dict[str, Array]
) -> tuple[Statistics, dict[str, Array]]:
    memory = model.posterior.breed(model, parameters, block, memory)
    inference = model.posterior.infer_from_memory(model, parameters, block, temperature, memory)
    return statistics_of(model, parameters, block, inference), memory


@jit_by_parts
def _expect_block(
    model: Model, block: Block, parameters: Parameters, temperature: Array, active: Array, memory: dict[str, Array]
) -> tuple[Statistics, dict[str, Array]]:
    def one(parameters: Parameters, temperature: Array, memory: dict[str, Array]) -> tuple[Statistics, Any]:
        return _expect_one(model, parameters, temperature, block, memory)

    statistics, after = over_active(one, active, parameters, temperature, memory)
    return statistics, select(active, after, memory)


@jit_by_parts
def _first_of_block(model: Any, block: Block, parameters: Parameters, keys: Array) -> dict[str, Array]:
    return jax.lax.map(lambda start: model.posterior.first_memory(model, start[0], block, start[1]), (parameters, keys))
