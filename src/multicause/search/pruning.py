"""Causes that are not needed: they are silenced before the last phase of a search.

With more components than there are causes, the others are copies of a cause or represent causes that coincide, some of
which occur more often than a rare cause. They take the places of candidates, so that rows are explained worse with them
than without. Backward elimination finds them: the causes that are missed least are silenced, a few at a time, with some
iterations of EM after each step. Silent causes have components of zeros and activities as small as possible. Of all
steps, that with the highest bound is kept, where each silent cause counts as much as a component is worth by the
Bayesian information criterion.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from multicause.annealing import NoAnnealing
from multicause.em.driver import run_loop
from multicause.em.loop import learn_all
from multicause.em.results import FitResult, best_of, concatenate_history, offset_iterations, stack_starts
from multicause.em.usage import LEAST_USE
from multicause.engines.base import Data
from multicause.model import Model
from multicause.outcomes import Outcome
from multicause.posteriors import Posterior
from multicause.records import Parameters
from multicause.search.phases import Search, difference
from multicause.search.search_plan import SearchPlan
from multicause.search.tournament import VARIANT_TOL, report_best
from multicause.search.variants import falls_without

# Causes are divided clearly if those that stay are missed at least this many times as much as all others, which then
# are silenced at once. On bars, both kinds differ by factors of four to a hundred.
CLEAR = 3.0
# Otherwise this part of the causes is silenced in one step.
PART = 1 / 8
# Causes are missed equally if the least missed one is missed at least this fraction of the most missed one. If all are,
# none is silenced.
EQUAL = 0.5
# Share of causes up to which those that are not needed, or a single one, may be in place of a cause that is missing;
# where more of them are left over, one of them would have found it.
MOST_LEFT_OVER = 1 / 8
# With a cause that was missing the bound rises by more than this part of how much it falls without one of the others.
# On bars, with a component for a coincidence of more bars than a sparse posterior allows, it rises by a tenth.
PART_OF_MISSING = 1 / 6
# That is not so for rare causes, which may be among those that are missed little, or missing. So no component counts as
# surplus without which the bound falls by more than this many times what a cause is worth. Surplus components of 500
# rows of bars are missed up to 4.1 times as much, mixtures with a bar that occurs in 12 of 400 rows at least 5.5 times.
MOST_OF_SURPLUS = 5.0
# Iterations of EM after each step.
ITERATIONS = 6
# Elimination ends after so many steps that were not better than the best one. On data with little noise, bounds may be
# lower for several steps, before copies of the same cause have become one and the noise has been learned again.
PATIENCE = 5
# Silent causes have come back if the activity of one is above this fraction of the median of all others. Below it they
# explain single rows at most.
COME_BACK = 0.05
# Cosine of two components from which on they are copies: one of them must stay, as none is missed beside the other.
ALIKE = 0.9


class Elimination(NamedTuple):
    """State of backward elimination between two steps."""

    fit: FitResult  # of the last step
    best: FitResult
    spent: int  # iterations so far
    merit: float | None = None  # bound of the best step, plus what its silent causes are worth
    failures: int = 0  # steps since the best one
    ended: bool = False


def can_prune(plan: SearchPlan) -> bool:
    """Return whether causes can be left out: they are independent, and components and activities are learned."""
    model = plan.models.final
    independent = model.prior.is_binary and model.prior.independent
    return comparable_bounds(model.posterior) and independent and {"components", "activity"} <= set(model.learn)


def comparable_bounds(posterior: Posterior) -> bool:
    """Return whether bounds of two fits can be compared: all rows count, with states of this iteration alone."""
    return posterior.ascends_bound and posterior.keep is None and not posterior.keeps_states


def find_surplus(plan: SearchPlan, state: Search) -> Search:
    """Find out whether a fit seems to have all causes, and many components beside them, so that repair can be short."""
    assert state.fit is not None
    falls, worth = falls_of_search(plan, state.fit.parameters)
    rise = rise_of_missing_cause(falls, worth)
    return state._replace(surplus=None if rise is None else rise / plan.search_data.overview.weight)


def falls_of_search(plan: SearchPlan, parameters: Parameters) -> tuple[np.ndarray, float]:
    """Return by how much the bound of all rows of the search falls without each cause (H,), and what a cause is worth.

    The posterior is that of the user's model.
    """
    data = plan.search_data
    worth = rise_worth_a_cause(plan.data) * data.overview.weight
    return falls_without(plan.models.final, data, parameters), worth


def rise_of_missing_cause(falls: np.ndarray, worth: float) -> float | None:
    """Return the least rise of the bound that suggests a cause that was missing, if there are surplus components.

    Given is by how much the bound falls without each cause (H,). There are surplus components if many causes are hardly
    missed, and clearly less than all others, which are missed equally; otherwise the result is None. The bound rises
    less if a surplus component only becomes one for a coincidence of causes, or for a cause that is far rarer than
    those that were found.
    """
    missed = np.sort(np.maximum(falls, worth))
    n_surplus = _n_below_gap(missed)
    if n_surplus is None or n_surplus <= max(1, MOST_LEFT_OVER * len(falls)) or n_surplus > len(falls) - 2:
        return None
    others_are_alike = missed[n_surplus] >= EQUAL * missed[-1]
    hardly_missed = missed[n_surplus - 1] <= MOST_OF_SURPLUS * worth
    return float(PART_OF_MISSING * missed[n_surplus]) if others_are_alike and hardly_missed else None


def run_pruning(plan: SearchPlan, state: Search) -> Search:
    """Silence causes that are not needed, if there are any, by the user's model and the rows of the search."""
    assert state.fit is not None
    fit, model, data = state.fit, plan.models.final, plan.search_data
    worth, watch = rise_worth_a_cause(plan.data), plan.watch_phase(model, "final learning")

    def step(before: Elimination) -> Elimination:
        """Silence some causes, and run EM; in the first step also from the fit itself, for comparison."""
        fewer = with_fewer_causes(plan, before.fit.parameters)
        left = plan.max_iter - before.spent
        if fewer is None or left <= 0:
            return before._replace(ended=True)
        compared = before.merit is not None
        starts = [fewer] if compared else [fewer, before.fit.parameters]
        results = learn_all(
            model,
            data,
            stack_starts(starts),
            annealing=NoAnnealing(),
            max_iter=min(ITERATIONS, left),
            tol=plan.tol,
            # Bounds of the fit before the first step may be those of another posterior.
            watch=report_best(watch, before.best, before.spent) if compared else offset_iterations(watch, before.spent),
            places=None if plan.finishing else plan.places,
            **plan.loop,
        )
        merits = results.bound + worth * silent_causes(model, results.parameters, data).sum(axis=1)
        now = best_of(results, data, merit=-np.arange(len(starts)))  # the first start, without these causes
        to_beat = merits[1] if before.merit is None else before.merit
        after = before._replace(fit=now, spent=before.spent + results.n_rounds, merit=float(to_beat))
        if merits[0] > to_beat + VARIANT_TOL:
            after = after._replace(best=now, merit=float(merits[0]), failures=0)
        else:
            after = after._replace(failures=before.failures + 1)
        if now.outcome == Outcome.STOPPED:
            return after._replace(best=after.best._replace(outcome=Outcome.STOPPED, converged=False), ended=True)
        return after._replace(ended=after.failures == PATIENCE or not np.isfinite(merits[0]))

    end = run_loop(
        Elimination,
        lambda: Elimination(fit, fit, fit.n_rounds),
        step,
        goes_on=lambda now: not now.ended,
        journal=plan.journal,
    )
    was_silent = silent_causes(model, fit.parameters, data)
    silenced = np.flatnonzero(silent_causes(model, end.best.parameters, data) & ~was_silent)
    if len(silenced) == 0:
        stopped = end.best.outcome == Outcome.STOPPED
        kept = fit._replace(outcome=Outcome.STOPPED, converged=False) if stopped else fit
        return state._replace(fit=kept._replace(n_rounds=end.spent))
    changes = (
        difference(plan.models.search, model, data, data),
        f"causes that are not needed left out: {len(silenced)}",
    )
    pruned = concatenate_history(fit, end.best, ", ".join(filter(None, changes)))
    return state._replace(
        fit=pruned._replace(n_rounds=end.spent),
        silenced=tuple(silenced.tolist()),
        unpruned=fit._replace(n_rounds=end.spent),
    )


def have_come_back(model: Model, state: Search) -> bool:
    """Return whether causes that were silenced are used again, as copies of each other.

    Under the sum rule, and with much noise, components of zeros can get credit and grow.
    """
    assert state.fit is not None
    activity = np.asarray(model.prior.activity(state.fit.parameters.prior), dtype=float)
    silenced = np.isin(np.arange(len(activity)), state.silenced)
    return bool(activity[silenced].max() > COME_BACK * np.median(activity[~silenced]))


def with_fewer_causes(plan: SearchPlan, parameters: Parameters) -> Parameters | None:
    """Return parameters in which the causes that are missed least are silent; None if all are needed equally."""
    model, data = plan.models.final, plan.search_data
    falls, worth = falls_of_search(plan, parameters)
    present = ~silent_causes(model, parameters, data)
    surplus = least_needed(falls, np.asarray(parameters.components, dtype=float), present, worth)
    return without(model, parameters, surplus) if surplus.any() else None


def least_needed(falls: np.ndarray, components: np.ndarray, present: np.ndarray, worth: float) -> np.ndarray:
    """Return which causes to silence next, given by how much the bound falls without each: (H,).

    Of the causes that are ``present`` (H,), these are all below the first clear gap between their falls, or else the
    least missed eighth; falls below what a cause is ``worth`` count as equal. Of components that are alike, the one
    that is missed most stays.
    """
    surplus = np.zeros(len(falls), dtype=bool)
    order = np.flatnonzero(present)[np.argsort(falls[present], kind="stable")]
    missed = np.maximum(falls[order], worth)
    if len(order) < 2 or missed[0] >= EQUAL * missed[-1]:
        return surplus
    few = order[: _n_below_gap(missed) or max(1, int(PART * len(order)))]
    directions = components[few] / np.maximum(np.linalg.norm(components[few], axis=1), np.finfo(float).tiny)[:, None]
    copies = np.triu(directions @ directions.T > ALIKE, k=1)
    last_of_copies = copies.any(axis=0) & ~copies.any(axis=1)
    surplus[few[~last_of_copies]] = True
    return surplus


def _n_below_gap(missed: np.ndarray) -> int | None:
    """Return how many of these numbers, which rise, are below the first clear gap; None if there is none."""
    gaps = np.flatnonzero(missed[1:] >= CLEAR * missed[:-1])
    return int(gaps[0]) + 1 if len(gaps) else None


def without(model: Model, parameters: Parameters, causes: np.ndarray) -> Parameters | None:
    """Return parameters in which some causes (H,) are silent; None if the prior cannot express that."""
    prior = model.prior.silenced(parameters.prior, causes)
    if prior is None:
        return None
    components: Any = np.array(parameters.components)
    components[causes] = 0
    return parameters._replace(components=components, prior=prior)


def silent_causes(model: Model, parameters: Parameters, data: Data) -> np.ndarray:
    """Return which causes occur in practically no row, by their activities: (..., H)."""
    return np.asarray(model.prior.activity(parameters.prior)) * n_repeated(data) < LEAST_USE


def n_repeated(data: Data) -> float:
    """Return the number of rows, where integer weights count as repetitions, and fractions as whole rows."""
    return max(data.n_weighted, data.overview.weight)


def rise_worth_a_cause(data: Data) -> float:
    """Return the rise of the bound per row that one more component is worth, by the Bayesian information criterion.

    Otherwise causes that are not needed would be recycled again and again to explain noise.
    """
    n_rows = n_repeated(data)
    return max(VARIANT_TOL, 0.5 * data.n_features * float(np.log(n_rows)) / n_rows)
