"""Repair of local optima: reuse the cause that contributes least as a second copy of another cause.

Each round of repair

1. finds the cause whose removal would lower the bound least, from the probabilities of all causes in all rows;
2. replaces it by a perturbed copy of each other cause in turn, and runs a tournament of all these variants and of
   some others: all weights raised above zero and, if causes are dead, residuals of the rows that are explained worst
   in place of all of them (:mod:`multicause.search.variants`);
3. keeps the winner if its bound is higher; otherwise the next cause in order is replaced, and after some failures the
   fit stays as it is, after a single one if all causes are needed equally.

A fit is also compared with one that begins at rows of the data (:func:`relearn_from_rows`). After the last phase of a
search, only dead causes come back (:func:`revive_dead`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from multicause.annealing import NoAnnealing
from multicause.arrays import Array
from multicause.em.driver import run_loop
from multicause.em.loop import learn
from multicause.em.results import (
    MAY_HAVE_DIED,
    FitResult,
    Progress,
    concatenate_history,
    offset_iterations,
    one_start,
    stack_starts,
)
from multicause.em.usage import dead_causes
from multicause.engines.base import Data
from multicause.initialization.parameters import rows_as_components
from multicause.model import Model
from multicause.outcomes import Outcome
from multicause.persistence.journal import Journal
from multicause.records import Parameters
from multicause.search.tournament import (
    ROUNDS,
    ROUNDS_FROM_ROWS,
    VARIANT_TOL,
    Rounds,
    is_better,
    report_best,
    run_tournament,
)
from multicause.search.variants import REVIVALS, all_variants, falls_without, revived

# Number of causes that are recycled one after the other, those with the smallest contribution first, before repair
# stops.
ATTEMPTS = 3
# One of them is enough if all causes are needed equally: without any, the bound falls by at least this fraction of how
# much it falls without another. In local optima one is a copy, or stands for a rare coincidence, and is hardly missed.
# Of 560 fits with as many components as bars, 316 had found all bars before repair: all 303 above this fraction, and 13
# others.
EQUALLY_NEEDED = 0.6
# Number of starts from rows of the data that are compared at a time.
FROM_ROWS = 4


class RepairState(NamedTuple):
    """State of repair between two tournaments."""

    fit: FitResult
    spent: int  # iterations so far, including those of failed attempts
    failures: int = 0  # causes that were recycled without success since the last success
    least_missed: tuple[int, ...] = ()  # causes, the one without which the bound falls least first
    all_needed: bool = False  # whether it falls about equally without any of them
    winner: Parameters | None = None  # better variant that has not converged yet
    given_up: bool = False


@dataclass(frozen=True)
class RepairStrategy:
    """What one kind of repair tries, and when it gives up."""

    variants: Callable[[RepairState], Parameters]
    is_possible: Callable[[FitResult], bool]  # whether a fit can have better variants
    attempts: int  # tournaments in a row that may fail
    prepare: Callable[[RepairState], RepairState] = lambda state: state  # called before each tournament
    ranking: Model | None = None  # model of the first round of tournaments
    least_rise: float = VARIANT_TOL  # rise of the bound per row by which a variant succeeds
    rounds: Rounds = ROUNDS  # of tournaments


def repair(
    model: Model,
    data: Data,
    fit: FitResult,
    *,
    max_iter: int,
    random: np.random.RandomState,
    ranking: Model | None = None,
    attempts: int = ATTEMPTS,
    least_rise: float = VARIANT_TOL,
    **settings: Any,
) -> FitResult:
    """Improve a fit until no variant is better, or until ``max_iter`` iterations in total.

    At most so many ``attempts`` in a row may fail, each of which recycles another cause, or one, if all causes are
    needed equally. A variant succeeds if its bound per row is higher by more than ``least_rise``.

    A fit that has not converged is continued, unless causes have died: these come back first. The model ``ranking``,
    which may have a cheaper posterior, selects the variants that are worth more iterations. ``settings`` are those of
    :func:`multicause.em.loop.learn`.
    """
    if _is_fixed(model, fit):
        return fit

    def begin() -> RepairState:
        unfinished = not fit.converged and _can_go_on(fit) and fit.n_rounds < max_iter
        continued = unfinished and not dead_causes(fit.parameters, fit.statistics, data).any()
        return RepairState(fit, fit.n_rounds, winner=fit.parameters if continued else None)

    def ranked(state: RepairState) -> RepairState:
        if state.failures:
            return state
        falls = falls_without(model, data, state.fit.parameters)
        order = tuple(np.argsort(falls, kind="stable").tolist())
        equally = falls.min() > 0 and falls.min() >= EQUALLY_NEEDED * falls.max()
        return state._replace(least_missed=order, all_needed=bool(equally))

    def variants(state: RepairState) -> Parameters:
        return all_variants(model, data, state.fit, state.least_missed, state.failures, random)

    attempts = min(attempts, len(fit.parameters.components))
    repairs = RepairStrategy(variants, _can_go_on, attempts, prepare=ranked, ranking=ranking, least_rise=least_rise)
    return _improve(model, data, begin, repairs, max_iter=max_iter, **settings)


def revive_dead(
    model: Model,
    data: Data,
    fit: FitResult,
    pool: Data,
    *,
    max_iter: int,
    random: np.random.RandomState,
    **settings: Any,
) -> FitResult:
    """Bring dead causes back from rows of ``pool`` as long as the bound rises; a fit without them stays as it is.

    It is the last phase of a search. ``settings`` are those of :func:`multicause.em.loop.learn`.
    """
    if _is_fixed(model, fit):
        return fit

    def variants(state: RepairState) -> Parameters:
        dead = dead_causes(state.fit.parameters, state.fit.statistics, data)
        return revived(model, pool, state.fit.parameters, dead, random, REVIVALS)

    def has_dead(fit: FitResult) -> bool:
        return fit.outcome == Outcome.CAUSE_DIED

    repairs = RepairStrategy(variants, has_dead, attempts=1)
    return _improve(model, data, lambda: RepairState(fit, fit.n_rounds), repairs, max_iter=max_iter, **settings)


def relearn_from_rows(
    model: Model,
    data: Data,
    fit: FitResult,
    start: Parameters,
    *,
    max_iter: int,
    random: np.random.RandomState,
    **settings: Any,
) -> FitResult:
    """Learn again from rows as components as long as that leads to higher bounds, else return the fit as it is.

    All other parameters are those of a ``start``. Several choices of rows are compared at a time; most runs end after
    some iterations, when their bounds would not become higher soon. ``settings`` are those of
    :func:`multicause.em.loop.learn`.
    """
    if _is_fixed(model, fit):
        return fit

    def from_rows(_: RepairState) -> Parameters:
        def one_choice() -> Parameters:
            rows: Any = rows_as_components(model, data, len(start.components), random).astype(data.dtype)
            return start._replace(components=rows)

        return stack_starts(one_choice() for _ in range(FROM_ROWS))

    repairs = RepairStrategy(from_rows, _can_go_on, attempts=1, rounds=ROUNDS_FROM_ROWS)
    return _improve(model, data, lambda: RepairState(fit, fit.n_rounds), repairs, max_iter=max_iter, **settings)


def _improve(
    model: Model,
    data: Data,
    begin: Callable[[], RepairState],
    repairs: RepairStrategy,
    *,
    max_iter: int,
    tol: float,
    key: Array,
    watch: Callable[[Progress], bool] | None = None,
    journal: Journal | None = None,
    places: int | None = None,
) -> FitResult:
    """Run tournaments of variants, and EM from the winner of each, until too many in a row have failed."""
    journal = journal or Journal()
    least_rise = max(tol, repairs.least_rise)
    settings: dict[str, Any] = {"tol": tol, "key": key, "journal": journal, "places": places}

    def attempt(state: RepairState) -> RepairState:
        """Run a tournament of variants of the fit, and keep its winner if that is better."""
        state = repairs.prepare(state)
        winner = run_tournament(
            model,
            data,
            partial(repairs.variants, state),
            ranking=repairs.ranking or model,
            to_beat=state.fit.bound,
            least_rise=least_rise,
            rounds=repairs.rounds,
            max_iter=max_iter - state.spent,
            watch=report_best(watch, state.fit, state.spent),
            **settings,
        )
        state = state._replace(spent=state.spent + winner.n_rounds)
        stopped = winner.outcome == Outcome.STOPPED
        if not is_better(winner, state.fit, least_rise):
            failures = state.failures + 1
            best = state.fit._replace(outcome=Outcome.STOPPED, converged=False) if stopped else state.fit
            attempts = 1 if state.all_needed else repairs.attempts
            return state._replace(fit=best, failures=failures, given_up=stopped or failures == attempts)
        state = state._replace(fit=concatenate_history(state.fit, winner), failures=0)
        if stopped or state.spent >= max_iter:
            return state._replace(given_up=True)
        return state._replace(winner=winner.parameters)

    def finish(state: RepairState) -> RepairState:
        """Run EM from the winner until it converges."""
        assert state.winner is not None
        rest = learn(
            model,
            data,
            one_start(state.winner),
            annealing=NoAnnealing(),
            max_iter=max_iter - state.spent,
            watch=offset_iterations(watch, state.spent),
            **settings,
        )
        return state._replace(fit=concatenate_history(state.fit, rest), spent=state.spent + rest.n_rounds, winner=None)

    def goes_on(state: RepairState) -> bool:
        if state.winner is not None:
            return True
        return repairs.is_possible(state.fit) and state.spent < max_iter and not state.given_up

    def step(state: RepairState) -> RepairState:
        return attempt(state) if state.winner is None else finish(state)

    state = run_loop(RepairState, begin, step, goes_on=goes_on, journal=journal)
    return state.fit._replace(n_rounds=state.spent)


def _is_fixed(model: Model, fit: FitResult) -> bool:
    """Return whether no cause can be exchanged for another: there is only one, or components are not learned."""
    return len(fit.parameters.components) < 2 or "components" not in model.learn


def _can_go_on(fit: FitResult) -> bool:
    """Return whether repair may continue: EM ended neither by an error nor by the user."""
    return fit.converged or fit.outcome in (*MAY_HAVE_DIED, Outcome.CAUSE_DIED)
