"""Results of loops: the best start, and histories one after the other."""

from types import SimpleNamespace

import numpy as np

from multicause.em.results import (
    BoundChange,
    FitResult,
    Progress,
    StartResults,
    best_of,
    concatenate_history,
    offset_iterations,
)
from multicause.model import Statistics
from multicause.outcomes import Outcome
from multicause.records import Parameters

DATA = SimpleNamespace(n_weighted=10)


def of_starts(bound, outcome=Outcome.CONVERGED):
    """Three starts that ended after one, two and three iterations."""
    n = len(bound)
    parameters = Parameters(np.arange(n * 4.0).reshape(n, 2, 2) + 1, {}, {})
    number = np.full(n, 10.0)
    sums = Statistics(number, number, number, number, number, {}, {"active": np.full((n, 2), 5.0)}, {}, {})
    history = np.arange((n + 1) * n, dtype=float).reshape(n + 1, n)
    return StartResults(
        parameters=parameters,
        statistics=sums,
        bound=np.array(bound),
        bounds=history,
        temperatures=history + 1,
        kept=np.ones_like(history),
        outcome=np.array([outcome] * n, dtype=object),
        last=np.arange(1, n + 1),
        n_rounds=n,
    )


def test_the_start_with_the_highest_finite_bound_is_the_best():
    fit = best_of(of_starts([np.nan, -2.0, -3.0]), DATA)
    np.testing.assert_array_equal(fit.parameters.components, [[5, 6], [7, 8]])
    assert (fit.bound, fit.n_iter, fit.n_rounds) == (-2.0, 2, 3)
    np.testing.assert_array_equal(fit.bounds, [1, 4, -2.0])
    np.testing.assert_array_equal(fit.temperatures, [2, 5, 1.0])
    assert fit.converged


def test_another_merit_may_decide_unless_the_bound_is_infinite():
    assert best_of(of_starts([-1.0, -2.0, -3.0]), DATA, np.array([0, 0, 1.0])).bound == -3.0
    assert best_of(of_starts([-1.0, -2.0, np.inf]), DATA, np.array([0, 1.0, 9.0])).bound == -2.0


def test_if_one_start_was_stopped_all_were():
    results = of_starts([-1.0, -2.0, -3.0])
    results.outcome[2] = Outcome.STOPPED
    fit = best_of(results, DATA)
    assert fit.outcome == Outcome.STOPPED
    assert not fit.converged


def result(bounds, bound_changes=(), **changes):
    n = len(bounds)
    fit = best_of(of_starts([-1.0]), DATA)
    values = {"bounds": np.array(bounds), "temperatures": np.ones(n), "kept": np.ones(n), "bound": bounds[-1]}
    return fit._replace(n_iter=n - 1, n_rounds=n + 2, bound_changes=bound_changes, **values, **changes)


def test_histories_follow_each_other():
    both = concatenate_history(
        result([1.0, 2.0, 3.0]), result([3.0, 4.0], bound_changes=(BoundChange(1, "later"),)), "other rows"
    )
    np.testing.assert_array_equal(both.bounds, [1, 2, 3, 4])
    assert (both.n_iter, both.n_rounds, both.bound) == (3, 9, 4.0)
    assert both.bound_changes == (BoundChange(3, "other rows"), BoundChange(3, "later"))
    assert len(both.temperatures) == len(both.kept) == 4


def test_a_second_fit_without_iterations_has_recomputed_the_last_bound():
    both = concatenate_history(result([1.0, 2.0]), result([1.9]))
    np.testing.assert_array_equal(both.bounds, [1, 1.9])
    assert isinstance(both, FitResult)


def test_shares_of_rows_are_forgotten_where_one_fit_does_not_know_them():
    assert concatenate_history(result([1.0, 2.0])._replace(kept=None), result([2.0, 3.0])).kept is None


def test_iterations_are_counted_on():
    seen = []
    watch = offset_iterations(lambda progress: seen.append(progress.iteration) or True, 7)
    assert watch(Progress(2, np.ones(1), np.zeros(1), Parameters(np.ones((1, 1, 1)), {}, {})))
    assert seen == [9]
    assert offset_iterations(None, 7) is None
