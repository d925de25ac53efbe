"""Preparations of rows: exact inverses, moments against NumPy, and streams that forget nothing."""

import numpy as np
import pytest

from multicause.combinations import Sum
from multicause.engines import Local
from multicause.model import Model
from multicause.noises import DiagonalGaussian
from multicause.posteriors import LinearGaussian
from multicause.preparation.base import Learned, Preparation
from multicause.preparation.centred import Centred
from multicause.preparation.condensed import Condensed
from multicause.preparation.whitened import Whitened
from multicause.priors import Gaussian
from multicause.records import Parameters
from multicause.updates import LeastSquares

X = np.random.RandomState(0).normal(size=(50, 4)) @ np.random.RandomState(1).normal(size=(4, 4)) + 3.0


@pytest.mark.parametrize(
    "preparation", [Preparation(), Centred(), Whitened(), Condensed()], ids=lambda p: type(p).__name__
)
def test_rows_come_back(preparation):
    record = preparation.measure(Local().load(X))
    np.testing.assert_allclose(preparation.undo(record, preparation.apply(record, X)), X, atol=1e-10)


def test_centred_rows_and_components_have_the_same_origin():
    centred, components = Centred(), X[:2]
    record = centred.measure(Local().load(X))
    np.testing.assert_allclose(record["origin"], X.mean(axis=0))
    moved = centred.prepare_components(record, components)
    np.testing.assert_allclose(moved, centred.apply(record, components))
    np.testing.assert_allclose(centred.components_of(record, moved), components)


@pytest.mark.parametrize("kept", [None, 2])
def test_whitened_rows_have_unit_covariance(kept):
    whitened = Whitened(kept)
    record = whitened.measure(Local().load(X))
    rows = whitened.apply(record, X)
    np.testing.assert_allclose(np.cov(rows.T, bias=True), np.eye(kept or 4), atol=1e-10)
    # Components are directions: a sum of components with these weights is a centred row.
    if kept is None:
        np.testing.assert_allclose(rows @ whitened.components_of(record, np.eye(4)), X - X.mean(axis=0), atol=1e-10)


def test_condensed_batches_have_the_moments_of_all_rows():
    condensed = Condensed()
    parameters = Parameters(np.ones((1, 4)), {"scale": np.ones(1)}, {"variance": np.ones(4)})
    record, data = condensed.prepare_batch(None, Local().load(X[:30]), None)
    record, data = condensed.prepare_batch(record, Local().load(X[30:]), parameters)
    np.testing.assert_allclose(record["mean"], X.mean(axis=0))
    np.testing.assert_allclose(record["covariance"], np.cov(X.T, bias=True))
    rows, weights = data.look()
    assert len(rows) == 8
    assert weights.sum() == pytest.approx(50)
    np.testing.assert_allclose((rows.T * weights) @ rows / 50, np.cov(X.T, bias=True), atol=1e-12)


def test_a_learned_offset_becomes_a_part_of_the_mean():
    parts = (Gaussian(), Sum(), DiagonalGaussian(), LinearGaussian(), LeastSquares())
    model = Model(*parts, learn=frozenset({"components"}), missing=True)
    starts = Parameters(np.ones((2, 1, 4)), {"scale": np.ones((2, 1))}, {"variance": np.ones((2, 4))})
    added = Condensed().add_parameters(starts, model)
    np.testing.assert_array_equal(added.noise["offset"], np.zeros((2, 4)))
    parameters = Parameters(np.ones((1, 4)), {"scale": np.ones(1)}, {"variance": np.ones(4), "offset": np.arange(4.0)})
    record = {"mean": np.ones(4)}
    learned = Condensed().finish(Learned(model, parameters, None, record))
    np.testing.assert_array_equal(learned.record["mean"], 1 + np.arange(4))
    np.testing.assert_array_equal(record["mean"], np.ones(4))
    assert set(learned.parameters.noise) == {"variance"}
    assert not learned.model.missing
