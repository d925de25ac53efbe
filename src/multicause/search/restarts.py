"""Restarts: several annealed starts, of which the one with the highest likelihood is kept.

``RestrictedMaximalCauses`` learns this way by default. Its posterior, single causes and pairs, finds causes reliably
but does not ascend its bound, and a bound without larger states is a poor measure of the solution. Therefore the starts
are compared by the same model with more states. Repair, which EM with richer posteriors needs, would compare
by a likelihood that is distorted because all components have equal sums, and would split causes that are stronger than
others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np

from multicause.annealing import Annealing, ConditionalCooling, choose_annealing
from multicause.arrays import Array, key_from
from multicause.em.e_step import expect
from multicause.em.loop import learn, learn_all
from multicause.em.results import (
    FitResult,
    Progress,
    best_of,
    concatenate_history,
    offset_iterations,
    one_start,
    per_row,
)
from multicause.em.solver import FitProblem, Solver
from multicause.engines.base import Data
from multicause.inference import arrange
from multicause.model import Model, interned
from multicause.persistence.journal import Journal
from multicause.posteriors import choose_posterior
from multicause.records import Parameters
from multicause.search.critical_temperature import critical_temperature
from multicause.search.phases import (
    WARM_TEMPERATURE,
    Search,
    difference,
    iterations_to_find,
    measured,
    run_phases,
)
from multicause.search.sample import sample_for_search

# Start temperatures that the starts use in turn, as fractions of the critical one. Most data are best annealed from
# just below it, but it is known within a tenth only, and one step too hot is worse than several too cold.
SHARES_OF_CRITICAL = (1.0, 0.8)
# Number of cooling steps, from MCA08 appendix E.2, and least number of iterations per step where there are few.
STEPS = 50
ITERATIONS_PER_STEP = 5
# Fraction of all iterations after which cooling must have ended.
COOLED = 0.8


def with_more_states(model: Model, n_components: int, n_features: int) -> Model:
    """Return the model with a posterior of more states, for recognition and for comparing starts.

    Pairs are enough for learning, but rows may have more than two causes.
    """
    posterior = choose_posterior(n_components)
    richer = replace(model, posterior=posterior)
    return interned(replace(richer, posterior=posterior.bind(richer, n_components, n_features, 1)))


@dataclass(frozen=True, kw_only=True)
class Restarts(Solver):
    """EM from several annealed starts; the one with the highest likelihood under the recognizer is kept.

    With ``annealing="auto"``, the start temperature is found from the data; starts that must not be ``annealed`` keep
    the final temperature.
    """

    annealing: str | Annealing | None = "auto"
    annealed: bool = True

    @property
    def schedule(self) -> Annealing:
        """Return the annealing schedule; none if it is found from the data."""
        return choose_annealing(None if self.annealing == "auto" else self.annealing)

    def recognizer(self, model: Model, n_components: int, n_features: int) -> Model:
        """Return the model with more states, by which starts are also compared."""
        return with_more_states(model, n_components, n_features)

    def learn(self, problem: FitProblem) -> FitResult:
        """Anneal all starts, and return the one with the highest likelihood."""
        key, auto = key_from(problem.random), self.annealing == "auto"
        search_data = sample_for_search(problem, self.n_starts) if auto else problem.data
        comparison_model, (n_starts, n_components, _) = problem.recognizer, problem.starts.components.shape

        def likelihood(starts: Parameters) -> np.ndarray:
            arranged = arrange(comparison_model, search_data, n_components, n_starts)
            return per_row(arranged.sum(partial(expect, comparison_model), starts, jnp.ones(n_starts)), "bound")[0]

        result, annealing = learn_restarts(
            problem.model,
            likelihood,
            problem.data,
            search_data,
            problem.starts,
            annealing=None if auto else self.schedule,
            annealed=self.annealed,
            max_iter=self.max_iter,
            tol=self.tol,
            key=key,
            **problem.loop,
        )
        return result._replace(annealing=annealing)


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
    n_iterations = iterations_to_find(max_iter, finishing)
    settings: dict[str, Any] = {"tol": tol, "key": key, "journal": journal}

    def schedule(state: Search) -> Annealing:
        if annealing is not None:
            return annealing
        return conditional_cooling(WARM_TEMPERATURE if state.temperature is None else state.temperature, n_iterations)

    def find_temperature(state: Search) -> Search:
        return state._replace(temperature=critical_temperature(model, search_data, starts, key))

    def try_all(state: Search) -> Search:
        results = learn_all(
            model, search_data, starts, annealing=schedule(state), max_iter=n_iterations, watch=watch, **settings
        )
        merit = likelihood(results.parameters) if len(results.bound) > 1 else None
        return state._replace(fit=best_of(results, search_data, merit))

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
