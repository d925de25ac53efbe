"""Repair alone: which variants of a fit it keeps, and when it stops."""

from dataclasses import replace

import numpy as np
import pytest

from multicause.arrays import double_precision
from multicause.em.loop import learn
from multicause.em.results import one_start
from multicause.outcomes import Outcome
from multicause.posteriors import Preselected
from multicause.search import repair as module
from multicause.search.tournament import ROUNDS, ROUNDS_FROM_ROWS
from tests.search.problem import CAUSES, problem

# One cause twice, and another that mixes two (MCA08 fig. 7).
STUCK = np.array([CAUSES[0], CAUSES[0] + 0.1, 0.5 * (CAUSES[1] + CAUSES[2])]) + 0.05


def repaired(fit, max_iter=200, watch=None, sparse=False, **others):
    """Repair the fit; if ``sparse``, a posterior with at most two active causes ranks the variants."""
    given = problem("max")
    with double_precision():
        posterior = Preselected(3, 2, keep=None).bind(given.model, 3, 1, 1)
        ranking = replace(given.model, posterior=posterior) if sparse else None
        settings = {"random": np.random.RandomState(0), "watch": watch, "ranking": ranking, **given.settings, **others}
        return module.repair(given.model, given.data, fit, max_iter=max_iter, **settings)


def revived(fit, pool):
    given = problem("sum")
    with double_precision():
        settings = {"random": np.random.RandomState(0), **given.settings}
        return module.revive_dead(given.model, given.data, fit, pool, max_iter=200, **settings)


@pytest.fixture(scope="module")
def stuck():
    fit = problem().fit(STUCK)
    assert fit.converged
    return fit


@pytest.mark.parametrize("sparse", [False, True])
def test_a_local_optimum_is_left(stuck, sparse):
    mended = repaired(stuck, sparse=sparse)
    assert mended.bound > stuck.bound + 0.5
    order = np.argsort(np.argmax(mended.parameters.components, axis=1))
    np.testing.assert_allclose(mended.parameters.components[order], CAUSES, atol=1.0)
    np.testing.assert_array_equal(mended.bounds[: stuck.n_iter + 1], stuck.bounds)
    assert len(mended.bounds) == mended.n_iter + 1
    assert mended.n_rounds >= mended.n_iter


def test_a_fit_that_no_variant_surpasses_is_kept():
    """All attempts count as iterations, and none of them changes the fit."""
    best = problem().fit(CAUSES + 0.05)
    kept = repaired(best)
    assert kept.bound == best.bound
    assert kept.n_iter == best.n_iter
    assert kept.n_rounds >= best.n_rounds + ROUNDS[0][0]
    np.testing.assert_array_equal(kept.parameters.components, best.parameters.components)


@pytest.mark.parametrize(("tol", "least_rise", "kept"), [(0.0, 0.0, False), (0.0, 100.0, True), (100.0, 0.0, True)])
def test_a_variant_must_be_better_by_a_least_rise_and_by_the_tolerance(stuck, tol, least_rise, kept):
    found = repaired(stuck, least_rise=least_rise, tol=tol)
    assert (found.bound == stuck.bound) == kept


@pytest.mark.parametrize("attempts", [1, module.ATTEMPTS])
def test_attempts_that_may_fail_in_a_row(attempts, monkeypatch):
    """Each of them runs a whole tournament, or drops all variants after its first round."""
    monkeypatch.setattr(module, "EQUALLY_NEEDED", np.inf)
    best = problem().fit(CAUSES + 0.05)
    spent = repaired(best, attempts=attempts).n_rounds - best.n_rounds
    assert attempts * ROUNDS[0][0] <= spent <= attempts * sum(iterations for iterations, _ in ROUNDS)


@pytest.mark.parametrize(("smallest", "attempts"), [(50.0, module.ATTEMPTS), (90.0, 1)])
def test_one_failure_is_enough_if_all_causes_are_needed_equally(smallest, attempts, monkeypatch):
    tournaments = []
    run = module.run_tournament
    monkeypatch.setattr(module, "run_tournament", lambda *a, **k: tournaments.append(a) or run(*a, **k))
    monkeypatch.setattr(module, "falls_without", lambda *_: np.array([100.0, smallest, 120.0]))
    repaired(problem().fit(CAUSES + 0.05))
    assert len(tournaments) == attempts


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("spare", [0, 1, 3, 4])
def test_iterations_are_not_exceeded(stuck, spare, sparse):
    """The bound is that of the model itself, even if iterations end while another posterior ranks variants."""
    found = repaired(stuck, max_iter=stuck.n_rounds + spare, sparse=sparse)
    assert found.n_rounds <= stuck.n_rounds + spare
    assert found.bound >= stuck.bound
    np.testing.assert_allclose(found.bound, problem().learn(learn, one_start(found.parameters), 0).bound)


def test_a_watcher_ends_it_and_sees_nothing_worse_than_the_fit(stuck):
    seen = []

    def watch(progress):
        seen.append((progress.iteration, progress.bound[progress.best]))
        return len(seen) == 2

    found = repaired(stuck, watch=watch)
    assert found.outcome == Outcome.STOPPED
    assert not found.converged
    assert [iteration for iteration, _ in seen] == [stuck.n_rounds, stuck.n_rounds + 1]
    assert min(bound for _, bound in seen) >= stuck.bound


@pytest.mark.parametrize("poor", [True, False])
def test_a_start_from_rows_replaces_a_fit_with_a_lower_bound_only(poor):
    """Three equal causes stay equal; rows of the data differ."""
    given = problem("max")
    start = np.tile(CAUSES.mean(axis=0), (3, 1)) if poor else CAUSES + 0.05
    fit = given.fit(start)
    with double_precision():
        settings = {"random": np.random.RandomState(0), **given.settings}
        found = module.relearn_from_rows(
            given.model, given.data, fit, given.parameters(start), max_iter=200, **settings
        )
    assert found.n_rounds > fit.n_rounds
    assert (found.bound > fit.bound + 1) == poor
    if not poor:
        np.testing.assert_array_equal(found.parameters.components, fit.parameters.components)


def test_several_choices_of_rows_are_compared(stuck, monkeypatch):
    given, tournaments = problem("max"), []

    def run_tournament(model, data, variants, **settings):
        tournaments.append((variants(), settings["rounds"]))
        return stuck._replace(bound=-np.inf)

    monkeypatch.setattr(module, "run_tournament", run_tournament)
    settings = {"random": np.random.RandomState(0), **given.settings}
    module.relearn_from_rows(given.model, given.data, stuck, given.parameters(STUCK), max_iter=200, **settings)
    ((starts, rounds),) = tournaments
    assert starts.components.shape == (module.FROM_ROWS, 3, 6)
    assert len(np.unique(starts.components, axis=0)) == module.FROM_ROWS
    assert rounds == ROUNDS_FROM_ROWS


def test_one_cause_has_nothing_to_be_exchanged_with(stuck):
    alone = stuck._replace(parameters=problem().parameters(CAUSES[:1]))
    assert repaired(alone) is alone


@pytest.mark.parametrize("always", [True, False])
def test_dead_causes_come_back_after_the_last_phase(always):
    """From rows of a pool, which may be all rows."""
    given = problem("sum")
    start = np.vstack([CAUSES[:2], 1e3 * np.ones((1, 6))])
    fit = given.fit(start)
    assert fit.outcome == Outcome.CAUSE_DIED
    pool = given.data if always else problem("sum", n_rows=60).data
    found = revived(fit, pool)
    assert found.outcome == Outcome.CONVERGED
    assert found.bound > fit.bound + 1
    order = np.argsort(np.argmax(found.parameters.components, axis=1))
    np.testing.assert_allclose(found.parameters.components[order], CAUSES, atol=1.0)


def test_a_fit_without_dead_causes_stays_as_it_is_after_the_last_phase():
    fit = problem("sum").fit(CAUSES + 0.05)
    found = revived(fit, problem("sum", n_rows=60).data)
    assert found.n_rounds == fit.n_rounds
    np.testing.assert_array_equal(found.parameters.components, fit.parameters.components)


def test_a_fit_that_has_not_converged_is_continued():
    fit = problem().fit(CAUSES + 0.5, max_iter=2)
    assert not fit.converged
    found = repaired(fit)
    assert found.converged
    assert found.bound > fit.bound
