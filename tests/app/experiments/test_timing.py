"""Times of models, and the data that they are measured with."""

from time import sleep

import numpy as np
import pytest

from multicause.app.experiments.timing import _iteration, example_data, milliseconds, time_model


def test_slow_fits_are_timed_once_after_a_warm_up():
    calls = []

    def slow():
        calls.append(len(calls))
        sleep(0.02)

    assert milliseconds(slow, repeats=5, most_seconds=0.01) >= 20
    assert calls == [0, 1]
    milliseconds(lambda: calls.append(len(calls)), repeats=5, most_seconds=10)
    assert len(calls) == 2 + 6


def test_benchmark_data_suit_every_model():
    """All features vary, also those that no cause has."""
    for shape in ((2000, 100, 10), (50, 20, 2)):
        assert (np.ptp(example_data(*shape, "float64"), axis=0) > 0).all()


def test_benchmark_times_models_of_binary_data_and_models_without_iterations():
    X = example_data(50, 4, 2, "float64")
    assert time_model("PrincipalComponents", X, 2, products=1.0).iteration > 0
    assert time_model("NoisyOrCauses", X, 2, products=1.0).name == "NoisyOrCauses"


def test_benchmark_makes_long_fits_where_iterations_are_cheap(monkeypatch):
    class Model:
        def __init__(self, n_components, max_iter):
            self.n_iter_ = max_iter

        def fit(self, X):
            made.append(self.n_iter_)

    def time(fit, **_):
        fit()
        return 10 + cost * made[-1]

    monkeypatch.setattr("multicause.app.experiments.timing.milliseconds", time)
    for cost, expected in ((0.1, [2, 12, 102]), (5.0, [2, 12])):
        made = []
        assert _iteration(Model, None, 2) == pytest.approx(cost)
        assert made == expected
