"""Tournament of variants: who survives a round, and when it ends. A function with known bounds stands in for EM."""

from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest

from multicause.em.results import Progress, StartResults
from multicause.outcomes import Outcome
from multicause.persistence.journal import Journal
from multicause.records import Parameters
from multicause.search import tournament as module
from multicause.search.tournament import VARIANT_TOL, is_better, report_best, run_tournament

MODEL, RANKING = "model", "ranking"
DATA = SimpleNamespace(n_weighted=10)


class Sums(NamedTuple):
    """The statistics that tell whether a cause is dead."""

    prior: dict
    weight: np.ndarray


class LinearRise:
    """Stands in for EM: the bound of variant v is ``levels[v] + rates[v] * iterations``, lower by 100 if it ranks."""

    def __init__(self, levels, rates):
        self.levels, self.rates = np.array(levels, dtype=float), np.array(rates, dtype=float)
        self.spent = np.zeros(len(levels))
        self.rounds = []  # the model, the variants and the iterations of each round

    def variants(self):
        numbers = np.arange(len(self.levels), dtype=float)
        return Parameters(numbers[:, None, None] + 1, {}, {})

    def __call__(self, model, data, starts, *, max_iter, **settings):
        number = starts.components[:, 0, 0].astype(int) - 1
        iterations = np.arange(max_iter + 1)[:, None] + self.spent[number]
        bounds = self.levels[number] + self.rates[number] * iterations - 100 * (model == RANKING)
        self.spent[number] += max_iter
        self.rounds.append((model, number.tolist(), max_iter))
        ones, n = np.ones_like(bounds), len(number)
        sums = Sums({"active": np.full((n, 1), 9.0)}, np.full(n, 10.0))
        outcome = np.array([Outcome.MAX_ITER] * n)
        last = np.full(n, max_iter)
        return StartResults(starts, sums, bounds[-1], bounds, ones, ones, outcome, last, max_iter)


@pytest.fixture
def run(monkeypatch):
    def tournament(levels, rates, *, ranking=MODEL, to_beat=-np.inf, least_rise=VARIANT_TOL, max_iter=100, **others):
        rise = LinearRise(levels, rates)
        monkeypatch.setattr(module, "learn_all", rise)
        settings = {"ranking": ranking, "to_beat": to_beat, "least_rise": least_rise, "max_iter": max_iter, "tol": 1e-4}
        settings |= others
        return run_tournament(MODEL, DATA, rise.variants, watch=None, journal=Journal(), **settings), rise.rounds

    return tournament


def test_the_best_survive_each_round_and_the_first_only_ranks(run):
    levels, rates = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0], [0.0, 0.0, 0.0, 0.9, 0.0, 0.0]
    winner, rounds = run(levels, rates, ranking=RANKING)
    assert [(model, set(numbers), n_iter) for model, numbers, n_iter in rounds] == [
        (RANKING, {0, 1, 2, 3, 4, 5}, 3),
        (MODEL, {2, 3, 4, 5}, 5),
        (MODEL, {3, 5}, 20),
    ]
    assert winner.bound == pytest.approx(3 + 28 * 0.9)
    assert winner.parameters.components == 4.0
    assert winner.n_rounds == 28


@pytest.mark.parametrize(("to_beat", "least_rise", "n_rounds"), [(27.9, 0.0, 3), (28.1, 0.0, 1), (27.9, 0.2, 1)])
def test_variants_that_would_not_reach_the_bound_in_time_are_dropped(run, to_beat, least_rise, n_rounds):
    """A bound of 3 after three iterations, which rises by 1 in each, would be 28 after 25 more."""
    _, rounds = run([0.0, 0.0], [1.0, 0.5], to_beat=to_beat, least_rise=least_rise)
    assert len(rounds) == n_rounds


def test_rounds_may_be_longer(run):
    winner, rounds = run([0.0, 1.0, 2.0], [0.3, 0.0, 0.0], rounds=((10, 2), (30, 1)))
    assert [(set(numbers), n_iter) for _, numbers, n_iter in rounds] == [({0, 1, 2}, 10), ({0, 2}, 30)]
    assert winner.bound == pytest.approx(40 * 0.3)


def test_bounds_of_another_posterior_are_not_compared_with_the_fit(run):
    winner, rounds = run([0.0, 1.0], [0.0, 0.0], ranking=RANKING, to_beat=0.5)
    assert rounds[1][:2] == (MODEL, [1, 0])
    assert winner.bound == 1.0


def test_iterations_end_the_tournament_and_the_model_itself_measures_the_best(run):
    winner, rounds = run([0.0, 1.0], [0.0, 0.0], ranking=RANKING, max_iter=2)
    assert rounds == [(RANKING, [0, 1], 2), (MODEL, [1], 0)]
    assert (winner.bound, winner.n_rounds) == (1.0, 2)
    _, rounds = run([0.0, 1.0], [0.0, 0.0], max_iter=5)
    assert [n_iter for *_, n_iter in rounds] == [3, 2]


def test_a_variant_without_a_finite_bound_never_wins(run):
    winner, rounds = run([np.nan, 1.0, np.inf, 0.0, -1.0, -2.0], np.zeros(6))
    assert winner.bound == 1.0
    assert rounds[2][1] == [1, 3]


def test_a_variant_must_surpass_the_fit_by_a_least_rise():
    fit, tol = SimpleNamespace(bound=1.0), 1e-3
    assert not is_better(SimpleNamespace(bound=1 + 0.9 * tol), fit, tol)
    assert is_better(SimpleNamespace(bound=1 + 1.1 * tol), fit, tol)
    assert not is_better(SimpleNamespace(bound=np.nan), fit, tol)


@pytest.mark.parametrize(("bound", "reported"), [(1.0, 2.0), (3.0, 3.0), (np.nan, 2.0)])
def test_the_fit_is_reported_as_long_as_no_variant_is_better(bound, reported):
    seen = []
    fit = SimpleNamespace(bound=2.0, parameters=Parameters(np.zeros((1, 1)), {}, {}), statistics=None)
    variant = Progress(3, np.ones(1), np.array([bound]), Parameters(np.ones((1, 1, 1)), {}, {}))
    report_best(seen.append, fit, 10)(variant)
    (progress,) = seen
    assert (progress.iteration, progress.bound[0]) == (13, reported)
    assert progress.parameters.components == float(reported == bound)
    assert report_best(None, fit, 10) is None
