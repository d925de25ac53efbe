"""Restarts: several annealed starts, of which the one with the highest likelihood is kept.

``RestrictedMaximalCauses`` learns this way by default. Its posterior, single causes and pairs, finds causes reliably
but does not ascend its bound, and a bound without larger states says little about the solution. Therefore the starts
are compared by a *judge*, the same model with more states. Repair, which EM with richer posteriors needs, would compare
by a likelihood that is distorted because all components have equal sums, and would split causes that are stronger than
others.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from multicause.annealing import Annealing, ConditionalCooling
from multicause.arrays import Array
from multicause.em.loop import learn, learn_all
from multicause.em.results import FitResult, Progress, best_of, concatenate_history, offset_iterations, one_start
from multicause.engines.base import Data
from multicause.model import Model, Parameters
from multicause.persistence.journal import Journal
from multicause.search.automatic import (
    RESERVED,
    SHARE_OF_ITERATIONS,
    WARM_TEMPERATURE,
    Search,
    difference,
    measured,
    run_phases,
)
from multicause.search.critical_temperature import critical_temperature

# Start temperatures that the starts use in turn, as fractions of the critical one. Most data are best annealed from
# just below it, but it is known within a tenth only, and one step too hot is worse than several too cold.
SHARES_OF_CRITICAL = (1.0, 0.8)
# Number of cooling steps, from MCA08 appendix E.2, and least number of iterations per step where there are few.
STEPS = 50
ITERATIONS_PER_STEP = 5
# Fraction of all iterations after which cooling must have ended.
COOLED = 0.8


def conditional_cooling(critical: float, max_iter: int) -> ConditionalCooling:
    """Return the annealing schedule of MCA08, shortened to ``max_iter`` iterations."""
    steps = max(1, min(STEPS, max_iter // ITERATIONS_PER_STEP))
    hold = min(10, steps)
    return ConditionalCooling(
        tuple(max(part * critical, WARM_TEMPERATURE) for part in SHARES_OF_CRITICAL),
        final=WARM_TEMPERATURE,
        n_steps=steps,
        hold=hold,
        within=max(hold + 1, int(COOLED * max_iter)),
    )


def learn_restarts(
    model: Model,
    likelihood: Callable[[Parameters], np.ndarray],
    data: Data,
    search_data: Data,
    starts: Parameters,
    *,
    annealing: Annealing | None,
    annealed: bool,
    max_iter: int,
    tol: float,
    key: Array,
    watch: Callable[[Progress], bool] | None = None,
    journal: Journal | None = None,
) -> tuple[FitResult, Annealing]:
    """Find causes on ``search_data`` and finish on all data; return the fit and the schedule.

    ``likelihood`` compares the starts: it returns the log-likelihood of the search data for each of them. If
    ``annealing`` is None, its start temperature is found from the data; if starts are not to be ``annealed``, it is the
    final temperature.
    """
    journal = journal or Journal()
    finishing = search_data is not data
    to_find = max_iter - (min(RESERVED, max_iter // SHARE_OF_ITERATIONS) if finishing else 0)
    settings: dict[str, Any] = {"tol": tol, "key": key, "journal": journal}

    def schedule(state: Search) -> Annealing:
        if annealing is not None:
            return annealing
        return conditional_cooling(WARM_TEMPERATURE if state.temperature is None else state.temperature, to_find)

    def find_temperature(state: Search) -> Search:
        return state._replace(temperature=critical_temperature(model, search_data, starts, key))

    def try_all(state: Search) -> Search:
        found = learn_all(
            model, search_data, starts, annealing=schedule(state), max_iter=to_find, watch=watch, **settings
        )
        merit = likelihood(found.parameters) if len(found.bound) > 1 else None
        return state._replace(fit=best_of(found, search_data, merit))

    def finish(state: Search) -> Search:
        assert state.fit is not None
        spent = state.fit.n_rounds
        then = learn(
            model,
            data,
            one_start(state.fit.parameters),
            annealing=conditional_cooling(WARM_TEMPERATURE, max_iter),
            max_iter=max(0, max_iter - spent),
            watch=offset_iterations(watch, spent),
            **settings,
        )
        reason = difference(model, model, search_data, data)
        return state._replace(fit=concatenate_history(state.fit, then, reason))

    seeking = annealing is None and annealed and starts.components.shape[1] > 1
    phases = [*([find_temperature] if seeking else []), try_all, *([finish] if finishing else [])]
    measure = partial(measured, model, search_data, data, tol, key)
    state = run_phases(phases, journal, measure if finishing else None)
    assert state.fit is not None
    return state.fit, schedule(state)
