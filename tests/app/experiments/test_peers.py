"""Rows of ``multicause reproduce peers`` that need no long learning."""

import numpy as np
import pytest
from scipy import stats

from multicause.app.experiments import experiment
from multicause.app.experiments.bernoulli_mixture import BernoulliMixture, learn_mixture
from multicause.app.experiments.peers_denoising import denoised, denoising, psnr
from multicause.app.experiments.peers_digits import held_out_digits


class Halved:
    """Stands in for a model whose reconstruction is half of a row."""

    def fit(self, X):
        np.testing.assert_allclose(X.mean(axis=1), 0, atol=1e-4)
        return self

    def reconstruct(self, X):
        return X / 2


def test_a_bernoulli_mixture_is_learned():
    random = np.random.RandomState(0)
    truth = BernoulliMixture(np.array([0.3, 0.7]), np.array([[0.9, 0.9, 0.1, 0.1], [0.1, 0.2, 0.9, 0.8]]))
    X = (random.uniform(size=(4000, 4)) < truth.means[random.choice(2, 4000, p=truth.shares)]).astype(float)
    by_hand = [np.log(truth.shares @ stats.bernoulli.pmf(row, truth.means).prod(axis=1)) for row in X[:50].astype(int)]
    assert truth.score(X[:50]) == pytest.approx(np.mean(by_hand))
    found = learn_mixture(X, 2, prior_rows=0.1, seed=0)
    assert found.score(X) == pytest.approx(truth.score(X), abs=0.01)
    order = np.argsort(found.shares)
    np.testing.assert_allclose(found.means[order], truth.means, atol=0.05)


def test_pictures_are_means_of_their_patches():
    """Halving what differs from the mean of a patch keeps the slope of a plane inside and halves it at the border."""
    plane = np.add.outer(np.zeros(20), np.arange(20.0))
    found = denoised(Halved(), plane, 4)
    assert found.shape == plane.shape
    np.testing.assert_allclose(np.diff(found[8:12, 4:16], axis=1), 1, atol=1e-4)
    np.testing.assert_allclose(found[8, 0], 0.75)  # one patch, with the mean 1.5
    assert psnr(plane + 255, plane) == pytest.approx(0)


def test_without_their_data_rows_are_not_reached(monkeypatch):
    monkeypatch.delenv("MULTICAUSE_DATA", raising=False)
    for rows in (held_out_digits("quick"), denoising("quick")):
        (line,) = rows
        assert not line.reached
        assert line.found.startswith("not run: set MULTICAUSE_DATA to a folder with ")


def test_an_unknown_setting_is_refused():
    with pytest.raises(ValueError, match="Unknown setting 'slow'. Known: 'quick', 'default', 'paper'"):
        next(experiment("peers")(1, setting="slow"))
