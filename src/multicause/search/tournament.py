"""Tournament of variants of a fit: a few iterations from all of them, and more from the best.

All variants of a round are starts of one loop of EM. The first round only ranks them, so that a cheaper posterior can
do it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

from multicause.annealing import NoAnnealing
from multicause.em.driver import run_loop
from multicause.em.loop import learn_all
from multicause.em.results import FitResult, Progress, StartResults, Watcher, best_of, offset_iterations, one_start
from multicause.engines.base import Data
from multicause.model import Model
from multicause.outcomes import Outcome
from multicause.persistence.journal import Journal
from multicause.records import Parameters

Rounds = tuple[tuple[int, int], ...]
# Iterations of each round and number of variants that survive it, and the rise of the bound per row below which a
# variant ends early. Nearly all variants that win are among the best four after three iterations.
ROUNDS = ((3, 4), (5, 2), (20, 1))
# The same for four starts from rows, which are farther from their optima: ranks become reliable later, so that the
# first round drops none by its rank.
ROUNDS_FROM_ROWS = ((10, 4), (10, 2), (40, 1))
VARIANT_TOL = 1e-4
# A variant is dropped if it would not reach the bound of the fit within this many iterations like its last one.
HORIZON = 25


class Tournament(NamedTuple):
    """State of a tournament between two rounds."""

    starts: Parameters  # the remaining variants
    number: int = 0  # index of the next round
    spent: int = 0  # iterations so far
    results: StartResults | None = None  # results of the last round


def run_tournament(
    model: Model,
    data: Data,
    variants: Callable[[], Parameters],
    *,
    ranking: Model,
    to_beat: float,
    least_rise: float,
    rounds: Rounds = ROUNDS,
    max_iter: int,
    tol: float,
    watch: Callable[[Progress], bool] | None,
    journal: Journal,
    **settings: Any,
) -> FitResult:
    """Run a few iterations from all variants, and more from the best while they may exceed the bound ``to_beat``.

    They must exceed it by more than ``least_rise``. Each of the ``rounds`` has a number of iterations and one of
    variants that survive it.

    The model ``ranking`` runs the first round. It may have another posterior, whose bounds rank variants but cannot be
    compared with ``to_beat``.
    """

    def play(state: Tournament) -> Tournament:
        """Run one round of the tournament."""
        iterations, survivors = rounds[state.number]
        using = ranking if state.number == 0 else model
        results = learn_all(
            using,
            data,
            state.starts,
            annealing=NoAnnealing(),
            max_iter=max(1, min(iterations, max_iter - state.spent)),
            tol=max(tol, VARIANT_TOL),
            watch=offset_iterations(watch, state.spent),
            journal=journal,
            **settings,
        )
        spent, number = state.spent + results.n_rounds, state.number + 1
        bounds = np.where(np.isfinite(results.bound), results.bound, -np.inf)
        best = np.argsort(bounds)[::-1][:survivors]
        if using is model:
            rise = bounds[best] - results.bounds[-2:][0, best]
            best = best[bounds[best] + HORIZON * rise > to_beat + least_rise]
        done = number == len(rounds) or spent >= max_iter or (results.outcome == Outcome.STOPPED).any()
        if done and using is not model:
            results = _measured(model, data, results, best[:1], tol=tol, **settings)
        if done or len(best) == 0:
            return state._replace(number=len(rounds), spent=spent, results=results)
        return Tournament(jax.tree.map(lambda leaf: leaf[best], results.parameters), number, spent)

    end = run_loop(
        Tournament, lambda: Tournament(variants()), play, goes_on=lambda state: state.results is None, journal=journal
    )
    assert end.results is not None
    return best_of(end.results, data)._replace(n_rounds=end.spent)


def _measured(model: Model, data: Data, results: StartResults, chosen: np.ndarray, **settings: Any) -> StartResults:
    """Return the ``chosen`` results of a round with the bounds and statistics of the model itself."""
    starts = jax.tree.map(lambda leaf: leaf[chosen], results.parameters)
    own_results = learn_all(model, data, starts, annealing=NoAnnealing(), max_iter=0, **settings)
    return own_results._replace(outcome=results.outcome[chosen], n_rounds=results.n_rounds)


def is_better(variant: FitResult, fit: FitResult, least_rise: float) -> bool:
    """Return whether the bound of a variant is higher than that of the fit by more than ``least_rise``."""
    return bool(variant.bound > fit.bound + least_rise)


def report_best(
    watch: Callable[[Progress], bool] | None, fit: FitResult, offset: int
) -> Callable[[Progress], bool] | None:
    """Return a watcher that reports the fit so far as long as none of its variants is better."""
    if watch is None:
        return None

    def with_best(progress: Progress) -> Progress:
        progress = progress._replace(iteration=progress.iteration + offset)
        if not progress.bound[progress.best] > fit.bound:
            parameters, statistics = one_start(fit.parameters), one_start(fit.statistics)
            progress = Progress(progress.iteration, np.ones(1), np.array([fit.bound]), parameters, statistics)
        return progress

    return Watcher(watch, with_best)
