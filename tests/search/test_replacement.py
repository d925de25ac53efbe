"""Replacement of components that are hardly used: when it happens, and what replaces them."""

from types import SimpleNamespace

import numpy as np
import pytest

from multicause.em.results import FitResult
from multicause.outcomes import Outcome
from multicause.records import Parameters
from multicause.search import replacement as module
from multicause.search.replacement import ITERATIONS, learn_and_replace, replace_hardly_used

MODEL = SimpleNamespace(learn=("components",))


def result(n_iter, active=(9.0, 9.0), *, converged=False):
    """A fit of two components after some iterations."""
    bounds = np.zeros(n_iter + 1)
    return FitResult(
        parameters=Parameters(np.eye(2), {}, {}),
        bound=0.0,
        bounds=bounds,
        temperatures=np.ones_like(bounds),
        n_iter=n_iter,
        n_rounds=n_iter,
        converged=converged,
        outcome=Outcome.CONVERGED if converged else Outcome.MAX_ITER,
        statistics=SimpleNamespace(prior={"active": np.array(active)}),
    )


@pytest.fixture
def learned(monkeypatch):
    """Run the search with a stand-in for EM; return the fit, and starts and iterations of each call of EM."""

    def run(n_starts=1, *, max_iter, active=(9.0, 9.0), converges=False, model=MODEL):
        calls = []

        def learn(model, data, starts, *, max_iter, **settings):
            calls.append((len(starts.components), max_iter))
            return result(max_iter, active, converged=converges)

        def revive(model, data, parameters, dead, worst, random):
            return parameters._replace(components=parameters.components + dead[:, None])

        monkeypatch.setattr(module, "learn", learn)
        monkeypatch.setattr(module, "worst_rows", lambda *words: None)
        monkeypatch.setattr(module, "revive", revive)
        starts = Parameters(np.ones((n_starts, 2, 2)), {}, {})
        fit = learn_and_replace(model, None, None, starts, max_iter=max_iter, tol=1e-4, random=None)
        return fit, calls

    return run


def test_em_runs_a_few_iterations_between_replacements_and_then_to_its_end(learned):
    fit, calls = learned(max_iter=100)
    assert calls == [(1, 8), (1, 8), (1, 8), (1, 8), (1, 68)]
    assert fit.n_iter == fit.n_rounds == 100


def test_several_starts_have_half_of_the_iterations(learned):
    assert learned(3, max_iter=100)[1] == [(3, 50), (1, 8), (1, 8), (1, 8), (1, 26)]


def test_few_iterations_have_fewer_replacements(learned):
    assert learned(max_iter=ITERATIONS)[1] == [(1, 8)]
    assert learned(max_iter=2 * ITERATIONS)[1] == [(1, 8), (1, 8)]


def test_fixed_components_are_never_replaced(learned):
    assert learned(max_iter=100, model=SimpleNamespace(learn=("activity",)))[1] == [(1, 100)]


def test_a_converged_fit_is_continued_only_after_a_replacement(learned):
    assert learned(max_iter=100, converges=True)[1] == [(1, 8)]
    fit, calls = learned(max_iter=100, converges=True, active=(9.0, 0.1))
    assert len(calls) == 5
    assert [change.start for change in fit.bound_changes] == [9, 17, 25, 33]


def test_components_that_are_hardly_used_are_replaced(monkeypatch):
    """A tenth of the mean use is the limit."""
    seen = []

    def revive(model, data, parameters, dead, worst, random):
        seen.append((dead.tolist(), worst))
        return "revived"

    monkeypatch.setattr(module, "worst_rows", lambda *words: "worst")
    monkeypatch.setattr(module, "revive", revive)
    fit = result(5, (10.0, 12.0, 0.6, 0.8), converged=True)  # the limit is 0.585
    assert replace_hardly_used(None, None, fit, None) is fit
    fit = result(5, (10.0, 12.0, 0.5, 0.8), converged=True)
    replaced = replace_hardly_used(None, None, fit, None)
    assert seen == [([False, False, True, False], "worst")]
    assert replaced.parameters == "revived"
    assert not replaced.converged
    assert replaced.bound_changes == ((6, "1 components that were hardly used were replaced"),)
