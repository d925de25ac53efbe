"""Models as products of parts: what they derive from their parts, and their pickles."""

import pickle
from dataclasses import replace

import pytest

from multicause import model
from multicause.combinations import Maximum, Sum
from multicause.generative import GenerativeModel
from multicause.noises import Gaussian, Poisson
from multicause.posteriors import Exact
from multicause.priors import Bernoulli
from multicause.updates import LeastSquares

LINEAR = model.Model(Bernoulli(), Sum(), Gaussian(), Exact(), LeastSquares(), frozenset({"components"}))


def test_posteriors_and_updates_see_the_generative_side_of_a_model():
    assert isinstance(LINEAR, GenerativeModel)


@pytest.mark.parametrize(
    ("changes", "sums_squares", "linear"),
    [
        ({}, True, True),
        ({"missing": True}, True, False),
        ({"combination": Maximum()}, False, False),
        ({"noise": Poisson()}, False, False),
    ],
)
def test_sums_under_gaussian_noise_need_no_means_of_states(changes, sums_squares, linear):
    changed = replace(LINEAR, **changes)
    assert (changed.sums_squares, changed.linear) == (sums_squares, linear)


def test_pickles_of_earlier_versions_find_their_classes():
    """Pickled models name these classes and call ``Model`` with its fields in this order."""
    for name in ("Model", "FittedModel", "Parameters", "Statistics"):
        assert pickle.loads(f"cmulticause.model\n{name}\n.".encode()) is getattr(model, name)
    kind, fields = replace(LINEAR, missing=True).__reduce__()
    assert kind is model.Model
    assert fields == (Bernoulli(), Sum(), Gaussian(), Exact(), LeastSquares(), frozenset({"components"}), True)
