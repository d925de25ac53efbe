"""Where the steps of EM run: in one compiled loop over all blocks, or after sums over blocks.

On a CPU, the program of the compiled loop runs a single start. Several starts are several calls, which run in parallel
on all cores. So one program serves one start and many, and it compiles in three quarters of the time of a program with
an axis of starts.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from multicause.annealing import Schedule
from multicause.arrays import Array, compiled, on_cpu, on_host
from multicause.em import kept_states
from multicause.em.e_step import expect_blocks, expect_resident
from multicause.em.step import EMState, HistoryRow, Limits, em_step
from multicause.engines.base import Data
from multicause.model import Model, Statistics
from multicause.records import Block
from multicause.runtime.blas import one_blas_thread
from multicause.runtime.parallel import run_all

Tree = TypeVar("Tree")

# Maximum number of steps in one call of the program.
MOST_STEPS = 64


def runs_single_starts(data: Data) -> bool:
    """Return whether each start of a fit to the data is run by a separate call of the program."""
    return data.resident is not None and data.mesh is None and on_cpu()


class ResidentRunner:
    """Runner of EM steps in one program that holds all blocks."""

    def __init__(self, model: Model, data: Data, schedule: Schedule, limits: Limits, key: Array) -> None:
        self._model, self._data, self._limits, self._key = model, data, limits, key
        self._schedules = self.split(schedule)
        self._keep_weights: bool | None = None

    def split(self, record: Any) -> tuple[Any, ...]:
        """Return the records of the groups of starts that are run by one call each, given that of all starts."""
        return split_starts(record) if runs_single_starts(self._data) else (record,)

    @one_blas_thread()
    def __call__(
        self, groups: Sequence[EMState], n_steps: int, compiled: bool = False
    ) -> tuple[tuple[EMState, ...], list[HistoryRow | None]]:
        """Run at most ``n_steps`` steps of each group, until all its starts have ended.

        Return the states, and the rows of the history (steps, starts) of each group, None if it had ended before.
        Unless the program is ``compiled`` already, the first group runs alone, so that several threads do not compile
        the same program.
        """
        learning = [number for number, state in enumerate(groups) if np.asarray(state.learning).any()]
        tasks = [(number, groups[number], n_steps) for number in learning]
        n_alone = 0 if compiled else 1
        ends = [self._run(*task) for task in tasks[:n_alone]]
        ends += run_all(self._run, tasks[n_alone:], self._data.n_jobs)
        after, rows = list(groups), [None for _ in groups]  # type: tuple[list[EMState], list[HistoryRow | None]]
        for number, (state, own, n_done) in zip(learning, ends, strict=True):
            after[number] = state
            reported, n_reported = on_host((own, n_done))
            rows[number] = HistoryRow(*(values[:n_reported] for values in reported))
        return tuple(after), rows

    def compile(self, state: EMState) -> None:
        """Compile the program before the first call."""
        jax.block_until_ready(self._run(0, self.split(state)[0], 0))

    def _run(self, number: int, state: EMState, n_steps: int) -> tuple[EMState, HistoryRow, Array]:
        """Run steps of one group of starts."""
        kept = kept_states.for_resident(self._data, state.kept_states) if state.kept_states else {}
        if self._data.mesh is not None:
            # The program returns its state on all devices. If it began elsewhere, the program would be compiled twice.
            everywhere = jax.sharding.NamedSharding(self._data.mesh, jax.sharding.PartitionSpec())
            state = jax.device_put(state._replace(kept_states={}), everywhere)
        state = state._replace(kept_states=kept)
        arguments = (self._schedules[number], self._limits, self._key, state, np.asarray(n_steps))
        keep_weights = self._weights_are_kept(state)
        return _run_steps(self._model, keep_weights, self._data.mesh, self._data.resident, *arguments)

    def _weights_are_kept(self, state: EMState) -> bool:
        """Return whether the weights of all states fit into memory between the two passes of a data cut."""
        if self._model.posterior.keep is None:
            return False
        if self._keep_weights is None:
            posterior: Any = self._model.posterior
            blocks: Any = self._data.resident
            one = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), (blocks, state.proposal))
            temperature = jax.ShapeDtypeStruct((), np.float64)
            record = jax.eval_shape(partial(posterior.weigh, self._model), one[1], one[0], temperature)
            n_bytes = sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(record))
            self._keep_weights = self._data.can_keep(len(blocks.rows) * n_bytes)
        return self._keep_weights


@partial(compiled, static=(0, 1, 2))
def _run_steps(
    model: Model,
    keep_weights: bool,
    mesh: jax.sharding.Mesh | None,
    blocks: Block,
    schedule: Schedule,
    limits: Limits,
    key: Array,
    state: EMState,
    n_steps: Array,
) -> tuple[EMState, HistoryRow, Array]:
    """Run E-steps and EM steps until ``n_steps`` are done, all starts have ended, or ``max_iter`` is reached."""
    places = len(state.learning)
    rows = HistoryRow(*(jnp.full((MOST_STEPS, places), jnp.nan) for _ in HistoryRow._fields))

    def go_on(carry: tuple[EMState, HistoryRow, Array]) -> Array:
        state, _, done = carry
        return (done < n_steps) & jnp.any(state.learning) & (state.iteration < limits.max_iter)

    def step(carry: tuple[EMState, HistoryRow, Array]) -> tuple[EMState, HistoryRow, Array]:
        state, rows, done = carry
        temperature = state.cooling.temperature
        if model.posterior.keeps_states:
            statistics, kept = kept_states.expect_resident(
                model, mesh, blocks, state.proposal, temperature, state.learning, state.kept_states
            )
            state = state._replace(kept_states=kept)
        else:
            statistics = expect_resident(
                model, keep_weights, mesh, blocks, state.proposal, temperature, state.share, state.learning
            )
        after, row = em_step(model, schedule, limits, key, state, statistics)
        rows = jax.tree.map(lambda all_of, new: all_of.at[done].set(new), rows, row)
        return _like(state, after), rows, done + 1

    return jax.lax.while_loop(go_on, step, (_strong(state), rows, jnp.zeros((), int)))


class BlockRunner:
    """Runner of EM steps whose statistics are sums over blocks."""

    def __init__(self, model: Model, data: Data, schedule: Schedule, limits: Limits, key: Array) -> None:
        self._model, self._data, self._arguments = model, data, (schedule, limits, key)

    def split(self, record: Any) -> tuple[Any, ...]:
        """Return the record of all starts as the only group, because each pass over the blocks serves all of them."""
        return (record,)

    @one_blas_thread()
    def __call__(
        self, groups: Sequence[EMState], n_steps: int, compiled: bool = False
    ) -> tuple[tuple[EMState, ...], list[HistoryRow | None]]:
        """Run one step, regardless of ``n_steps``: sums over many blocks take long enough."""
        (state,) = groups
        temperature, share = state.cooling.temperature, np.asarray(state.share)
        if self._model.posterior.keeps_states:
            statistics, kept = kept_states.expect_blocks(
                self._model, self._data, state.proposal, temperature, state.learning, state.kept_states
            )
            # The step does not need these states, which would be copied into its program and out of it.
            state, row = _one_step(self._model, *self._arguments, state._replace(kept_states={}), statistics)
            return (state._replace(kept_states=kept),), [HistoryRow(*(np.asarray(values)[None] for values in row))]
        statistics = expect_blocks(self._model, self._data, state.proposal, temperature, share, state.learning)
        state, row = _one_step(self._model, *self._arguments, state, statistics)
        return (state,), [HistoryRow(*(np.asarray(values)[None] for values in row))]


@compiled
def _one_step(
    model: Model, schedule: Schedule, limits: Limits, key: Array, state: EMState, statistics: Statistics
) -> tuple[EMState, HistoryRow]:
    after, row = em_step(model, schedule, limits, key, state, statistics)
    return _like(state, after), row


def _strong(state: EMState) -> EMState:
    return jax.tree.map(jnp.asarray, state)


def _like(state: EMState, after: EMState) -> EMState:
    """Return a state with the dtypes of another, so that one program can be used for all steps."""
    return jax.tree.map(lambda old, new: jnp.asarray(new).astype(jnp.asarray(old).dtype), state, after)


def split_starts(record: Any) -> tuple[Any, ...]:
    """Return the records of all starts, each with an axis of starts of length one; numbers without it are repeated."""
    n_starts = max(len(leaf) for leaf in jax.tree.leaves(record) if np.ndim(leaf) > 0)

    def one(start: int) -> Any:
        return jax.tree.map(lambda leaf: leaf if np.ndim(leaf) == 0 else np.asarray(leaf)[start : start + 1], record)

    return tuple(map(one, range(n_starts)))


def join_starts(records: Sequence[Tree]) -> Tree:
    """Return the record of all starts on the host, given those of groups of starts.

    Of numbers without an axis of starts, it has the largest.
    """

    def join(*leaves: Any) -> np.ndarray:
        return np.max(leaves, axis=0) if np.ndim(leaves[0]) == 0 else np.concatenate(leaves)

    # All leaves are copied at once: one by one, they would take as long as half an iteration on an accelerator.
    return jax.tree.map(join, *on_host(list(records)))
