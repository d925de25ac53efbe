"""Several annealed starts, of which the one that explains the data best is kept.

This is what ``RestrictedMaximalCauses`` does without settings. Its posterior, single causes and pairs, finds causes
reliably but does not climb its bound, and a bound without larger states says little about what was found: so a *judge*,
the same model with more states, compares the starts. Repair, which EM with richer posteriors needs, would judge by a
likelihood that equal sums of all components make wrong, and split causes that are stronger than others.
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
from multicause.search.automatic import RESERVED, SHARE_OF_ITERATIONS, WARM, Search, difference, measured, run_phases
from multicause.search.critical_temperature import critical_temperature

# Temperatures at which starts begin in turn, as parts of the critical one. Most data are best annealed from just below
# it, but it is known within a tenth only, and one step too hot is worse than several too cold.
SHARES_OF_CRITICAL = (1.0, 0.8)
# Steps of the cooling, of MCA08 appendix E.2, or one for so many iterations where there are few.
STEPS = 50
ITERATIONS_PER_STEP = 5
# Part of all iterations after which cooling must have ended.
COOLED = 0.8


def conditional_cooling(critical: float, max_iter: int) -> ConditionalCooling:
    """MCA08's schedule, within the time that there is."""
    steps = max(1, min(STEPS, max_iter // ITERATIONS_PER_STEP))
    hold = min(10, steps)
    return ConditionalCooling(
        tuple(max(part * critical, WARM) for part in SHARES_OF_CRITICAL),
        final=WARM,
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
    """Find causes on ``search_data``, finish on all; returns the fit and the schedule.

    ``likelihood`` is the judge: it says of all starts how likely those rows are.
    Where ``annealing`` is None, its temperature is found from the data, or is the last one where starts are not to be
    ``annealed``.
    """
    journal = journal or Journal()
    finishing = search_data is not data
    to_find = max_iter - (min(RESERVED, max_iter // SHARE_OF_ITERATIONS) if finishing else 0)
    settings: dict[str, Any] = {"tol": tol, "key": key, "journal": journal}

    def schedule(state: Search) -> Annealing:
        if annealing is not None:
            return annealing
        return conditional_cooling(WARM if state.temperature is None else state.temperature, to_find)

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
            annealing=conditional_cooling(WARM, max_iter),
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
