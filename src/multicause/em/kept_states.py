"""E-steps of posteriors that keep states of every row between iterations, such as ``Evolved``.

What is kept is a dictionary of arrays (starts, blocks, ..., n), with the rows of a block along the last axis, or a
handle on such arrays where the rows are (:mod:`multicause.engines.kept_states`). It is part of the state of EM, so that
it is saved in checkpoints.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from multicause.arrays import Array, jit_by_parts, over_active, select
from multicause.em.e_step import statistics_of
from multicause.engines.base import ROWS, Data
from multicause.engines.kept_states import rearranged
from multicause.model import Model, Statistics
from multicause.posteriors.evolution.row_draws import seeds_of_rows
from multicause.records import Block, Parameters


def first_states(model: Any, data: Data, starts: Parameters, key: Array) -> Any:
    """Return the states before the first E-step; random numbers of a row follow from its number in the data."""
    keys = np.asarray(jax.random.key_data(jax.random.split(key, len(starts.components))))
    return data.keep_states(partial(_first_of_block, model), starts, keys)


def expect_resident(
    model: Any,
    mesh: jax.sharding.Mesh | None,
    blocks: Block,
    parameters: Parameters,
    temperature: Array,
    active: Array,
    kept: dict[str, Array],
) -> tuple[Statistics, dict[str, Array]]:
    """Compute statistics over all blocks, and the states after it, as part of a compiled program.

    If the rows of each block are distributed over the devices of a ``mesh``, so are the states.
    """
    if mesh is None:
        return _expect_here(model, blocks, parameters, temperature, active, kept)

    def on_device(*arguments: Any) -> tuple[Statistics, dict[str, Array]]:
        statistics, after = _expect_here(model, *arguments)
        return jax.lax.psum(statistics, axis_name=ROWS), after

    everywhere, spread = jax.sharding.PartitionSpec(), jax.sharding.PartitionSpec(None, ROWS)
    of_states = {
        name: jax.sharding.PartitionSpec(*(None for _ in values.shape[1:]), ROWS) for name, values in kept.items()
    }
    specs = (spread, everywhere, everywhere, everywhere, of_states)
    program = jax.shard_map(on_device, mesh=mesh, in_specs=specs, out_specs=(everywhere, of_states), check_vma=False)
    return program(blocks, parameters, temperature, active, kept)


def _expect_here(
    model: Any, blocks: Block, parameters: Parameters, temperature: Array, active: Array, kept: dict[str, Array]
) -> tuple[Statistics, dict[str, Array]]:
    """Compute the statistics over the rows of one device, and their states."""

    def one(parameters: Parameters, temperature: Array, kept: dict[str, Array]) -> tuple[Statistics, Any]:
        def of_block(total: Statistics, own: tuple[Block, Any]) -> tuple[Statistics, Any]:
            statistics, after = _expect_one(model, parameters, temperature, *own)
            return jax.tree.map(jnp.add, total, statistics), after

        first = jax.tree.map(lambda leaf: leaf[0], (blocks, kept))
        if len(blocks.rows) == 1:
            statistics, after = _expect_one(model, parameters, temperature, *first)
            return statistics, jax.tree.map(lambda leaf: leaf[None], after)
        shapes = jax.eval_shape(lambda own: _expect_one(model, parameters, temperature, *own)[0], first)
        nothing = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)
        return jax.lax.scan(of_block, nothing, (blocks, kept))

    statistics, after = over_active(one, active, parameters, temperature, kept)
    return statistics, select(active, after, kept)


def for_resident(data: Data, kept: dict[str, Any]) -> dict[str, Any]:
    """Return kept states in the blocks of resident data, in case a checkpoint had others."""
    blocks: Any = data.resident
    n_blocks, size = blocks.rows.shape[:2]
    return rearranged(kept, n_blocks, size, data.n_rows)


def expect_blocks(
    model: Model, data: Data, parameters: Parameters, temperature: Any, active: Any, kept: Any
) -> tuple[Statistics, Any]:
    """Compute statistics over all blocks, and the states after it, with one call of a program per block."""
    return data.sum_with_states(partial(_expect_block, model), kept, parameters, temperature, active)


def _expect_one(
    model: Any, parameters: Parameters, temperature: Array, block: Block, kept: dict[str, Array]
) -> tuple[Statistics, dict[str, Array]]:
    inference, kept = model.posterior.evolve(model, parameters, block, temperature, kept)
    return statistics_of(model, parameters, block, inference), kept


@jit_by_parts
def _expect_block(
    model: Model, block: Block, parameters: Parameters, temperature: Array, active: Array, kept: dict[str, Array]
) -> tuple[Statistics, dict[str, Array]]:
    def one(parameters: Parameters, temperature: Array, kept: dict[str, Array]) -> tuple[Statistics, Any]:
        return _expect_one(model, parameters, temperature, block, kept)

    statistics, after = over_active(one, active, parameters, temperature, kept)
    return statistics, select(active, after, kept)


@jit_by_parts
def _first_of_block(model: Any, block: Block, parameters: Parameters, keys: Array, start: Array) -> dict[str, Array]:
    def one(of_start: tuple[Parameters, Array]) -> dict[str, Array]:
        seeds = seeds_of_rows(of_start[1], start + jnp.arange(len(block.rows)))
        return model.posterior.first_states(model, of_start[0], block, seeds)

    return jax.lax.map(one, (parameters, keys))
