"""Automatic search for causes, selected by ``annealing="auto"``.

1. Find a start temperature just low enough for causes to become different from each other (ET10 §5.4).
2. Anneal the components alone from there, with a sparse posterior: Expectation Truncation with at most 3 active
   causes, among all causes if they are few, else among 5 candidates. It has fewer local optima, because sparse states
   cannot explain every row by many causes (see ``docs/background/local_optima.md``). ``Truncated`` provides such a
   posterior itself.
3. Learn all parameters by plain EM, and repair remaining local optima. The model's own posterior does this if its
   states are the same for all rows, which makes them cheap; otherwise the sparse one.
4. Finish by EM with the model's own posterior on all data; causes that die in it come back where data are explained
   worst, as long as the bound rises.

Steps 1 to 3 use only some thousand rows, if there are more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from multicause.annealing import Annealing, LinearCooling, NoAnnealing
from multicause.arrays import Array
from multicause.em.loop import compile_ahead, learn
from multicause.em.results import (
    FitResult,
    Progress,
    Watcher,
    concatenate_history,
    offset_iterations,
    one_start,
    start_of,
)
from multicause.engines.base import Data
from multicause.model import Model, Parameters
from multicause.persistence.journal import Journal
from multicause.posteriors import MOST_ENUMERATED, Exact, Posterior, Preselected
from multicause.runtime.parallel import in_background
from multicause.search.critical_temperature import spread_at
from multicause.search.phases import (
    SHARE_DIVISOR,
    WARM_TEMPERATURE,
    Search,
    difference,
    iterations_to_find,
    measured,
    run_phases,
)
from multicause.search.repair import repair, revive_dead
from multicause.search.variants import MOST_VARIANTS
from multicause.states.state_list import sparse_states

# Candidates and active causes of the sparse posterior: the values of ET10 for all its experiments on bars.
SEARCH_SIZES = (5, 3)
# Number of sparse states of all causes up to which all of them are candidates. Such states are matrix products, which
# compile and run faster than the 26 states of 5 candidates that every row selects.
MOST_SHARED_STATES = 512
# Length of the annealing in iterations, and number of iterations below which it is skipped.
ITERATIONS = 60
LEAST_ITERATIONS = 10
# Fraction of the iterations until then after which repair begins, because causes that have died can come back there.
UNTIL_REPAIR = 2 / 3
# Temperatures that are tried, and iterations at each.
TEMPERATURES = 1.5 ** np.arange(1, 11)
TRIAL_ITERATIONS = 10
# Annealing starts at the highest temperature at which the spread of the components has risen by this fraction of the
# way from the spread at the hottest temperature to the largest spread.
DIFFERENTIATION = 0.25


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
    n_components = starts.components.shape[1]
    journal = journal or Journal()
    # With few causes all of them are candidates anyway, but a data cut must wait until the causes are found.
    use_sparse = model.prior.selectable and (n_components > SEARCH_SIZES[0] or model.posterior.keep is not None)
    sparse_model = replace(model, posterior=search_posterior(model, n_components)) if use_sparse else model
    # Posteriors that do not ascend a bound are suited to annealing, but their bound cannot compare solutions.
    annealing_model = sparse_model if model.posterior.ascends_bound else model
    search_model = model if model.posterior.shares_states(n_components) else sparse_model
    if not model.posterior.ascends_bound and n_components <= MOST_ENUMERATED:
        search_model = replace(model, posterior=Exact())
    finishing = search_model is not model or search_data is not data
    to_find = iterations_to_find(max_iter, finishing)
    n_iter = min(ITERATIONS, max_iter // SHARE_DIVISOR)
    annealed = bool(annealed and n_iter >= LEAST_ITERATIONS and n_components > 1 and "components" in model.learn)
    # All loops of the search share one program for each posterior.
    places = max(len(starts.components), len(TEMPERATURES), min(n_components, MOST_VARIANTS))
    settings: dict[str, Any] = {"key": key, "journal": journal}
    plain: dict[Model, Annealing] = {
        each: NoAnnealing()
        if each.posterior.ascends_bound
        else LinearCooling(WARM_TEMPERATURE, final=WARM_TEMPERATURE, n_iter=1)
        for each in (search_model, model)
    }
    # Programs of later phases are compiled while the first phase runs.
    later: list[tuple[Model, Data, int | None]] = (
        [(search_model, search_data, places)] if annealed and search_model is not annealing_model else []
    )
    later += [(model, data, None)] if finishing else []
    programs = {
        (using, rows, n_places): in_background(
            compile_ahead, using, rows, one_start(start_of(starts)), plain[using], key, n_places
        )
        for using, rows, n_places in later
    }

    def seen_by(other: Model, phase: str) -> Callable[[Progress], bool] | None:
        """Return the watcher of a phase; statistics of another posterior are removed, as the model cannot use them."""
        if watch is None:
            return None
        changes: dict[str, Any] = {"phase": phase}
        if other.posterior != model.posterior:
            changes["statistics"] = None
        return Watcher(watch, lambda progress: progress._replace(**changes))

    def cooling(state: Search) -> LinearCooling | NoAnnealing:
        return NoAnnealing() if state.temperature is None else LinearCooling(state.temperature, n_iter=n_iter)

    def find_temperature(state: Search) -> Search:
        return state._replace(temperature=start_temperature(annealing_model, search_data, starts, key, places))

    def anneal(state: Search) -> Search:
        cooled = learn(
            annealing_model,
            search_data,
            starts,
            annealing=cooling(state),
            max_iter=n_iter,
            tol=0.0,
            watch=seen_by(annealing_model, "annealing"),
            places=places,
            components_only=True,
            **settings,
        )
        return state._replace(fit=cooled)

    def run_em(
        phase: str, before: Model, using: Model, data: Data, until: int, places: int | None, state: Search
    ) -> Search:
        spent = 0 if state.fit is None else state.fit.n_rounds
        if (using, data, places) in programs:
            programs[using, data, places].result()
        then = learn(
            using,
            data,
            starts if state.fit is None else one_start(state.fit.parameters),
            annealing=plain[using],
            max_iter=max(0, until - spent),
            tol=tol,
            watch=offset_iterations(seen_by(using, phase), spent),
            places=places,
            **settings,
        )
        reason = difference(before, using, search_data, data)
        return state._replace(fit=then if state.fit is None else concatenate_history(state.fit, then, reason))

    def run_repair(state: Search) -> Search:
        assert state.fit is not None
        how: dict[str, Any] = {
            "max_iter": to_find,
            "tol": tol,
            "random": random,
            "ranking": annealing_model if annealing_model.posterior.ascends_bound else None,
            "watch": seen_by(search_model, "repairing"),
        }
        return state._replace(fit=repair(search_model, search_data, state.fit, places=places, **how, **settings))

    def run_revival(state: Search) -> Search:
        assert state.fit is not None
        how: dict[str, Any] = {
            "max_iter": max_iter,
            "tol": tol,
            "random": random,
            "watch": seen_by(model, "final learning"),
        }
        return state._replace(fit=revive_dead(model, data, state.fit, search_data, **how, **settings))

    # Bounds on all rows, from states that do not depend on earlier iterations.
    comparable = model.posterior.ascends_bound and model.posterior.keep is None and not model.posterior.remembers
    until_repair = int(UNTIL_REPAIR * to_find) if repairing else to_find
    phases: list[Callable[[Search], Search]] = [
        *([find_temperature, anneal] if annealed else []),
        partial(run_em, "learning", annealing_model, search_model, search_data, until_repair, places),
        *([run_repair] if repairing else []),
        *([partial(run_em, "final learning", search_model, model, data, max_iter, None)] if finishing else []),
        *([run_revival] if repairing and finishing and comparable else []),
    ]
    measure = partial(measured, model, search_data, data, tol, key)
    state = run_phases(phases, journal, measure if finishing else None)
    assert state.fit is not None
    return state.fit, cooling(state)


def search_posterior(model: Model, n_components: int) -> Posterior:
    """Return a posterior with few active causes and candidates, and without a data cut."""
    candidates, max_active = (min(size, n_components) for size in SEARCH_SIZES)
    few = sparse_states(n_components, max_active).n_states <= MOST_SHARED_STATES
    if few and model.prior.is_binary:
        return Preselected(n_components, max_active, keep=None).bind(model, n_components, 1, 1)
    leaner = model.posterior.leaner(candidates, max_active)
    return leaner or Preselected(candidates, max_active, keep=None).bind(model, n_components, 1, 1)


def start_temperature(model: Model, data: Data, starts: Parameters, key: Array, places: int) -> float:
    """Return the highest temperature at which components become different enough from each other.

    Above a critical temperature all components converge to the same mean of the data. With candidates, which every row
    selects again in each iteration, the transition is gradual; therefore components learn for some iterations at each
    of several temperatures, all from the same start, and their spread is compared.
    """
    spread = spread_at(model, data, starts, TRIAL_ITERATIONS, TEMPERATURES, key, places)
    enough = spread[-1] + DIFFERENTIATION * (spread.max() - spread[-1])
    return float(TEMPERATURES[np.flatnonzero(spread >= enough)[-1]])
