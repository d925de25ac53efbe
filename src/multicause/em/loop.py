"""The loop around the EM step: where steps run, how progress is reported, and what is returned.

If one program can hold all data, one call does many steps, so that a fit is as fast as its arithmetic. Their number
follows from their duration, so that callbacks, progress bars and Ctrl-C act several times a second. Otherwise each step
is preceded by sums over blocks, which run in parallel on all cores.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from multicause.annealing import Annealing, ConstantTemperatures, Schedule
from multicause.arrays import Array, compiled, on_cpu, select
from multicause.em import memory
from multicause.em.driver import Watch, run_loop
from multicause.em.e_step import expect_blocks, expect_resident
from multicause.em.results import FitResult, Progress, StartResults, best_of, per_row
from multicause.em.step import OUTCOMES, EMState, HistoryRow, Limits, begin, em_step, final_share, stopped
from multicause.engines.base import Data
from multicause.model import Block, Model, Parameters, Statistics
from multicause.persistence.journal import Journal
from multicause.runtime.parallel import run_all

# Maximum number of steps in one call of the program, and the approximate duration of a call.
MOST_STEPS = 64
SECONDS_PER_CALL = 0.08
# Maximum ratio of the numbers of steps of two successive calls.
GROWTH = 4


class LoopState(NamedTuple):
    """State of the loop: the state of EM, and the history so far with one row per evaluated iteration."""

    state: EMState
    bounds: np.ndarray  # (iteration + 1, starts)
    temperatures: np.ndarray  # (iteration + 1, starts)
    kept: np.ndarray  # (iteration + 1, starts)


def learn(model: Model, data: Data, starts: Parameters, **settings: Any) -> FitResult:
    """Run EM from all starts (see :func:`learn_all`) and return the one with the highest bound."""
    return best_of(learn_all(model, data, starts, **settings), data)


def learn_all(
    model: Model,
    data: Data,
    starts: Parameters,
    *,
    annealing: Annealing | ConstantTemperatures,
    max_iter: int,
    tol: float,
    key: Array,
    watch: Watch | None = None,
    journal: Journal | None = None,
    places: int | None = None,
    components_only: bool = False,
) -> StartResults:
    """Run EM from all starts in parallel.

    ``watch`` is called after every iteration and may end learning by returning True. ``places`` is the number of starts
    for which the program is compiled: loops with fewer starts share it. With ``components_only``, only components are
    learned.
    """
    n_starts = len(starts.components)
    places = _n_places(n_starts, places)
    starts = jax.tree.map(partial(_filled_up, places), jax.device_get(starts))
    schedule = annealing.schedule(places)
    learn_others = not components_only
    limits = Limits(np.float64(tol), np.asarray(int(max_iter)), np.asarray(True), np.asarray(learn_others))
    runner = (_Blocks if data.resident is None else _Resident)(model, data, schedule, limits, key)
    check_cut(model, starts, data, n_starts)
    memory.check_memory(model, data)

    def first() -> LoopState:
        state = begin(model, schedule, limits, starts, data.blocks[0], n_starts)
        if model.posterior.remembers:
            state = state._replace(memory=memory.first_memory(model, data, starts, key))
        return _recorded(None, *runner(state, 1), n_starts)

    every = watch is not None and getattr(watch, "every_iteration", True)
    pace = _Pace(1 if every else MOST_STEPS)

    def step(before: LoopState) -> LoopState:
        began = time.perf_counter()
        state, rows = runner(before.state, pace.n_steps)
        after = _recorded(before, state, rows, n_starts)
        pace.tell(len(rows.bound), time.perf_counter() - began)
        check_share(model, state, data)
        return after

    found = run_loop(
        LoopState,
        first,
        step,
        goes_on=lambda now: int(now.state.iteration) < max_iter and bool(np.asarray(now.state.learning).any()),
        report=_progress,
        stop=lambda now: now._replace(state=stopped(now.state)),
        watch=watch,
        journal=journal,
    )
    state = jax.device_get(found.state)
    statistics = state.statistics
    if (np.asarray(found.temperatures[-1])[:n_starts] != 1).any():
        ones = state.cooling._replace(temperature=np.ones(places))
        active = np.arange(places) < n_starts
        again = state._replace(trial=state.parameters, cooling=ones, learning=active, iteration=np.asarray(-1))
        statistics = jax.device_get(runner(again, 1)[0].statistics)
    used = jax.tree.map(lambda leaf: leaf[:n_starts], (state.parameters, statistics, state.outcome, state.last))
    parameters, statistics, outcome, last = used
    return StartResults(
        parameters,
        statistics,
        per_row(statistics, "bound")[0],
        found.bounds[:, :n_starts],
        found.temperatures[:, :n_starts],
        found.kept[:, :n_starts],
        np.array([OUTCOMES[code] for code in outcome], dtype=object),
        last,
        n_rounds=int(state.iteration),
    )


def compile_ahead(
    model: Model, data: Data, starts: Parameters, annealing: Annealing, key: Array, places: int | None = None
) -> None:
    """Compile the program that :func:`learn_all` will need for such arguments, while other programs run."""
    if data.resident is None or model.posterior.remembers:
        return
    n_starts = len(starts.components)
    places = _n_places(n_starts, places)
    starts = jax.tree.map(partial(_filled_up, places), jax.device_get(starts))
    schedule = annealing.schedule(places)
    limits = Limits(np.float64(0), np.asarray(0), np.asarray(True), np.asarray(True))
    state = begin(model, schedule, limits, starts, data.blocks[0], n_starts)
    _Resident(model, data, schedule, limits, key).compile(state)


# ------------------------------------------------------------------------------------ runners of the steps


class _Resident:
    """Runner of EM steps in one program that holds all blocks; on a CPU, each thread runs a part of the starts."""

    def __init__(self, model: Model, data: Data, schedule: Schedule, limits: Limits, key: Array) -> None:
        self._model, self._data, self._arguments = model, data, (schedule, limits, key)
        self._keep_weights: bool | None = None

    def __call__(self, state: EMState, n_steps: int) -> tuple[EMState, HistoryRow]:
        """Run at most ``n_steps`` steps, until all starts have ended; return the state and the rows of the history."""
        run = partial(_run_steps, self._model, self._weights_are_kept(state), self._data.mesh)
        # The first step runs in one thread, so that several threads do not compile the same program.
        n_parts = 1 if int(state.iteration) < 0 else self._data.n_jobs
        parts = self._parts(np.asarray(state.learning), n_parts)
        tasks = [
            (self._data.resident, *self._arguments, state._replace(learning=part), np.asarray(n_steps))
            for part in parts
        ]
        found = run_all(run, tasks, len(parts))
        after, rows, n_done = found[0]
        counts = [int(count) for _, _, count in found]
        for part, (other, more, _) in zip(parts[1:], found[1:], strict=True):
            after, rows = _merge(part, other, after), _merge_rows(part, more, rows)
        if len(parts) > 1:
            after = _merge(~np.asarray(state.learning), state, after)
        n_done = max(counts)
        rows = HistoryRow(*(np.asarray(values)[:n_done].copy() for values in rows))
        for part, count in zip(parts, counts, strict=True):
            for values in rows:  # fill up rows of starts that ended before the others
                values[count:, part] = values[count - 1, part]
        return after, rows

    def compile(self, state: EMState) -> None:
        """Compile the program before the first call."""
        arguments = (self._data.resident, *self._arguments, state, np.asarray(0))
        jax.block_until_ready(_run_steps(self._model, self._weights_are_kept(state), self._data.mesh, *arguments))

    @staticmethod
    def _parts(learning: np.ndarray, n_parts: int) -> list[np.ndarray]:
        """Return masks of the starts that each thread runs."""
        which = np.flatnonzero(learning)
        n_parts = max(1, min(n_parts, len(which)))
        masks = []
        for part in np.array_split(which, n_parts):
            mask = np.zeros(len(learning), dtype=bool)
            mask[part] = True
            masks.append(mask)
        return masks

    def _weights_are_kept(self, state: EMState) -> bool:
        """Return whether the weights of all states fit into memory between the two passes of a data cut."""
        if self._model.posterior.keep is None:
            return False
        if self._keep_weights is None:
            posterior: Any = self._model.posterior
            blocks: Any = self._data.resident
            one = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), (blocks, state.trial))
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
        if model.posterior.remembers:
            statistics, kept = memory.expect_resident(
                model, blocks, state.trial, temperature, state.learning, state.memory
            )
            state = state._replace(memory=kept)
        else:
            statistics = expect_resident(
                model, keep_weights, mesh, blocks, state.trial, temperature, state.share, state.learning
            )
        after, row = em_step(model, schedule, limits, key, state, statistics)
        rows = jax.tree.map(lambda all_of, new: all_of.at[done].set(new), rows, row)
        return _like(state, after), rows, done + 1

    return jax.lax.while_loop(go_on, step, (_strong(state), rows, jnp.zeros((), int)))


class _Blocks:
    """Runner of EM steps whose statistics are sums over blocks."""

    def __init__(self, model: Model, data: Data, schedule: Schedule, limits: Limits, key: Array) -> None:
        self._model, self._data, self._arguments = model, data, (schedule, limits, key)

    def __call__(self, state: EMState, n_steps: int) -> tuple[EMState, HistoryRow]:
        """Run one step, regardless of ``n_steps``: sums over many blocks take long enough."""
        temperature, share = state.cooling.temperature, np.asarray(state.share)
        if self._model.posterior.remembers:
            statistics, kept = memory.expect_blocks(
                self._model, self._data, state.trial, temperature, state.learning, state.memory
            )
            # The step does not need the memory, which would be copied into its program and out of it.
            state, row = _one_step(self._model, *self._arguments, state._replace(memory={}), statistics)
            return state._replace(memory=kept), HistoryRow(*(np.asarray(values)[None] for values in row))
        statistics = expect_blocks(self._model, self._data, state.trial, temperature, share, state.learning)
        state, row = _one_step(self._model, *self._arguments, state, statistics)
        return state, HistoryRow(*(np.asarray(values)[None] for values in row))


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


@partial(compiled, static=())
def _merge(which: Array, some: EMState, others: EMState) -> EMState:
    """Return the state of all starts, of which those in ``which`` were learned by another program."""

    def choose(a: Array, b: Array) -> Array:
        return jnp.maximum(a, b) if jnp.ndim(a) == 0 else select(which, a, b)

    return jax.tree.map(choose, some, others)


def _merge_rows(which: np.ndarray, some: HistoryRow, others: HistoryRow) -> HistoryRow:
    return HistoryRow(*(np.where(which, np.asarray(a), np.asarray(b)) for a, b in zip(some, others, strict=True)))


class _Pace:
    """Number of steps of the next call, adapted to the duration of the last one."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.n_steps = min(GROWTH, most)

    def tell(self, n_done: int, seconds: float) -> None:
        """Adapt the number of steps to the duration of the last call."""
        affordable = int(SECONDS_PER_CALL * n_done / max(seconds, 1e-9))
        self.n_steps = max(1, min(self._most, affordable, GROWTH * self.n_steps))


# --------------------------------------------------------------------------------------------- bookkeeping


def _n_places(n_starts: int, places: int | None) -> int:
    """Return the number of starts for which a program is compiled."""
    # An accelerator computes all starts at once, so that a place without a start would cost time.
    return n_starts if places is None or (n_starts == 1 and not on_cpu()) else max(places, n_starts)


def _filled_up(places: int, leaf: np.ndarray) -> np.ndarray:
    """Return an array with a leading axis of ``places``, filled up with the last start."""
    leaf = np.asarray(leaf)
    return leaf[np.minimum(np.arange(places), len(leaf) - 1)]


def _recorded(before: LoopState | None, state: EMState, rows: HistoryRow, n_starts: int) -> LoopState:
    """Return the loop's state with the history extended by some rows."""
    histories = [np.array(values, dtype=float) for values in rows]
    for values in histories:
        values[:, n_starts:] = np.nan
    if before is not None:
        past = (before.bounds, before.temperatures, before.kept)
        histories = [np.vstack(both) for both in zip(past, histories, strict=True)]
    return LoopState(state, *histories)


def _progress(before: LoopState, after: LoopState) -> Iterator[Progress]:
    """Yield the progress of the iterations of the last call.

    All but the last are reported with the parameters of the last one, for watchers that only need bounds.
    """
    state, last = after.state, int(after.state.iteration)
    cooled = bool(np.asarray(state.cooled).all())
    for iteration in range(int(before.state.iteration) + 1, last + 1):
        seen = (after.temperatures[iteration], after.bounds[iteration], state.parameters, state.statistics)
        yield Progress(iteration - 1, *seen, cooled, current=iteration == last)


def check_cut(model: Model, starts: Parameters, data: Data, n_starts: int) -> None:
    """Raise ValueError if, with fixed activities, the data cut will leave no row."""
    if model.posterior.keep is not None and "activity" not in model.learn:
        check_rows(model, np.asarray(final_share(model, starts))[:n_starts], data)


def check_share(model: Model, state: EMState, data: Data) -> None:
    """Raise ValueError if the data cut leaves no row to a start that is still learning."""
    if model.posterior.keep is not None and np.asarray(state.learning).any():
        check_rows(model, np.asarray(state.share)[np.asarray(state.learning)], data)


def check_rows(model: Model, share: np.ndarray, data: Data) -> None:
    """Raise ValueError if these shares of the rows are less than one row."""
    if share.min() * data.n_weighted < 1:
        raise ValueError(
            f"The data cut would keep less than one of {data.n_weighted} rows: keep={model.posterior.keep} of those "
            f"that, by the activities, have at most {model.posterior.max_active} active causes. Raise "
            "max_active or keep, start with a lower activity, or use keep=None."
        )
