"""The E-step: sums over rows that the M-step needs, with or without a data cut.

A data cut (ET10 §2) excludes rows that no considered state explains. The E-step then has two passes: the first computes
the weights of the states of every row and stores them with the rows, a quantile of the rows' free energies over all
data gives a threshold, and the second pass sums over the rows above it. Candidates, states and weights of a row are
computed once if they fit into the memory budget.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from multicause.arrays import Array, jit_by_parts, largest_with_share, over_active, over_starts, sum_in_double
from multicause.engines.base import ROWS, Data
from multicause.expectations import Inference
from multicause.inference import log_evidence
from multicause.model import Model, Statistics
from multicause.records import Block, Parameters


def statistics_of(model: Model, parameters: Parameters, block: Block, inference: Inference) -> Statistics:
    """Return the sufficient statistics of one block for the M-step."""
    return Statistics(
        weight=sum_in_double(inference.row_weights),
        seen=sum_in_double(block.weights),
        bound=inference.total_bound,
        free_energy=inference.total_free_energy,
        magnitude=inference.magnitude,
        components=model.update.statistics(model, parameters, inference),
        prior=model.prior.statistics(inference),
        noise=model.noise.statistics(inference, parameters.noise),
        posterior=model.posterior.statistics(inference),
    )


# It is traced once for all programs with the same E-step, such as those of several phases of a search.
@partial(jax.jit, static_argnums=0)
def expect_one(model: Model, block: Block, parameters: Parameters, temperature: Array) -> Statistics:
    """Compute the statistics of one start and one block, in one pass (E-step)."""
    inference = model.posterior.infer(model, parameters, block, temperature)
    return statistics_of(model, parameters, block, inference)


@jit_by_parts
def expect(model: Model, block: Block, parameters: Parameters, temperature: Array) -> Statistics:
    """Compute the statistics of all starts on one block, without a data cut (E-step)."""
    return over_starts(partial(expect_one, model, block))(parameters, temperature)


# ------------------------------------------------------------------------------------ all blocks in one program


def expect_resident(
    model: Any,
    keep_weights: bool,
    mesh: jax.sharding.Mesh | None,
    blocks: Block,
    parameters: Parameters,
    temperature: Array,
    share: Array,
    active: Array,
) -> Statistics:
    """Compute the statistics of the active starts over all blocks, as part of a compiled program (E-step).

    ``blocks`` has a leading axis of blocks. ``share`` (starts,) is the share of all rows that each start learns from.
    ``keep_weights`` says whether the weights of all states are stored between the two passes of a data cut. Sums of
    inactive starts are zero. If the rows of each block are distributed over the devices of a ``mesh``, each device sums
    over its own rows, and all devices receive the total.
    """
    of_starts = (parameters, temperature, share, active)
    if mesh is None:
        return _expect_here(model, keep_weights, lambda own: own, blocks, *of_starts)

    def on_device(blocks: Block, *of_starts: Any) -> Statistics:
        total = partial(jax.lax.psum, axis_name=ROWS)
        return total(_expect_here(model, keep_weights, total, blocks, *of_starts))

    everywhere, spread = jax.sharding.PartitionSpec(), jax.sharding.PartitionSpec(None, ROWS)
    specs = (spread, *(everywhere for _ in of_starts))
    return jax.shard_map(on_device, mesh=mesh, in_specs=specs, out_specs=everywhere, check_vma=False)(
        blocks, *of_starts
    )


def _expect_here(
    model: Any,
    keep_weights: bool,
    total: Callable[[Array], Array],
    blocks: Block,
    parameters: Parameters,
    temperature: Array,
    share: Array,
    active: Array,
) -> Statistics:
    """Compute the statistics over the rows of one device; ``total`` sums a number over all devices."""

    def one(parameters: Parameters, temperature: Array, share: Array) -> Statistics:
        if model.posterior.keep is None:
            return _sum_blocks(lambda block: expect_one(model, block, parameters, temperature), blocks)

        def weigh(block: Block) -> tuple[Any, Array]:
            weighed, energy = _weigh_one(model, block, parameters, temperature)
            return (weighed if keep_weights else None), energy

        records, energies = _map_blocks(weigh, blocks)
        threshold = jnp.where(share < 1, largest_with_share(energies, blocks.weights, share, total), -jnp.inf)

        def above(block: Block, weighed: Any) -> Statistics:
            if weighed is None:
                weighed = model.posterior.weigh(model, parameters, block, temperature)
            inference = model.posterior.infer_from(model, parameters, block, temperature, weighed, threshold)
            return statistics_of(model, parameters, block, inference)

        return _sum_blocks(above, blocks, records)

    return over_active(one, active, parameters, temperature, share)


def _map_blocks(function: Any, blocks: Block) -> Any:
    if len(blocks.rows) == 1:
        return jax.tree.map(lambda leaf: leaf[None], function(_block(blocks, 0)))
    return jax.lax.map(function, blocks)


def _sum_blocks(function: Any, *stacked: Any) -> Any:
    first = [_block(each, 0) for each in stacked]
    if len(stacked[0].rows) == 1:
        return function(*first)
    nothing = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), jax.eval_shape(function, *first))

    def add(total: Any, own: Any) -> tuple[Any, None]:
        return jax.tree.map(jnp.add, total, function(*own)), None

    return jax.lax.scan(add, nothing, stacked)[0]


def _block(stacked: Any, number: int) -> Any:
    return jax.tree.map(lambda leaf: leaf[number], stacked)


# -------------------------------------------------------------------------------------- one program per block


def expect_blocks(
    model: Model, data: Data, parameters: Parameters, temperature: Any, share: np.ndarray, active: Any
) -> Statistics:
    """Compute the statistics of the active starts over all blocks, with one call of a program per block (E-step)."""
    arguments = (parameters, temperature, active)
    if not (np.asarray(share)[np.asarray(active)] < 1).any():
        return data.sum(partial(_expect_active, model), *arguments)
    record = _weigh_active.eval_shape(model, data.blocks[0], *arguments)
    n_bytes = len(data.blocks) * sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(record))
    if data.can_keep(n_bytes):
        records, energies = data.split(data.map(partial(_weigh_active, model), *arguments), 2)
    else:
        # Weights of all rows would exceed the memory budget, so they are computed twice.
        records, energies = (), tuple(data.map(partial(_energy_active, model), *arguments))
    threshold = np.where(np.asarray(share) < 1, data.quantile(energies, np.asarray(share)), -np.inf)
    return data.sum(partial(_expect_above, model), *arguments, threshold, aligned=records)


@jit_by_parts
def _expect_active(model: Model, block: Block, parameters: Parameters, temperature: Array, active: Array) -> Statistics:
    return over_active(partial(expect_one, model, block), active, parameters, temperature)


def _weigh_one(model: Any, block: Block, parameters: Parameters, temperature: Array) -> tuple[Any, Array]:
    """Return the weights of states of one start, and the free energy of each row (n,)."""
    weighed = model.posterior.weigh(model, parameters, block, temperature)
    return weighed, model.posterior.infer_from(model, parameters, block, temperature, weighed).free_energy


@jit_by_parts
def _weigh_active(
    model: Model, block: Block, parameters: Parameters, temperature: Array, active: Array
) -> tuple[Any, Array]:
    """Return weights of states, and the free energy of each row (starts, n), in the first pass of a data cut."""
    return over_active(partial(_weigh_one, model, block), active, parameters, temperature)


@jit_by_parts
def _energy_active(model: Model, block: Block, parameters: Parameters, temperature: Array, active: Array) -> Array:
    """Return only the free energy of each row (starts, n), in the first pass of a data cut."""
    return over_active(lambda *one: _weigh_one(model, block, *one)[1], active, parameters, temperature)


@jit_by_parts
def _expect_above(
    model: Any,
    block: Block,
    parameters: Parameters,
    temperature: Array,
    active: Array,
    threshold: Array,
    weighed: Any = None,
) -> Statistics:
    """Compute the statistics over the rows whose free energy reaches the threshold, the second pass of a data cut."""

    def one(parameters: Parameters, temperature: Array, threshold: Array, weighed: Any = None) -> Statistics:
        if weighed is None:
            weighed = model.posterior.weigh(model, parameters, block, temperature)
        inference = model.posterior.infer_from(model, parameters, block, temperature, weighed, threshold)
        return statistics_of(model, parameters, block, inference)

    of_starts = (parameters, temperature, threshold) + (() if weighed is None else (weighed,))
    return over_active(one, active, *of_starts)


def evidence_threshold(model: Model, data: Data, parameters: Parameters) -> float:
    """Return the log evidence that is reached by the share of rows that the states considered should explain.

    It is computed at temperature one, and −∞ if the posterior considers every state, so that it explains all rows.
    """
    mass = _log_mass(model, parameters)
    if mass is None:
        return -np.inf
    keep = model.posterior.keep
    share = (1.0 if keep is None else keep) * np.exp(float(mass))
    evidence = data.map(partial(_evidence, model), parameters)
    return float(data.quantile(evidence, np.array([min(share, 1.0)]))[0])


@jit_by_parts
def _log_mass(model: Model, parameters: Parameters) -> Array | None:
    return model.posterior.log_mass(model, parameters)


def _evidence(model: Model, block: Block, parameters: Parameters) -> Array:
    return log_evidence(model, block, parameters)[None]
