"""Results of learning: records of all starts and of the best one, their history, and their outcome."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from multicause.annealing import Annealing
from multicause.arrays import on_host
from multicause.em.usage import has_died
from multicause.engines.base import Data
from multicause.model import Statistics
from multicause.outcomes import Outcome
from multicause.records import Parameters

# Outcomes that a dead cause overrides; ``converged`` still distinguishes them.
MAY_HAVE_DIED = (Outcome.CONVERGED, Outcome.MAX_ITER)


class StartResults(NamedTuple):
    """Results of learning from every start, on the host; arrays have a leading axis of starts."""

    parameters: Parameters
    statistics: Statistics  # at temperature one
    bound: np.ndarray  # (starts,) mean per row, at temperature one
    bounds: np.ndarray  # (n_rounds + 1, starts) mean per row, before each iteration and at the end
    temperatures: np.ndarray  # (n_rounds + 1, starts)
    kept: np.ndarray  # (n_rounds + 1, starts) share of all rows that learning used
    outcome: np.ndarray  # (starts,)
    last: np.ndarray  # (starts,) iterations after which each start ended
    n_rounds: int


class BoundChange(NamedTuple):
    """A point from which on bounds are not comparable with earlier ones, because rows, states or components differ."""

    start: int  # index of the first bound after the change
    reason: str


class FitResult(NamedTuple):
    """Result of learning for the best start; all arrays are on the host."""

    parameters: Parameters
    bound: float  # mean per row, at temperature one
    bounds: np.ndarray  # (n_iter + 1,) mean per row, before each iteration and at the end
    temperatures: np.ndarray  # (n_iter + 1,)
    n_iter: int
    n_rounds: int  # number of iterations that were run, for any start
    converged: bool
    outcome: Outcome
    statistics: Statistics  # statistics at the end, at temperature one
    kept: np.ndarray | None = None  # (n_iter + 1,) share of all rows that learning used; None if not recorded
    bound_changes: tuple[BoundChange, ...] = ()
    annealing: Annealing | None = None  # schedule that was used; None if there was none
    results: Mapping[str, Any] = {}  # fitted attributes that only this algorithm finds


class Progress(NamedTuple):
    """Progress that is reported after each iteration; arrays have shape (starts,)."""

    iteration: int  # counted from zero
    temperature: np.ndarray
    bound: np.ndarray
    parameters: Parameters | None  # None for watchers that do not look at models
    statistics: Statistics | None = None  # statistics of these parameters, if the loop has them
    cooled: bool = True  # whether annealing is over, so that bounds can be compared
    current: bool = True  # whether the parameters are those of this iteration, not of a later one
    phase: str = ""  # phase of the search, such as "annealing"; empty if there is only one
    results: Mapping[str, Any] = {}  # fitted attributes that only this algorithm finds

    @property
    def best(self) -> int:
        """Index of the start with the highest finite bound."""
        return int(np.argmax(np.where(np.isfinite(self.bound), self.bound, -np.inf)))


def best_of(results: StartResults, data: Data, merit: np.ndarray | None = None) -> FitResult:
    """Return the start with the highest finite bound, or another merit (starts,).

    Starts are always stopped together.
    """
    merit = results.bound if merit is None else merit
    chosen = int(np.argmax(np.where(np.isfinite(merit) & np.isfinite(results.bound), merit, -np.inf)))
    was_stopped = (results.outcome == Outcome.STOPPED).any()
    n_iter, why = int(results.last[chosen]), Outcome.STOPPED if was_stopped else Outcome(results.outcome[chosen])
    parameters, sums = start_of((results.parameters, results.statistics), chosen)
    return FitResult(
        parameters=parameters,
        bound=float(results.bound[chosen]),
        bounds=np.array([*results.bounds[:n_iter, chosen], results.bound[chosen]]),
        temperatures=np.array([*results.temperatures[:n_iter, chosen], 1.0]),
        n_iter=n_iter,
        n_rounds=results.n_rounds,
        converged=why == Outcome.CONVERGED,
        outcome=final_outcome(why, parameters, sums, data),
        statistics=sums,
        kept=results.kept[: n_iter + 1, chosen],
    )


def result_of_one(
    parameters: Parameters,
    statistics: Statistics,
    bounds: Sequence[float],
    outcome: Outcome | None,
    data: Data | None = None,
    temperatures: Sequence[float] | None = None,
    *,
    n_iter: int | None = None,
    **others: Any,
) -> FitResult:
    """Return the result of a loop that learned one start, or that has chosen one.

    ``bounds`` end with that of the parameters. ``outcome`` is None if the maximum number of iterations was reached.
    Without ``data``, causes are not checked for having died. ``others`` are further fields of the result.
    """
    n_iter = len(bounds) - 1 if n_iter is None else n_iter
    why = Outcome.MAX_ITER if outcome is None else outcome
    parameters, statistics = on_host((parameters, statistics))
    return FitResult(
        parameters=parameters,
        bound=float(bounds[-1]),
        bounds=np.array(bounds, dtype=float),
        temperatures=np.ones(len(bounds)) if temperatures is None else np.array(temperatures, dtype=float),
        n_iter=n_iter,
        n_rounds=n_iter,
        converged=why == Outcome.CONVERGED,
        outcome=why if data is None else final_outcome(why, parameters, statistics, data),
        statistics=statistics,
        **others,
    )


def is_finite(record: Any) -> bool:
    """Return whether all numbers of a record, such as parameters, are finite."""
    return all(bool(np.isfinite(leaf).all()) for leaf in on_host(jax.tree.leaves(record)))


def batch_result(
    parameters: Parameters,
    bound: float,
    n_batches: int,
    *,
    finite: bool,
    statistics: Any = None,
    temperature: float = 1.0,
    **others: Any,
) -> FitResult:
    """Return the result of one batch of a stream, after ``n_batches`` batches in total.

    Its outcome is "max_iter" (without a warning) if all steps were done, or "non_finite" if parameters became infinite
    and were not stored.
    """
    outcome = Outcome.MAX_ITER if finite else Outcome.NON_FINITE
    result = FitResult(
        parameters=parameters,
        bound=float(bound),
        bounds=np.array([bound], dtype=float),
        temperatures=np.array([temperature], dtype=float),
        n_iter=1,
        n_rounds=n_batches,
        converged=False,
        outcome=outcome,
        statistics=statistics,
    )
    return result._replace(**others)


def concatenate_history(first: FitResult, then: FitResult, reason: str = "") -> FitResult:
    """Return the second fit, with the history of the first before its own.

    A ``reason`` says why the bounds of the second are not comparable with those of the first.
    """
    # Without any iteration, the second fit has only recomputed the last bound of the first.
    bounds = np.concatenate([first.bounds, then.bounds[1:]] if then.n_iter else [first.bounds[:-1], then.bounds])
    new = (BoundChange(min(first.n_iter + 1, len(bounds) - 1), reason),) if reason else ()
    return then._replace(
        bounds=bounds,
        bound_changes=(
            *first.bound_changes,
            *new,
            *(BoundChange(first.n_iter + start, why) for start, why in then.bound_changes),
        ),
        temperatures=np.concatenate([first.temperatures, then.temperatures[1:]]),
        kept=None if first.kept is None or then.kept is None else np.concatenate([first.kept, then.kept[1:]]),
        n_iter=first.n_iter + then.n_iter,
        n_rounds=first.n_rounds + then.n_rounds,
    )


class Watcher:
    """A watcher that forwards changed progress to another one, and needs every iteration if that one does."""

    def __init__(self, watch: Callable[[Progress], bool], change: Callable[[Progress], Progress]) -> None:
        self._watch, self._change = watch, change
        self.every_iteration = getattr(watch, "every_iteration", True)
        self.needs_models = getattr(watch, "needs_models", True)

    def __call__(self, progress: Progress) -> bool:
        """Report changed progress to the original watcher, and return its answer."""
        return self._watch(self._change(progress))


def offset_iterations(watch: Callable[[Progress], bool] | None, offset: int) -> Callable[[Progress], bool] | None:
    """Return a watcher that adds ``offset`` to the number of each iteration."""
    if watch is None:
        return None
    return Watcher(watch, lambda progress: progress._replace(iteration=progress.iteration + offset))


def one_start(record: Any) -> Any:
    """Return parameters or statistics with a leading axis of one start, on the host."""
    return jax.tree.map(lambda leaf: np.asarray(leaf)[None], record)


def stack_starts(records: Iterable[Any]) -> Any:
    """Return parameters with a leading axis of starts, given those of each start."""
    return jax.tree.map(lambda *leaves: np.stack(leaves), *records)


def start_of(record: Any, number: int = 0) -> Any:
    """Return parameters or statistics of one start, without the leading axis of starts."""
    return jax.tree.map(lambda leaf: leaf[number], record)


def per_row(statistics: Statistics, *names: str) -> tuple[np.ndarray, ...]:
    """Return sums of all starts, divided by the weight of the rows over which they are taken: (starts,)."""
    seen, learned = np.asarray(statistics.seen), np.asarray(statistics.weight)
    return tuple(np.asarray(getattr(statistics, name)) / (seen if name == "bound" else learned) for name in names)


def final_outcome(why: Outcome, parameters: Parameters, sums: Statistics, data: Data) -> Outcome:
    """Return how learning ended; a dead cause overrides other outcomes."""
    return Outcome.CAUSE_DIED if why in MAY_HAVE_DIED and has_died(parameters, sums, data) else why
