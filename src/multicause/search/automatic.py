"""Automatic search for causes, selected by ``annealing="auto"``.

1. Find a start temperature just low enough for causes to become different from each other (ET10 §5.4).
2. Anneal the components alone from there, with a sparse posterior (Expectation Truncation with 5 candidates). It has
   fewer local optima, because sparse states cannot explain every row by many causes (see
   ``docs/background/local_optima.md``). ``Truncated`` provides such a posterior itself.
3. Learn all parameters by plain EM, and repair remaining local optima.
4. Finish by EM with the model's own posterior on all data.

Steps 1 to 3 use only some thousand rows, if there are more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from multicause.annealing import Annealing, LinearCooling, NoAnnealing
from multicause.arrays import Array
from multicause.em.driver import run_loop
from multicause.em.loop import compile_ahead, learn
from multicause.em.results import (
    FitResult,
    Phase,
    Progress,
    Watcher,
    concatenate_history,
    offset_iterations,
    one_start,
    start_of,
)
from multicause.em.solver import FitProblem
from multicause.engines.base import Data
from multicause.inference import arrange
from multicause.model import Model, Parameters
from multicause.outcomes import Outcome
from multicause.persistence.journal import Journal
from multicause.posteriors import SMALL, Exact, Posterior, Preselected
from multicause.runtime.parallel import in_background
from multicause.search.critical_temperature import spread_at
from multicause.search.repair import MOST_VARIANTS, repair

# Rows per cause, and at least, that are used to find the causes; the final EM uses all rows.
ROWS_PER_CAUSE = 50
LEAST_ROWS = 2000
# Candidates and active causes of the sparse posterior: the values of ET10 for all its experiments on bars.
SEARCH_SIZES = (5, 3)
# Length of the annealing in iterations, largest fraction of max_iter that it takes (1/3), and number of iterations
# below which it is skipped.
ITERATIONS = 60
SHARE_OF_ITERATIONS = 3
LEAST_ITERATIONS = 10
# Iterations reserved for the model's own posterior on all data, or the same fraction of max_iter.
RESERVED = 50
# Final temperature of posteriors that do not ascend a bound: it keeps them from overfitting (MCA08 appendix E.2).
WARM_TEMPERATURE = 1.5
# Temperatures that are tried, and iterations at each.
TEMPERATURES = 1.5 ** np.arange(1, 11)
TRIAL_ITERATIONS = 10
# Annealing starts at the highest temperature at which the spread of the components has risen by this fraction of the
# way from the spread at the hottest temperature to the largest spread.
DIFFERENTIATION = 0.25


def rows_to_search(n_rows: int, n_components: int) -> int:
    """Return how many rows are used to find the causes."""
    return min(n_rows, max(LEAST_ROWS, ROWS_PER_CAUSE * n_components))


def sample_for_search(problem: FitProblem, n_starts: int) -> Data:
    """Return a sample of rows that is large enough to find the causes; all rows, if there are not many more."""
    n_components = problem.starts.components.shape[1]
    sample = problem.data.sample(rows_to_search(problem.data.n_rows, n_components), problem.random)
    if sample is problem.data:
        return sample
    return arrange(problem.model, sample, n_components, max(n_starts, n_components))


class Search(NamedTuple):
    """State of a search between two phases."""

    phase: int = 0
    temperature: float | None = None  # start temperature of the annealing
    fit: FitResult | None = None


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
    search_model = model if model.posterior.exhaustive else sparse_model
    if not model.posterior.ascends_bound and n_components <= SMALL:
        search_model = replace(model, posterior=Exact())
    finishing = search_model is not model or search_data is not data
    to_find = max_iter - (min(RESERVED, max_iter // SHARE_OF_ITERATIONS) if finishing else 0)
    n_iter = min(ITERATIONS, max_iter // SHARE_OF_ITERATIONS)
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

    def repair_fit(state: Search) -> Search:
        assert state.fit is not None
        repaired = repair(
            search_model,
            search_data,
            state.fit,
            max_iter=to_find,
            tol=tol,
            random=random,
            watch=seen_by(search_model, "repairing"),
            places=places,
            **settings,
        )
        return state._replace(fit=repaired)

    phases: list[Callable[[Search], Search]] = [
        *([find_temperature, anneal] if annealed else []),
        partial(run_em, "learning", annealing_model, search_model, search_data, to_find, places),
        *([repair_fit] if repairing else []),
        *([partial(run_em, "final learning", search_model, model, data, max_iter, None)] if finishing else []),
    ]
    measure = partial(measured, model, search_data, data, tol, key)
    state = run_phases(phases, journal, measure if finishing else None)
    assert state.fit is not None
    return state.fit, cooling(state)


def measured(model: Model, search_data: Data, data: Data, tol: float, key: Array, fit: FitResult) -> FitResult:
    """Return a fit that was stopped before its last phase, with the model's bound and statistics on all data."""
    start = one_start(fit.parameters)
    end = learn(model, data, start, annealing=NoAnnealing(), max_iter=0, tol=tol, key=key)
    bounds = np.array([*fit.bounds[:-1], end.bound])
    rows = _difference_of_rows(search_data, data)
    phases = (*fit.phases, Phase(len(bounds) - 1, rows)) if rows else fit.phases
    return fit._replace(bound=end.bound, bounds=bounds, statistics=end.statistics, phases=phases)


def difference(before: Model, after: Model, search_data: Data, data: Data) -> str:
    """Explain why the bounds of two phases are not comparable: their posteriors or their rows differ."""
    reasons = [_difference_of_rows(search_data, data)]
    if before.posterior != after.posterior:
        reasons.append(f"posterior {_differing(after, before)} instead of {_differing(before, after)}")
    return ", ".join(filter(None, reasons))


def _differing(model: Model, other: Model) -> str:
    """Return the name of a model's posterior, with the settings in which it differs from another of its kind."""
    own, name = model.posterior.get_params(deep=False), type(model.posterior).__name__
    if type(other.posterior) is not type(model.posterior):
        return name
    settings = other.posterior.get_params(deep=False)
    return f"{name}({', '.join(f'{key}={value!r}' for key, value in own.items() if value != settings[key])})"


def _difference_of_rows(search_data: Data, data: Data) -> str:
    """Describe the numbers of rows of two phases, if they differ."""
    return "" if search_data is data else f"all {data.n_rows:,} rows instead of {search_data.n_rows:,}"


def learn_and_repair(
    model: Model,
    data: Data,
    starts: Parameters,
    *,
    annealing: Annealing,
    random: np.random.RandomState,
    journal: Journal | None = None,
    **settings: Any,
) -> FitResult:
    """Run EM with a user's annealing schedule, then repair the result."""
    journal = journal or Journal()
    places = max(len(starts.components), min(starts.components.shape[1], MOST_VARIANTS))
    settings = {**settings, "journal": journal, "places": places}

    def first(state: Search) -> Search:
        fit = learn(model, data, starts, annealing=annealing, **settings)
        return state._replace(fit=fit)

    def repair_fit(state: Search) -> Search:
        assert state.fit is not None
        return state._replace(fit=repair(model, data, state.fit, random=random, **settings))

    fit = run_phases([first, repair_fit], journal).fit
    assert fit is not None
    return fit


def run_phases(
    phases: Sequence[Callable[[Search], Search]],
    journal: Journal,
    measured: Callable[[FitResult], FitResult] | None = None,
) -> Search:
    """Run phases one after the other; a fit that is stopped before the last phase is ``measured`` and returned."""

    def step(state: Search) -> Search:
        after = phases[state.phase](state)
        phase = after.phase + 1
        if after.fit is not None and after.fit.outcome == Outcome.STOPPED and phase < len(phases):
            after, phase = after._replace(fit=measured(after.fit) if measured else after.fit), len(phases)
        return after._replace(phase=phase)

    return run_loop(Search, Search, step, goes_on=lambda state: state.phase < len(phases), journal=journal)


def search_posterior(model: Model, n_components: int) -> Posterior:
    """Return the model's posterior with few candidates and active causes, and without a data cut."""
    candidates, max_active = min(SEARCH_SIZES[0], n_components), min(SEARCH_SIZES[1], n_components)
    own = model.posterior.leaner(candidates, max_active)
    return own or Preselected(candidates, max_active, keep=None).bind(model, n_components, 1, 1)


def start_temperature(model: Model, data: Data, starts: Parameters, key: Array, places: int) -> float:
    """Return the highest temperature at which components become different enough from each other.

    Above a critical temperature all components converge to the same mean of the data. With candidates, which every row
    selects anew, the transition is gradual; therefore components learn for some iterations at each of several
    temperatures, all from the same start, and their spread is compared.
    """
    spread = spread_at(model, data, starts, TRIAL_ITERATIONS, TEMPERATURES, key, places)
    enough = spread[-1] + DIFFERENTIATION * (spread.max() - spread[-1])
    return float(TEMPERATURES[np.flatnonzero(spread >= enough)[-1]])
