"""Phases of a search: how they follow each other, how they share iterations, and why their bounds differ.

All searches (:mod:`~multicause.search.automatic`, :mod:`~multicause.search.replacement`,
:mod:`~multicause.search.restarts`) are lists of such phases.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from multicause.annealing import NoAnnealing
from multicause.arrays import Array
from multicause.em.driver import run_loop
from multicause.em.loop import learn
from multicause.em.results import BoundChange, FitResult, one_start
from multicause.engines.base import Data
from multicause.model import Model
from multicause.outcomes import Outcome
from multicause.persistence.journal import Journal

# The annealing, and the last phase on all data, take at most max_iter divided by this.
SHARE_DIVISOR = 3
# Iterations reserved for the model's own posterior on all data, or the same fraction of max_iter.
RESERVED = 50
# Final temperature of posteriors that do not ascend a bound: it keeps them from overfitting (MCA08 appendix E.2).
WARM_TEMPERATURE = 1.5


class Search(NamedTuple):
    """State of a search between two phases."""

    phase: int = 0
    temperature: float | None = None  # start temperature of the annealing
    fit: FitResult | None = None  # result of the phases so far
    surplus: float | None = None  # least rise per row with a cause that is missing, if some are surplus
    from_rows: bool = False  # whether the fit was learned again from rows of the data
    silenced: tuple[int, ...] = ()  # causes that were left out, because they are not needed
    unpruned: FitResult | None = None  # the fit before that


def iterations_to_find(max_iter: int, finishing: bool) -> int:
    """Return how many iterations may be used to find causes; others are reserved for the phase that finishes."""
    return max_iter - (min(RESERVED, max_iter // SHARE_DIVISOR) if finishing else 0)


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


def measured(model: Model, search_data: Data, data: Data, tol: float, key: Array, fit: FitResult) -> FitResult:
    """Return a fit that was stopped before its last phase, with the model's bound and statistics on all data."""
    start = one_start(fit.parameters)
    end = learn(model, data, start, annealing=NoAnnealing(), max_iter=0, tol=tol, key=key)
    bounds = np.array([*fit.bounds[:-1], end.bound])
    rows = _difference_of_rows(search_data, data)
    changes = (*fit.bound_changes, BoundChange(len(bounds) - 1, rows)) if rows else fit.bound_changes
    return fit._replace(bound=end.bound, bounds=bounds, statistics=end.statistics, bound_changes=changes)


def difference(before: Model, after: Model, search_data: Data, data: Data) -> str:
    """Explain why the bounds of two phases are not comparable: their posteriors or their rows differ."""
    reasons = [_difference_of_rows(search_data, data)]
    if before.posterior != after.posterior:
        reasons.append(f"posterior {_differing(after, before)} instead of {_differing(before, after)}")
    return ", ".join(filter(None, reasons))


def _differing(model: Model, other: Model) -> str:
    """Return the name of a model's posterior, with the settings in which it differs from another of its kind."""
    own_settings, name = model.posterior.get_params(deep=False), type(model.posterior).__name__
    if type(other.posterior) is not type(model.posterior):
        return name
    settings = other.posterior.get_params(deep=False)
    return f"{name}({', '.join(f'{key}={value!r}' for key, value in own_settings.items() if value != settings[key])})"


def _difference_of_rows(search_data: Data, data: Data) -> str:
    """Describe the numbers of rows of two phases, if they differ."""
    return "" if search_data is data else f"all {data.n_rows:,} rows instead of {search_data.n_rows:,}"
