"""Pieces of the automatic search: posteriors, the start temperature, and the number of iterations."""

from dataclasses import replace

import numpy as np
import pytest

from multicause import MaximalCauses
from multicause.datasets import make_bars
from multicause.posteriors import Exact, Preselected, Truncated
from multicause.search import automatic as module
from multicause.search.automatic import TEMPERATURES, search_posterior, start_temperature
from tests.search.problem import problem


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


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("max_iter", [1, 2, 4, 30])
def test_all_stages_of_learning_together_take_no_more_than_max_iter(max_iter):
    X = make_bars(100, size=4, noise="gaussian", random_state=0).data
    assert MaximalCauses(8, posterior=Preselected(3, 2), max_iter=max_iter, random_state=0).fit(X).n_iter_ <= max_iter
