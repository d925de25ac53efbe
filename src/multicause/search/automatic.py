"""Automatic search for causes, selected by ``annealing="auto"``.

1. Find a start temperature just low enough for causes to become different from each other (ET10 §5.4).
2. Anneal the components alone from there, with a sparse posterior: Expectation Truncation with at most 3 active
   causes, among all causes if they are few, else among 5 candidates. It has fewer local optima, because sparse states
   cannot explain every row by many causes (see ``docs/background/local_optima.md``). ``Truncated`` provides such a
   posterior itself.
3. Learn all parameters by plain EM, and repair remaining local optima. The model's own posterior does this if its
   states are the same for all rows, which makes them cheap; otherwise the sparse one. Then begin at rows of the data,
   without annealing, as long as that leads to a higher bound, and repair this fit, too: where data have no separate
   causes, annealing may end in a poor optimum. Repair of an annealed fit with surplus components ends at its first
   failure.
4. Finish by EM with the model's own posterior on all data, without causes that are not needed
   (:mod:`multicause.search.pruning`). If step 3 had other states of the same rows, and few causes are not needed now,
   one is recycled once more. Otherwise causes that die come back where data are explained worst, as long as the bound
   rises.

Steps 1 to 3 use only some thousand rows, if there are more.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from multicause.annealing import Annealing, LinearCooling, NoAnnealing
from multicause.arrays import Array
from multicause.em.loop import compile_ahead, learn
from multicause.em.results import (
    FitResult,
    Progress,
    concatenate_history,
    offset_iterations,
    one_start,
    start_of,
)
from multicause.engines.base import Data
from multicause.model import Model
from multicause.persistence.journal import Journal
from multicause.records import Parameters
from multicause.runtime.parallel import in_background
from multicause.search.critical_temperature import start_temperature
from multicause.search.phases import (
    SHARE_DIVISOR,
    WARM_TEMPERATURE,
    Search,
    difference,
    measured,
    run_phases,
)
from multicause.search.pruning import (
    MOST_LEFT_OVER,
    can_prune,
    comparable_bounds,
    find_surplus,
    have_come_back,
    rise_worth_a_cause,
    run_pruning,
)
from multicause.search.repair import relearn_from_rows, repair, revive_dead
from multicause.search.search_models import choose_models
from multicause.search.search_plan import SearchPlan
from multicause.search.variants import falls_without

# Fraction of the iterations until then after which repair begins, because causes that have died can come back there.
UNTIL_REPAIR = 2 / 3
# Attempts in the last phase that may fail in a row, each of which recycles another cause.
FINAL_ATTEMPTS = 1
# A cause is needed if the bound falls without it by more than this, relative to the median of all causes.
NEEDED = 0.4


def search(
    model: Model,
    data: Data,
    search_data: Data,
    starts: Parameters,
    *,
    annealed: bool,
    repairing: bool,
    max_iter: int,
    tol: float,
    random: np.random.RandomState,
    key: Array,
    watch: Callable[[Progress], bool] | None = None,
    journal: Journal | None = None,
) -> tuple[FitResult, LinearCooling | NoAnnealing]:
    """Find causes on ``search_data`` and finish on all data; return the fit and the annealing that was chosen.

    Without ``annealed``, EM begins at the starts themselves: annealing would destroy components that a user gives.
    """
    models = choose_models(model, starts.components.shape[1])
    journal = journal or Journal()
    plan = SearchPlan(models, data, search_data, starts, max_iter, tol, random, key, watch, journal)
    phases = phases_of(plan, annealed=annealed, repairing=repairing)
    measure = partial(measured, model, search_data, data, tol, key)
    state = run_phases(phases, journal, measure if plan.finishing else None)
    assert state.fit is not None
    return state.fit, cooling(plan, state)


class EMPhase(NamedTuple):
    """Plain EM with one of the models, from the result of the phase before."""

    name: str
    model: Model
    data: Data
    until: int  # iteration of the search at which it ends
    places: int | None
    change: str  # why its bounds are not comparable with those of the phase before
    program: Future[Any] | None  # compilation that has begun


def phases_of(plan: SearchPlan, *, annealed: bool, repairing: bool) -> list[Callable[[Search], Search]]:
    """Return the phases of a search in order; programs of later ones are compiled while the first one runs."""
    annealed = annealed and plan.can_anneal
    learning = learning_phase(plan, annealed=annealed, repairing=repairing)
    return [
        *([partial(find_temperature, plan), partial(anneal, plan)] if annealed else []),
        partial(run_em, plan, learning),
        *([partial(find_surplus, plan)] if repairing and annealed and can_prune(plan) else []),
        *([partial(run_repair, plan)] if repairing else []),
        *([partial(run_from_rows, plan), partial(run_repair_from_rows, plan)] if repairing and annealed else []),
        *last_phases(plan, repairing=repairing),
    ]


def last_phases(plan: SearchPlan, *, repairing: bool) -> list[Callable[[Search], Search]]:
    """Return the phases that finish a fit with the user's model on all rows."""
    final = final_phase(plan)
    phases: list[Callable[[Search], Search]] = []
    if repairing and can_prune(plan):
        phases += [partial(run_pruning, plan), partial(finish, plan, final), partial(finish_unpruned, plan, final)]
    elif plan.finishing:
        phases.append(partial(finish, plan, final))
    if repairing and comparable_bounds(plan.models.final.posterior):
        phases += [partial(run_final_repair, plan)] if plan.repairs_again else []
        phases += [partial(run_revival, plan)] if plan.finishing else []
    return phases


def learning_phase(plan: SearchPlan, *, annealed: bool, repairing: bool) -> EMPhase:
    """Return EM on the rows of the search, which follows annealing or is the first phase."""
    model, rows = plan.models.search, plan.search_data
    later = annealed and model is not plan.models.annealing
    return EMPhase(
        "learning",
        model,
        rows,
        int(UNTIL_REPAIR * plan.search_iterations) if repairing else plan.search_iterations,
        plan.places,
        difference(plan.models.annealing, model, rows, rows),
        compiling(plan, model, rows, plan.places) if later else None,
    )


def final_phase(plan: SearchPlan) -> EMPhase:
    """Return EM with the user's model on all rows."""
    model, data = plan.models.final, plan.data
    change = difference(plan.models.search, model, plan.search_data, data)
    places = None if plan.finishing else plan.places
    program = compiling(plan, model, data, None) if plan.finishing else None
    return EMPhase("final learning", model, data, plan.max_iter, places, change, program)


def compiling(plan: SearchPlan, model: Model, data: Data, places: int | None) -> Future[Any]:
    """Begin to compile the program of an EM phase in another thread."""
    start = one_start(start_of(plan.starts))
    return in_background(compile_ahead, model, data, start, plain_annealing(model), plan.key, places)


def plain_annealing(model: Model) -> Annealing:
    """Return no annealing, or a constant temperature for posteriors that do not ascend a bound."""
    if model.posterior.ascends_bound:
        return NoAnnealing()
    return LinearCooling(WARM_TEMPERATURE, final=WARM_TEMPERATURE, n_iter=1)


def cooling(plan: SearchPlan, state: Search) -> LinearCooling | NoAnnealing:
    """Return the annealing from the temperature that was found."""
    if state.temperature is None:
        return NoAnnealing()
    return LinearCooling(state.temperature, n_iter=plan.annealing_iterations)


def find_temperature(plan: SearchPlan, state: Search) -> Search:
    """Find the start temperature of the annealing."""
    temperature = start_temperature(plan.models.annealing, plan.search_data, plan.starts, plan.key, plan.places)
    return state._replace(temperature=temperature)


def anneal(plan: SearchPlan, state: Search) -> Search:
    """Anneal the components alone."""
    cooled = learn(
        plan.models.annealing,
        plan.search_data,
        plan.starts,
        annealing=cooling(plan, state),
        max_iter=plan.annealing_iterations,
        tol=0.0,
        watch=plan.watch_phase(plan.models.annealing, "annealing"),
        places=plan.places,
        components_only=True,
        **plan.loop,
    )
    return state._replace(fit=cooled)


def run_em(plan: SearchPlan, phase: EMPhase, state: Search) -> Search:
    """Learn all parameters by plain EM."""
    spent = 0 if state.fit is None else state.fit.n_rounds
    if phase.program is not None:
        phase.program.result()
    fit = learn(
        phase.model,
        phase.data,
        plan.starts if state.fit is None else one_start(state.fit.parameters),
        annealing=plain_annealing(phase.model),
        max_iter=max(0, phase.until - spent),
        tol=plan.tol,
        watch=offset_iterations(plan.watch_phase(phase.model, phase.name), spent),
        places=phase.places,
        **plan.loop,
    )
    return state._replace(fit=fit if state.fit is None else concatenate_history(state.fit, fit, phase.change))


def finish(plan: SearchPlan, phase: EMPhase, state: Search) -> Search:
    """Learn with the user's model on all rows, unless the fit has just been learned so."""
    assert state.fit is not None
    if state.silenced:
        # Pruning has used the same posterior on the rows of the search. Some iterations are left for finish_unpruned.
        rows = difference(phase.model, phase.model, plan.search_data, phase.data)
        until = plan.max_iter - (plan.max_iter - state.fit.n_rounds) // SHARE_DIVISOR
        return run_em(plan, phase._replace(change=rows, until=until), state)
    return run_em(plan, phase, state) if plan.finishing else state


def finish_unpruned(plan: SearchPlan, phase: EMPhase, state: Search) -> Search:
    """Finish the fit with all causes instead, if causes that were left out have come back."""
    if not state.silenced or not have_come_back(plan.models.final, state):
        return state
    assert state.fit is not None
    assert state.unpruned is not None
    with_all = state.unpruned._replace(n_rounds=state.fit.n_rounds)
    return finish(plan, phase, state._replace(fit=with_all, silenced=(), unpruned=None))


def run_repair(plan: SearchPlan, state: Search) -> Search:
    """Repair local optima on the rows of the search; with surplus components, as long as bounds rise by much."""
    assert state.fit is not None
    ranking = plan.models.annealing
    limits: dict[str, Any] = {} if state.surplus is None else {"attempts": 1, "least_rise": state.surplus}
    repaired = repair(
        plan.models.search,
        plan.search_data,
        state.fit,
        max_iter=plan.search_iterations,
        ranking=ranking if ranking.posterior.ascends_bound else None,
        places=plan.places,
        **limits,
        **repair_settings(plan, plan.models.search, "repairing"),
    )
    return state._replace(fit=repaired)


def run_from_rows(plan: SearchPlan, state: Search) -> Search:
    """Learn from rows of the data without annealing, and keep the result if its bound is higher."""
    assert state.fit is not None
    settings = repair_settings(plan, plan.models.search, "repairing")
    again = relearn_from_rows(
        plan.models.search,
        plan.search_data,
        state.fit,
        start_of(plan.starts),
        max_iter=plan.search_iterations,
        places=plan.places,
        **settings,
    )
    if not again.bound > state.fit.bound:
        return state._replace(fit=again)
    return state._replace(fit=again, from_rows=True, surplus=None)


def run_repair_from_rows(plan: SearchPlan, state: Search) -> Search:
    """Repair the fit if it was learned from rows of the data; otherwise it has been repaired."""
    return run_repair(plan, state) if state.from_rows else state


def run_final_repair(plan: SearchPlan, state: Search) -> Search:
    """Repair local optima of the sparse posterior, with the user's model.

    Where few causes can be active, a cause for a rare coincidence of many explains rows that the others cannot, so that
    repair leaves it in place of a cause that is missing. If all causes are needed, or many are not, none is recycled.
    """
    assert state.fit is not None
    falls = falls_without(plan.models.final, plan.data, state.fit.parameters)
    if not 1 <= np.sum(falls < NEEDED * np.median(falls)) <= max(1, MOST_LEFT_OVER * len(falls)):
        return state
    repaired = repair(
        plan.models.final,
        plan.data,
        state.fit,
        max_iter=plan.max_iter,
        ranking=plan.models.annealing,
        attempts=FINAL_ATTEMPTS,
        least_rise=rise_worth_a_cause(plan.data),
        **repair_settings(plan, plan.models.final, "final learning"),
    )
    return state._replace(fit=repaired)


def run_revival(plan: SearchPlan, state: Search) -> Search:
    """Bring causes back that died in the last phase, unless they were left out because they are not needed."""
    assert state.fit is not None
    if state.silenced:
        return state
    revived = revive_dead(
        plan.models.final,
        plan.data,
        state.fit,
        plan.search_data,
        max_iter=plan.max_iter,
        **repair_settings(plan, plan.models.final, "final learning"),
    )
    return state._replace(fit=revived)


def repair_settings(plan: SearchPlan, model: Model, phase: str) -> dict[str, Any]:
    """Return the settings that all kinds of repair share, with the callbacks of a phase."""
    return {"tol": plan.tol, "random": plan.random, "watch": plan.watch_phase(model, phase), **plan.loop}
