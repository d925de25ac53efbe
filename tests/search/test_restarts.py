"""Restarts alone: their schedule, the start that is kept, and the last phase on all rows."""

import jax
import numpy as np
import pytest

from multicause.annealing import NoAnnealing
from multicause.arrays import double_precision
from multicause.em.loop import learn_all
from multicause.search import restarts as module
from multicause.search.restarts import COOLED, STEPS, WARM_TEMPERATURE, conditional_cooling, learn_restarts
from tests.search.problem import CAUSES, problem

MIXED = np.array([CAUSES[0], CAUSES[0] + 0.5, 0.5 * (CAUSES[1] + CAUSES[2])]) + 0.05
STARTS = [MIXED, CAUSES + 0.05]


def learned(likelihood, *, search=None, annealing=None, annealed=False, max_iter=40):
    given = problem()
    settings = {name: value for name, value in given.settings.items() if name != "places"}
    starts = [given.parameters(each) for each in STARTS]
    with double_precision():
        stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *starts)
        data = given.data if search is None else search.data
        return learn_restarts(
            given.model,
            likelihood,
            given.data,
            data,
            stacked,
            annealing=annealing,
            annealed=annealed,
            max_iter=max_iter,
            **settings,
        )


def test_the_schedule_is_that_of_the_paper_and_ends_in_time():
    cooling = conditional_cooling(10.0, 1000)
    assert cooling.start == (10.0, 8.0)
    assert (cooling.final, cooling.n_steps, cooling.hold) == (WARM_TEMPERATURE, STEPS, 10)
    assert cooling.within == COOLED * 1000
    short = conditional_cooling(10.0, 7)
    assert short.n_steps == 1
    assert short.within <= 7
    assert conditional_cooling(1.0, 1000).start == (WARM_TEMPERATURE, WARM_TEMPERATURE)  # never below the end


@pytest.mark.parametrize("chosen", [0, 1])
def test_the_likelihood_decides_which_start_is_kept(chosen):
    """Also against the bound, which is that of states which say little about the solution."""
    alone = problem().fit_all(STARTS, max_iter=40, places=None)
    seen = []

    def likelihood(parameters):
        seen.append(parameters.components.shape)
        return np.eye(2)[chosen]

    fit, schedule = learned(likelihood, annealing=NoAnnealing())
    assert seen == [(2, 3, 6)]
    assert isinstance(schedule, NoAnnealing)
    np.testing.assert_allclose(fit.parameters.components, alone.parameters.components[chosen], rtol=1e-9)
    assert fit.bound == pytest.approx(alone.bound[chosen])
    assert alone.bound[0] < alone.bound[1]


def test_what_was_found_on_some_rows_is_finished_on_all():
    few = problem(n_rows=60)
    fit, _ = learned(lambda parameters: np.array([0.0, 1.0]), search=few, annealing=NoAnnealing())
    assert [change.reason for change in fit.bound_changes] == ["all 120 rows instead of 60"]
    assert fit.n_rounds <= 40
    assert fit.statistics.seen == 120
    assert len(fit.bounds) == len(fit.temperatures) == fit.n_iter + 1
    alone = problem().fit(STARTS[1], max_iter=200, places=None)  # nearly the same, at another temperature
    np.testing.assert_allclose(fit.parameters.components, alone.parameters.components, atol=0.3)


@pytest.mark.parametrize("annealed", [False, True])
def test_the_temperature_is_sought_unless_starts_are_given(annealed, monkeypatch):
    sought = []
    monkeypatch.setattr(module, "critical_temperature", lambda *words: sought.append(words) or 4.0)
    used = []

    def look(*words, annealing, **settings):
        used.append(annealing)
        return learn_all(*words, annealing=NoAnnealing(), **{**settings, "max_iter": 2})

    monkeypatch.setattr(module, "learn_all", look)
    _, schedule = learned(lambda parameters: np.zeros(2), annealed=annealed)
    assert len(sought) == annealed
    assert used == [schedule]
    assert schedule.start[0] == (4.0 if annealed else WARM_TEMPERATURE)
