"""The bisection for the critical temperature, with a known spread of components, and the spread itself."""

from types import SimpleNamespace

import numpy as np
import pytest

from multicause.annealing import ConstantTemperatures
from multicause.records import Parameters
from multicause.search import critical_temperature as module
from multicause.search.critical_temperature import COLDEST, DIFFERENT, HOTTEST, PRECISION, critical_temperature

STARTS = Parameters(np.ones((4, 3, 6)), {}, {})


def with_spread(spread, monkeypatch):
    """The critical temperature if components have this spread as a function of temperature, and what was tried."""
    tried = []

    def spread_at(model, data, starts, n_iter, temperatures, key, places):
        tried.extend(temperatures)
        assert (starts is STARTS, places) == (True, 4)
        return np.array([spread(temperature) for temperature in temperatures])

    monkeypatch.setattr(module, "spread_at", spread_at)
    return critical_temperature(None, None, STARTS, None), tried


@pytest.mark.parametrize("critical", [2.0, 30.0, 950.0, 5000.0, 1e6])
def test_a_sharp_transition_is_found_even_above_the_initial_range(critical, monkeypatch):
    found, tried = with_spread(lambda temperature: float(temperature < critical), monkeypatch)
    assert critical / PRECISION < found <= critical
    assert len(tried) < 30
    assert (max(tried) > HOTTEST) == (critical > HOTTEST)


def test_a_gradual_transition_ends_where_a_quarter_of_the_spread_is_left(monkeypatch):
    found, _ = with_spread(lambda temperature: COLDEST / temperature, monkeypatch)
    assert COLDEST / DIFFERENT / PRECISION < found <= COLDEST / DIFFERENT


def test_components_that_are_equal_at_all_temperatures(monkeypatch):
    """Differences of the order of rounding errors are none."""
    found, tried = with_spread(lambda temperature: 1e-9, monkeypatch)
    assert (found, tried) == (COLDEST, [COLDEST])


def test_the_spread_is_that_of_components_learned_from_the_first_start(monkeypatch):
    random = np.random.RandomState(0)
    starts = Parameters(random.normal(size=(4, 3, 6)), {}, {})
    learned = random.normal(size=(2, 3, 6))

    def learn_all(model, data, first, **settings):
        np.testing.assert_array_equal(first.components, [starts.components[0]] * 2)
        assert settings["annealing"] == ConstantTemperatures(temperatures)
        assert (settings["max_iter"], settings["tol"], settings["components_only"]) == (7, 0.0, True)
        return SimpleNamespace(parameters=SimpleNamespace(components=learned))

    monkeypatch.setattr(module, "learn_all", learn_all)
    temperatures = np.array([2.0, 5.0])
    found = module.spread_at(None, None, starts, 7, temperatures, None, 4)
    expected = [np.sqrt(((W - W.mean(axis=0)) ** 2).mean(axis=0)).mean() for W in learned]
    np.testing.assert_allclose(found, expected)


def test_the_start_is_the_highest_temperature_at_which_components_differ(monkeypatch):
    """A quarter of the way from the hottest spread to the largest is enough."""
    spread = np.array([4.0, 5.0, 5.0, 3.0, 2.1, 2.0, 1.9, 1.0, 1.0, 1.0])
    monkeypatch.setattr(module, "spread_at", lambda *words: spread)
    assert module.start_temperature(None, None, None, None, 10) == module.TEMPERATURES[5]
    monkeypatch.setattr(module, "spread_at", lambda *words: np.ones(10))
    assert module.start_temperature(None, None, None, None, 10) == module.TEMPERATURES[-1]
