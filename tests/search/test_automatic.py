"""Pieces of the automatic search: phases, rows, posteriors, and the start temperature."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from multicause.annealing import NoAnnealing
from multicause.arrays import double_precision
from multicause.em.results import one_start
from multicause.outcomes import Outcome
from multicause.persistence.journal import Journal
from multicause.posteriors import Exact, Preselected, Truncated
from multicause.search import automatic as module
from multicause.search.automatic import (
    TEMPERATURES,
    Search,
    difference,
    learn_and_repair,
    rows_to_search,
    run_phases,
    search_posterior,
    start_temperature,
)
from tests.search.problem import CAUSES, problem


@pytest.mark.parametrize(
    ("n_rows", "n_components", "used"), [(500, 10, 500), (10**6, 10, 2000), (10**6, 100, 5000), (3000, 100, 3000)]
)
def test_some_thousand_rows_are_enough_to_find_causes(n_rows, n_components, used):
    assert rows_to_search(n_rows, n_components) == used


def phase(name, told, outcome=Outcome.CONVERGED):
    def run(state):
        told.append((name, state.phase))
        return state._replace(fit=SimpleNamespace(outcome=outcome, name=name))

    return run


def test_phases_run_in_order():
    told = []
    end = run_phases([phase(name, told) for name in "abc"], Journal(), measured=lambda fit: pytest.fail("not stopped"))
    assert told == [("a", 0), ("b", 1), ("c", 2)]
    assert (end.phase, end.fit.name) == (3, "c")


def test_after_a_stop_there_are_no_more_phases_and_the_fit_is_measured():
    told = []
    phases = [phase("a", told), phase("b", told, Outcome.STOPPED), phase("c", told)]
    end = run_phases(phases, Journal(), measured=lambda fit: SimpleNamespace(outcome=fit.outcome, name="measured"))
    assert [name for name, _ in told] == ["a", "b"]
    assert end.fit.name == "measured"
    assert run_phases([phase("b", [], Outcome.STOPPED)], Journal(), measured=pytest.fail).fit.name == "b"  # the last


def test_a_search_resumes_with_the_phase_that_was_running():
    told, records, journal = [], [], Journal()

    def last(state):
        records.append(journal.record())
        return phase("b", told)(state)

    run_phases([phase("a", told), last], journal)
    resumed = []
    run_phases([phase("a", resumed), phase("b", resumed)], Journal(past=records[0]))
    assert resumed == [("b", 1)]
    assert isinstance(records[0].states[0], Search)


def test_reasons_why_bounds_cannot_be_compared():
    model, all_rows, some = problem().model, SimpleNamespace(n_rows=12_000), SimpleNamespace(n_rows=2000)
    sparse, wide = (replace(model, posterior=Preselected(n, 3, keep=None)) for n in (5, 8))
    assert difference(model, model, all_rows, all_rows) == ""
    assert difference(model, model, some, all_rows) == "all 12,000 rows instead of 2,000"
    assert difference(sparse, model, all_rows, all_rows) == "posterior Exact instead of Preselected"
    assert difference(sparse, wide, some, all_rows) == (
        "all 12,000 rows instead of 2,000, posterior Preselected(candidates=8) instead of Preselected(candidates=5)"
    )


@pytest.mark.parametrize(
    ("posterior", "n_components", "sizes"),
    [(Exact(), 20, (5, 3)), (Exact(), 4, (4, 3)), (Preselected(4, 2), 20, (4, 2)), (Truncated(3), 20, (5, 3))],
)
def test_the_search_uses_few_states_and_no_data_cut(posterior, n_components, sizes):
    found = search_posterior(replace(problem().model, posterior=posterior), n_components)
    assert found.numbers == sizes
    assert found.keep is None


def test_the_start_is_the_highest_temperature_at_which_components_differ(monkeypatch):
    """A quarter of the way from the hottest spread to the largest is enough."""
    spread = np.array([4.0, 5.0, 5.0, 3.0, 2.1, 2.0, 1.9, 1.0, 1.0, 1.0])
    monkeypatch.setattr(module, "spread_at", lambda *words: spread)
    assert start_temperature(None, None, None, None, 10) == TEMPERATURES[5]
    monkeypatch.setattr(module, "spread_at", lambda *words: np.ones(10))
    assert start_temperature(None, None, None, None, 10) == TEMPERATURES[-1]


def test_repair_follows_the_users_own_schedule():
    stuck = np.array([CAUSES[0], CAUSES[0] + 0.1, 0.5 * (CAUSES[1] + CAUSES[2])]) + 0.05
    given, told = problem(), []
    settings = {name: value for name, value in given.settings.items() if name != "places"}
    with double_precision():
        found = learn_and_repair(
            given.model,
            given.data,
            one_start(given.parameters(stuck)),
            annealing=NoAnnealing(),
            random=np.random.RandomState(0),
            max_iter=200,
            watch=lambda progress: told.append(progress.iteration),
            **settings,
        )
    assert found.bound > given.fit(stuck).bound + 0.5
    assert told == list(range(found.n_rounds))  # every iteration of both phases is told once
