"""Phases of a search: their order, stopping, resuming, and reasons why their bounds cannot be compared."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from multicause.outcomes import Outcome
from multicause.persistence.encoding import decode
from multicause.persistence.journal import Journal
from multicause.posteriors import Preselected
from multicause.search.phases import Search, difference, iterations_to_find, run_phases
from tests.search.problem import problem


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


def test_iterations_are_reserved_for_the_phase_that_finishes():
    assert iterations_to_find(300, False) == 300
    assert iterations_to_find(300, True) == 250
    assert iterations_to_find(30, True) == 20  # a third of few iterations


def test_checkpoints_of_searches_that_name_the_former_module_are_read():
    fields = {"phase": 2, "temperature": 3.5, "fit": None}
    assert decode({"record": "multicause.search.automatic:Search", "fields": fields}, {}, {}) == Search(2, 3.5)
