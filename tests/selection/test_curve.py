"""Choosing the number of components by held-out scores."""

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.base import clone
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import KFold, cross_val_score

from multicause import FactorAnalysis, MaximalCauses, MixtureOfGaussians, MixtureOfPoissons
from multicause.datasets import make_bars
from multicause.plotting import ComponentCurveDisplay
from multicause.selection import ComponentCurve, component_curve
from multicause.selection.curve import _curve, _entry_folds, _fit, _score_entries

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
BARS = make_bars(160, size=3, noise="poisson", random_state=0)


def clusters(n=240):
    """Three clusters that nobody could take for two or four."""
    random = np.random.RandomState(0)
    centres = np.array([[0.0, 0.0], [8.0, 0.0], [0.0, 8.0]])
    return centres[random.randint(3, size=n)] + random.normal(size=(n, 2))


def test_scores_are_those_of_cross_validation():
    X, folds = clusters(90), KFold(3)
    model = FactorAnalysis(random_state=0)
    told = []
    curve = component_curve(model, X, [2, 1], cv=folds, random_state=0, progress=lambda *pair: told.append(pair))
    assert curve.numbers.tolist() == [1, 2]
    np.testing.assert_allclose(told, np.stack([curve.numbers, curve.scores], axis=1))
    for number, scores in zip(curve.numbers, curve.fold_scores, strict=True):
        expected = cross_val_score(clone(model).set_params(n_components=number), X, cv=folds)
        np.testing.assert_allclose(scores, expected, rtol=1e-6)
    np.testing.assert_allclose(curve.scores, curve.fold_scores.mean(axis=1))


def test_errors_are_those_of_the_mean_over_rows():
    scores = np.random.RandomState(0).normal(size=(3, 50))
    curve = _curve(np.array([1, 2, 3]), scores, np.arange(50), np.ones(50), np.array([25]))
    np.testing.assert_allclose(curve.errors, scores.std(axis=1, ddof=1) / np.sqrt(50))
    highest = scores.mean(axis=1).argmax()
    difference = scores[highest] - scores
    np.testing.assert_allclose(curve.deficits, difference.mean(axis=1))
    np.testing.assert_allclose(curve.deficit_errors, difference.std(axis=1, ddof=1) / np.sqrt(50))


def test_the_smallest_number_that_is_as_good_is_the_best():
    random = np.random.RandomState(0)
    rows, noise = random.normal(size=400), random.normal(size=(4, 400))
    # Rows differ by one; models differ by much less, and the third is better than the second by chance alone.
    scores = rows + np.array([-0.5, 0.0, 0.002, -0.1])[:, None] + 0.05 * noise
    curve = _curve(np.array([2, 4, 8, 16]), scores, np.arange(400), np.ones(400), np.array([200]))
    assert curve.best == 4
    assert curve.errors[1] > 10 * curve.deficit_errors[1]


def test_numbers_that_differ_by_silent_components_are_as_good():
    """Rows then differ by rounding and by the least activity, which are alike in all rows: 4e-6 ± 7e-7 on bars."""
    random = np.random.RandomState(0)
    common = random.normal(-30, 10, size=400)
    more = common + 4e-6 + 1e-5 * random.normal(size=400)
    scores = np.array([common - random.exponential(5, size=400), common, more])
    for unit in (1e-6, 1.0, 1e6):  # scores need not be likelihoods, such as minus squared distances
        curve = _curve(np.array([8, 10, 12]), unit * scores, np.arange(400), np.ones(400), np.array([200]))
        assert curve.deficits[1] > 2 * curve.deficit_errors[1]
        assert curve.best == 10


def test_repeated_splits_do_not_pretend_to_more_rows():
    scores = np.random.RandomState(0).normal(size=(2, 50))
    places = np.arange(50)
    once = _curve(np.array([1, 2]), scores, places, np.ones(50), np.array([25]))
    again = _curve(np.array([1, 2]), np.tile(scores, 3), np.tile(places, 3), np.ones(50), np.array([50, 100]))
    np.testing.assert_allclose(again.errors, once.errors)
    np.testing.assert_allclose(again.deficit_errors, once.deficit_errors)


def test_rows_without_weight_do_not_count():
    weights = np.r_[np.zeros(4), np.ones(len(BARS.data) - 4)]
    folds = [(np.arange(4, len(weights)), np.arange(4)), (np.arange(4, 80), np.arange(80, len(weights)))]
    curve = component_curve(MixtureOfPoissons(), BARS.data, [1], sample_weight=weights, cv=folds, random_state=0)
    assert np.isnan(curve.fold_scores[0, 0])
    assert curve.scores[0] == pytest.approx(curve.fold_scores[0, 1])


@pytest.mark.parametrize("model", [MixtureOfGaussians(n_init=3), GaussianMixture(n_init=3)])
def test_clusters_are_counted_by_any_estimator_with_scores(model):
    curve = component_curve(model, clusters(), [1, 2, 3, 4, 5], cv=3, random_state=0)
    assert curve.best == 3
    assert str(curve).count("<- best") == repr(curve).count("<- best") == 1


def test_bars_are_counted():
    """All of 20 trials with 10, 16 and 32 causes are in benchmarks/component_curves.py; this is one small one."""
    bars = make_bars(300, size=3, noise="poisson", random_state=1)
    curve = component_curve(MaximalCauses(noise="poisson"), bars.data, [4, 6, 8], cv=2, random_state=0)
    assert curve.best == len(bars.causes) == 6


def test_held_out_entries_are_scored_given_the_others_of_their_row():
    """The conditional log density of a Gaussian, which factor analysis learns, in closed form."""
    random = np.random.RandomState(0)
    X = random.normal(size=(60, 1)) @ random.normal(size=(1, 3)) + 0.3 * random.normal(size=(60, 3))
    model = FactorAnalysis(1, random_state=0).fit(X)
    fold = np.zeros(X.shape, dtype=bool)
    fold[:, 2] = True
    copy = clone(model)
    scores = _score_entries(copy, X, None, fold & (np.arange(60) < 30)[:, None], None)
    mean = copy.mean_
    covariance = copy.components_.T @ copy.components_ + np.diag(copy.noise_variance_)
    slope = covariance[2, :2] @ np.linalg.inv(covariance[:2, :2])
    expected = norm.logpdf(
        X[:, 2], mean[2] + (X[:, :2] - mean[:2]) @ slope, np.sqrt(covariance[2, 2] - slope @ covariance[:2, 2])
    )
    np.testing.assert_allclose(scores, np.where(np.arange(60) < 30, expected, 0), rtol=1e-6, atol=1e-8)


def test_held_out_entries_count_clusters():
    random = np.random.RandomState(1)
    X = 8.0 * np.eye(4)[random.randint(3, size=200)] + random.normal(size=(200, 4))
    curve = component_curve(MixtureOfGaussians(n_init=3), X, [1, 3, 5], cv=2, held_out="entries", random_state=0)
    assert curve.best == 3
    assert curve.fold_scores.shape == (3, 2)


@pytest.mark.parametrize("n_features", [2, 5])
def test_folds_of_entries_hold_out_each_value_once_and_leave_some_of_every_row(n_features):
    random = np.random.RandomState(0)
    X = np.where(random.uniform(size=(50, n_features)) < 0.2, np.nan, 1.0)
    folds = _entry_folds(FactorAnalysis(), 3, X, random)
    several = ~np.isnan(X) & ((~np.isnan(X)).sum(axis=1, keepdims=True) > 1)
    np.testing.assert_array_equal(np.sum(folds, axis=0), several)
    for fold in folds:
        assert (~np.isnan(X) & ~fold)[several.any(axis=1)].any(axis=1).all()


def test_a_warm_start_has_the_components_of_the_smaller_model():
    model = MixtureOfPoissons(4, max_iter=1, random_state=0)
    smaller = clone(model).set_params(n_components=2).fit(BARS.data)
    _fit(model, BARS.data, None, smaller)
    np.testing.assert_array_equal(model.init[:2], smaller.components_)
    assert model.init.shape == (4, 9)
    assert (model.init >= 0).all()
    curve = component_curve(MixtureOfPoissons(), BARS.data, [1, 3], cv=2, warm_start=True, random_state=0)
    assert curve.scores[1] > curve.scores[0]


def test_weights_are_repetitions():
    weights = np.random.RandomState(0).randint(1, 3, size=len(BARS.data))
    repeated = np.repeat(np.arange(len(weights)), weights)
    halves = np.array_split(np.arange(len(weights)), 2)
    of_repeated = [np.flatnonzero(np.isin(repeated, half)) for half in halves]
    model = MixtureOfPoissons(init=BARS.causes[:2], tol=1e-8)
    one = component_curve(model, BARS.data, [2], sample_weight=weights, cv=[halves, halves[::-1]])
    other = component_curve(model, BARS.data[repeated], [2], cv=[of_repeated, of_repeated[::-1]])
    np.testing.assert_allclose(one.scores, other.scores, rtol=1e-6)


def test_same_seed_same_curve_and_the_model_stays_as_it_is():
    model = MixtureOfPoissons(7)
    curves = [component_curve(model, BARS.data, [1, 3], cv=2, random_state=3, n_jobs=n_jobs) for n_jobs in (1, 2)]
    np.testing.assert_array_equal(curves[0].scores, curves[1].scores)
    assert model.n_components == 7
    assert not hasattr(model, "components_")


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"numbers": []}, ValueError, r"numbers must be different whole numbers of at least 1.*got \[\]"),
        ({"numbers": [2, 2]}, ValueError, "must be different whole numbers"),
        ({"numbers": [0]}, ValueError, "of at least 1"),
        ({"numbers": [1.5]}, ValueError, "whole numbers"),
        ({"model": MixtureOfPoissons}, TypeError, "must be an estimator with score_samples"),
        ({"held_out": "columns"}, ValueError, "held_out must be one of 'rows', 'entries'; got 'columns'"),
        ({"held_out": "entries", "cv": KFold(2)}, ValueError, "cv must be a number of folds of at least 2"),
        ({"held_out": "entries", "model": GaussianMixture()}, TypeError, "takes missing values; GaussianMixture does"),
        ({"cv": 1}, ValueError, "cv must be between 2 and the number of rows, 160; got 1"),
        ({"sample_weight": -np.ones(160)}, ValueError, "must be finite, not negative"),
        ({"sample_weight": np.ones(3)}, ValueError, r"must have shape \(160,\), one for each row; got \(3,\)"),
    ],
)
def test_bad_input(changes, error, message):
    arguments = {"model": MixtureOfPoissons(), "X": BARS.data, "numbers": [1, 2], **changes}
    with pytest.raises(error, match=message):
        component_curve(**arguments)


def test_display():
    numbers = np.array([2, 4])
    values = np.array([-3.0, -2.0])
    curve = ComponentCurve(numbers, values, values, values, np.array([0.1, 0.0]), values[:, None], 4)
    display = ComponentCurveDisplay(curve).plot()
    assert display.line_.get_xdata().tolist() == [2, 4]
    assert display.best_line_.get_xdata() == [4, 4]
    assert "best: 4" in [text.get_text() for text in display.ax_.get_legend().get_texts()]
