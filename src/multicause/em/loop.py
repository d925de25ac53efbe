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
from weakref import WeakKeyDictionary

import jax
import numpy as np

from multicause.annealing import Annealing, ConstantTemperatures
from multicause.arrays import Array, on_cpu, on_host
from multicause.em import kept_states
from multicause.em.data_cut import final_share
from multicause.em.driver import Watch, run_loop
from multicause.em.results import FitResult, Progress, StartResults, best_of, per_row
from multicause.em.runners import MOST_STEPS, BlockRunner, ResidentRunner, join_starts, runs_single_starts
from multicause.em.step import OUTCOMES, EMState, HistoryRow, Limits, begin, stopped
from multicause.engines.base import Data
from multicause.model import Model
from multicause.persistence.journal import Journal
from multicause.records import Parameters

# Approximate duration of one call of the program.
SECONDS_PER_CALL = 0.08
# Maximum ratio of the numbers of steps of two successive calls.
GROWTH = 4


class LoopState(NamedTuple):
    """State of the loop: the state of EM, and the history so far with one row per evaluated iteration."""

    groups: tuple[EMState, ...]  # states of the groups of starts that are run by one call of the program each
    bounds: np.ndarray  # (iteration + 1, starts)
    temperatures: np.ndarray  # (iteration + 1, starts)
    kept: np.ndarray  # (iteration + 1, starts)

    @property
    def iteration(self) -> int:
        """Number of steps that the starts that are still learning have done, −1 before the starts are evaluated."""
        return max(int(state.iteration) for state in self.groups)

    @property
    def learning(self) -> bool:
        """Whether any start has not ended yet."""
        return any(np.asarray(state.learning).any() for state in self.groups)


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
    places = _n_places(data, n_starts, places)
    starts = jax.tree.map(partial(_filled_up, places), on_host(starts))
    schedule = annealing.schedule(places)
    learn_others = not components_only
    limits = Limits(np.float64(tol), np.asarray(int(max_iter)), np.asarray(True), np.asarray(learn_others))
    runner = (BlockRunner if data.resident is None else ResidentRunner)(model, data, schedule, limits, key)
    check_cut(model, starts, data, n_starts)

    def first() -> LoopState:
        state = begin(model, schedule, limits, starts, data.blocks[0], n_starts)
        if model.posterior.keeps_states:
            state = state._replace(kept_states=kept_states.first_states(model, data, starts, key))
        return LoopState(runner.split(state), *(np.empty((0, places)) for _ in HistoryRow._fields))

    every = watch is not None and getattr(watch, "every_iteration", True)
    pace = _Pace(model, data, places if runs_single_starts(data) else 1, 1 if every else MOST_STEPS)

    def step(before: LoopState) -> LoopState:
        began = time.perf_counter()
        after = _recorded(before, *runner(before.groups, pace.n_steps, compiled=pace.measured), n_starts)
        pace.record_duration(len(after.bounds) - len(before.bounds), time.perf_counter() - began)
        for state in after.groups:
            check_share(model, state, data)
        return after

    end = run_loop(
        LoopState,
        first,
        step,
        goes_on=lambda now: now.iteration < max_iter and now.learning,
        report=partial(_progress, getattr(watch, "needs_models", True)),
        stop=lambda now: now._replace(groups=tuple(map(stopped, now.groups))),
        watch=watch,
        journal=journal,
    )
    results = [(state.parameters, state.statistics, state.outcome, state.last, state.iteration) for state in end.groups]
    parameters, statistics, outcome, last, n_rounds = join_starts(results)
    if (np.asarray(end.temperatures[-1])[:n_starts] != 1).any():
        state = join_starts([state._replace(kept_states={}) for state in end.groups])
        ones = state.cooling._replace(temperature=np.ones(places))
        active = np.arange(places) < n_starts
        again = state._replace(proposal=state.parameters, cooling=ones, learning=active, iteration=np.asarray(-1))
        both = zip(runner.split(again), end.groups, strict=True)
        groups = tuple(group._replace(kept_states=before.kept_states) for group, before in both)
        statistics = join_starts([state.statistics for state in runner(groups, 1)[0]])
    used = jax.tree.map(lambda leaf: leaf[:n_starts], (parameters, statistics, outcome, last))
    parameters, statistics, outcome, last = used
    return StartResults(
        parameters,
        statistics,
        per_row(statistics, "bound")[0],
        end.bounds[:, :n_starts],
        end.temperatures[:, :n_starts],
        end.kept[:, :n_starts],
        np.array([OUTCOMES[code] for code in outcome], dtype=object),
        last,
        n_rounds=int(n_rounds),
    )


def compile_ahead(
    model: Model, data: Data, starts: Parameters, annealing: Annealing, key: Array, places: int | None = None
) -> None:
    """Compile the program that :func:`learn_all` will need for such arguments, while other programs run."""
    if data.resident is None or model.posterior.keeps_states:
        return
    n_starts = len(starts.components)
    places = _n_places(data, n_starts, places)
    starts = jax.tree.map(partial(_filled_up, places), on_host(starts))
    schedule = annealing.schedule(places)
    limits = Limits(np.float64(0), np.asarray(0), np.asarray(True), np.asarray(True))
    state = begin(model, schedule, limits, starts, data.blocks[0], n_starts)
    ResidentRunner(model, data, schedule, limits, key).compile(state)


# Duration of a step of one group of starts, by data and model, so that later loops of a fit do many steps at once.
_DURATIONS: WeakKeyDictionary[Data, dict[Model, float]] = WeakKeyDictionary()


class _Pace:
    """Number of steps of the next call, adapted to the duration of earlier ones.

    A program that has not been called before, with these data, begins with a single step.
    """

    def __init__(self, model: Model, data: Data, n_groups: int, most: int) -> None:
        self._model, self._n_groups, self._most = model, n_groups, most
        self._durations = _DURATIONS.setdefault(data, {})
        self.measured = model in self._durations
        self.n_steps = self._affordable() if self.measured else 1

    def record_duration(self, n_done: int, seconds: float) -> None:
        """Adapt the number of steps to the duration of the last call, unless it compiled the program."""
        before = self.n_steps if self.measured else 1
        if self.measured:
            self._durations[self._model] = seconds / (self._n_groups * n_done)
            affordable = self._affordable()
        else:
            self.measured, affordable = True, GROWTH
        self.n_steps = min(affordable, GROWTH * before, self._most)

    def _affordable(self) -> int:
        duration = max(self._n_groups * self._durations[self._model], 1e-9)
        return max(1, min(self._most, int(SECONDS_PER_CALL / duration)))


# --------------------------------------------------------------------------------------------- bookkeeping


def _n_places(data: Data, n_starts: int, places: int | None) -> int:
    """Return the number of starts for which the state has places."""
    if places is None or runs_single_starts(data):
        return n_starts
    # An accelerator computes all starts at once, so that a place without a start would cost time.
    return n_starts if n_starts == 1 and not on_cpu() else max(places, n_starts)


def _filled_up(places: int, leaf: np.ndarray) -> np.ndarray:
    """Return an array with a leading axis of ``places``, filled up with the last start."""
    leaf = np.asarray(leaf)
    return leaf[np.minimum(np.arange(places), len(leaf) - 1)]


def _recorded(
    before: LoopState, groups: tuple[EMState, ...], rows: list[HistoryRow | None], n_starts: int
) -> LoopState:
    """Return the loop's state with the history extended by some rows; starts that have ended repeat their last row."""
    n_rows = max(len(reported.bound) for reported in rows if reported is not None)
    past = (before.bounds, before.temperatures, before.kept)
    places = 0
    histories = [np.empty((n_rows, sum(len(state.learning) for state in groups))) for _ in HistoryRow._fields]
    for state, reported in zip(groups, rows, strict=True):
        starts = slice(places, places := places + len(state.learning))
        for number, history in enumerate(histories):
            if reported is not None:
                history[:, starts] = reported[number][np.minimum(np.arange(n_rows), len(reported.bound) - 1)]
            else:
                history[:, starts] = past[number][-1, starts]
    for history in histories:
        history[:, n_starts:] = np.nan
    return LoopState(groups, *(np.vstack(both) for both in zip(past, histories, strict=True)))


def _progress(with_models: bool, before: LoopState, after: LoopState) -> Iterator[Progress]:
    """Yield the progress of the iterations of the last call, with or without parameters; the first evaluation is none.

    All but the last are reported with the parameters of the last one, for watchers that only need bounds.
    """
    last = after.iteration
    models = [(state.parameters, state.statistics) if with_models else (None, None) for state in after.groups]
    parameters, statistics = join_starts(models)
    cooled = np.concatenate([np.asarray(state.cooled) for state in after.groups])
    for iteration in range(max(before.iteration, 0) + 1, last + 1):
        seen = (after.temperatures[iteration], after.bounds[iteration], parameters, statistics)
        yield Progress(iteration - 1, *seen, bool(cooled.all()), current=iteration == last)


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
