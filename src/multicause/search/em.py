"""EM as a solver: plain, with an annealing schedule, with repair, or without settings (``annealing="auto"``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from multicause.annealing import Annealing, choose_annealing
from multicause.arrays import key_from
from multicause.em.loop import learn
from multicause.em.results import FitResult
from multicause.em.solver import FitProblem, Solver
from multicause.engines.base import Data
from multicause.model import Model
from multicause.persistence.journal import Journal
from multicause.records import Parameters
from multicause.search.automatic import search
from multicause.search.phases import Search, run_phases
from multicause.search.repair import repair
from multicause.search.sample import sample_for_search
from multicause.search.variants import MOST_VARIANTS


@dataclass(frozen=True, kw_only=True)
class EM(Solver):
    """Expectation maximization from all starts; the result is the start with the highest bound.

    With ``annealing="auto"``, causes are searched without settings (:mod:`multicause.search.automatic`). This search
    anneals the starts if ``annealed`` is true; it is false for components of the user, which annealing would destroy.
    ``repair`` says whether local optima are repaired; None means yes with ``annealing="auto"`` and no otherwise.
    ``measures`` are functions of the fitted model and the data, whose values become fitted attributes.
    """

    annealing: str | Annealing | None = None
    repair: bool | None = False
    annealed: bool = True
    measures: Mapping[str, Callable[[Model, Data, Parameters], Any]] = field(default_factory=dict)

    @property
    def schedule(self) -> Annealing:
        """Return the annealing schedule; none if it is found from the data."""
        return choose_annealing(None if self.annealing == "auto" else self.annealing)

    @property
    def result_names(self) -> tuple[str, ...]:
        """Return the names of the measures."""
        return tuple(self.measures)

    def repairs(self, model: Model) -> bool:
        """Return whether local optima of a model are repaired."""
        if self.repair and not model.prior.repairable:
            raise ValueError(
                f"Causes of {model.prior!r} cannot be repaired, because none is ever off; use repair=None."
            )
        return self.annealing == "auto" and model.prior.repairable if self.repair is None else self.repair

    def most_starts(self, model: Model, n_components: int) -> int:
        """Return the number of starts, or of the variants that repair compares."""
        return max(self.n_starts, n_components if self.repairs(model) else 1)

    def learn(self, problem: FitProblem) -> FitResult:
        """Learn from all starts, and return the best result."""
        result = self._learn(problem)
        measured = {name: of(problem.model, problem.data, result.parameters) for name, of in self.measures.items()}
        return result._replace(results={**result.results, **measured})

    def _learn(self, problem: FitProblem) -> FitResult:
        model, data, starts, random = problem.model, problem.data, problem.starts, problem.random
        settings: dict[str, Any] = {"max_iter": self.max_iter, "tol": self.tol, "key": key_from(random), **problem.loop}
        repairing = self.repairs(model)
        if self.annealing == "auto":
            sample = sample_for_search(problem, self.n_starts)
            how: dict[str, Any] = {"annealed": self.annealed, "repairing": repairing, "random": random, **settings}
            result, annealing = search(model, data, sample, starts, **how)
            return result._replace(annealing=annealing)
        annealing = self.schedule
        if repairing:
            result = learn_and_repair(model, data, starts, annealing=annealing, random=random, **settings)
        else:
            result = learn(model, data, starts, annealing=annealing, **settings)
        return result._replace(annealing=annealing)


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
