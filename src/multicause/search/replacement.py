"""EM in which components that are hardly used are replaced by residuals of the rows that are explained worst.

``annealing="auto"`` selects it for causes with a strength, for which local optima matter little once all causes are
used: EM runs for some iterations, unused components are replaced, and so on for some rounds; then EM runs to its end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from multicause.annealing import NoAnnealing
from multicause.arrays import key_from
from multicause.em.loop import learn
from multicause.em.results import BoundChange, FitResult, Progress, concatenate_history, offset_iterations, one_start
from multicause.em.solver import FitProblem, Solver
from multicause.em.usage import hardly_used
from multicause.engines.base import Data
from multicause.model import Model
from multicause.persistence.journal import Journal
from multicause.records import Parameters
from multicause.search.phases import Search, run_phases
from multicause.search.revival import revive, worst_rows
from multicause.search.sample import sample_for_search

# Iterations of EM before each replacement, and how many replacements there are, unless max_iter is below their sum.
ITERATIONS = 8
ROUNDS = 4


@dataclass(frozen=True, kw_only=True)
class Replacement(Solver):
    """EM in which components that are hardly used are replaced."""

    def learn(self, problem: FitProblem) -> FitResult:
        """Learn from all starts, and return the best result."""
        key = key_from(problem.random)
        pool = sample_for_search(problem, self.n_starts)
        settings: dict[str, Any] = {"max_iter": self.max_iter, "tol": self.tol, "key": key, **problem.loop}
        return learn_and_replace(problem.model, problem.data, pool, problem.starts, random=problem.random, **settings)


def learn_and_replace(
    model: Model,
    data: Data,
    pool: Data,
    starts: Parameters,
    *,
    max_iter: int,
    tol: float,
    random: np.random.RandomState,
    watch: Callable[[Progress], bool] | None = None,
    journal: Journal | None = None,
    **settings: Any,
) -> FitResult:
    """Run EM from all starts, if there are several for half of the iterations, and continue from the best of them.

    Replacements come from the rows of ``pool``.
    """
    journal = journal or Journal()

    def go_on(until: int, state: Search) -> Search:
        before = state.fit
        if before is not None and before.converged:
            return state
        spent = 0 if before is None else before.n_rounds
        then = learn(
            model,
            data,
            starts if before is None else one_start(before.parameters),
            annealing=NoAnnealing(),
            max_iter=until - spent,
            tol=tol,
            watch=offset_iterations(watch, spent),
            journal=journal,
            **settings,
        )
        return state._replace(fit=then if before is None else concatenate_history(before, then))

    def replace(state: Search) -> Search:
        assert state.fit is not None
        return state._replace(fit=replace_hardly_used(model, pool, state.fit, random))

    # The bounds show only late which start is the best.
    first = ITERATIONS if len(starts.components) == 1 else max(1, max_iter // 2)
    ends = [first + number * ITERATIONS for number in range(ROUNDS)] if "components" in model.learn else []
    phases: list[Callable[[Search], Search]] = []
    for end in ends:
        phases += [partial(go_on, end), replace] if end + ITERATIONS <= max_iter else []
    fit = run_phases([*phases, partial(go_on, max_iter)], journal).fit
    assert fit is not None
    return fit


def replace_hardly_used(model: Model, pool: Data, fit: FitResult, random: np.random.RandomState) -> FitResult:
    """Return a fit whose unused components are residuals of rows with low evidence, in length and activity as others.

    The number of replaced components is noted as the reason why bounds are not comparable with those before.
    """
    active = np.asarray(fit.statistics.prior["active"], dtype=float)
    unused = hardly_used(active, active.mean())
    if not unused.any():
        return fit
    worst = worst_rows(model, pool, fit.parameters)
    reason = f"{unused.sum()} components that were hardly used were replaced"
    return fit._replace(
        parameters=revive(model, pool, fit.parameters, unused, worst, random),
        converged=False,
        bound_changes=(*fit.bound_changes, BoundChange(fit.n_iter + 1, reason)),
    )
