"""Maximal causes of both signs, which occlude each other by their magnitude."""

import jax.numpy as jnp
import numpy as np
import pytest

import multicause
from multicause import MaximalCauses
from multicause.arrays import double_precision
from multicause.combinations import Maximum, MaximumMagnitude
from multicause.compatibility import IncompatiblePartsError
from multicause.datasets import make_bars
from multicause.metrics import recovered_causes
from multicause.posteriors import Preselected
from multicause.states.state_list import all_states, sparse_states

BARS = make_bars(400, kind="signed", size=3, combination="max_magnitude", noise="gaussian", random_state=0)


@pytest.fixture(scope="module")
def model():
    return MaximalCauses(6, combination=MaximumMagnitude(), random_state=0).fit(BARS.data)


def test_occluding_bars_of_both_signs_are_found(model):
    assert recovered_causes(model, BARS.causes).all_found
    assert model.components_.min() < -8
    assert model.components_.max() > 8


@pytest.mark.parametrize("tree", [all_states(4), sparse_states(4, 3)])
def test_the_cause_farthest_from_zero_is_seen(tree):
    W = np.random.RandomState(0).normal(size=(4, 5))
    magnitudes = np.where(tree.states()[:, :, None] > 0, np.abs(W), 0)
    nearest = np.take_along_axis(W[None], np.argmax(magnitudes, axis=1)[:, None], axis=1)[:, 0]
    expected = np.where(magnitudes.any(axis=1), nearest, 0)
    rule, origin = MaximumMagnitude(), np.linspace(-1, 1, 5)
    with double_precision():
        np.testing.assert_allclose(rule.combine(jnp.asarray(W), tree), expected)
        np.testing.assert_allclose(rule.mean(jnp.asarray(W), jnp.asarray(tree.states(), float)), expected)
        np.testing.assert_allclose(rule.relative_means(jnp.asarray(W), tree, jnp.asarray(origin)), expected - origin)
        # Without negative components it is the maximum, and so is its credit.
        both, values = (Maximum(), rule), jnp.asarray(np.random.RandomState(1).normal(size=(tree.n_states, 5)))
        means = [each.combine(jnp.abs(W), tree) for each in both]
        credits = [each.pull(jnp.abs(W), tree, values, jnp.asarray(1.3)) for each in both]
    np.testing.assert_array_equal(*means)
    np.testing.assert_array_equal(*credits)


def test_candidates_of_all_causes_are_exact_and_missing_pixels_are_left_out(model):
    settings = {"init": model.components_, "activity": model.activity_, "noise_scale": model.noise_variance_**0.5}
    settings |= {"learn": (), "annealing": None, "max_iter": 1, "combination": MaximumMagnitude()}
    X = np.where(np.random.RandomState(0).uniform(size=BARS.data.shape) < 0.3, np.nan, BARS.data)
    scores = []
    for posterior in (None, Preselected(6, 6, keep=None)):
        fitted = MaximalCauses(6, posterior=posterior, **settings).fit(BARS.data)
        scores.append(np.concatenate([fitted.score_samples(BARS.data[:20]), fitted.score_samples(X[:20])]))
    np.testing.assert_allclose(*scores, rtol=1e-9)
    filled = model.impute(X)
    errors = [((values - BARS.data)[np.isnan(X)] ** 2).mean() for values in (filled, np.nanmean(X, axis=0))]
    assert errors[0] < 0.6 * errors[1]


def test_saved_and_loaded(model, tmp_path):
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(multicause.load(tmp_path / "model").transform(BARS.data), model.transform(BARS.data))


def test_counts_are_refused_and_settings_are_checked():
    with pytest.raises(IncompatiblePartsError, match="needs means between 0 and inf"):
        MaximalCauses(2, noise="poisson", combination=MaximumMagnitude()).fit(np.abs(BARS.data))
    with pytest.raises(ValueError, match="Unknown credit 'none' of MaximumMagnitude"):
        MaximalCauses(2, combination=MaximumMagnitude(credit="none")).fit(BARS.data)
    with pytest.raises(ValueError, match="use 'sum' or 'max_magnitude'"):
        make_bars(10, kind="signed", combination="max")
