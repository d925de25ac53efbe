"""Linear causes with a few levels: ternary ones, of both signs, and graded ones."""

import numpy as np
import pytest
from scipy import stats

import multicause
from multicause import LinearCauses, MaximalCauses
from multicause.compatibility import IncompatiblePartsError
from multicause.datasets import make_bars
from multicause.posteriors import Exact, Preselected
from multicause.priors import Graded, Ternary
from tests.oracles.enumeration import all_assignments

BARS = make_bars(300, size=3, levels=(-1, 1), noise="gaussian", random_state=0)


@pytest.fixture(scope="module")
def model():
    return LinearCauses(6, prior=Ternary(), random_state=0).fit(BARS.data)


def log_evidence(model, X, levels):
    """log p(y) by enumeration of all assignments of levels, in plain NumPy."""
    W, p = model.components_, model.level_probabilities_
    places = all_assignments(len(levels), len(W))
    states = np.array(levels)[places]
    prior = np.log(p[np.arange(len(W)), places]).sum(axis=1)
    scale = np.sqrt(model.noise_variance_)
    joint = np.stack([prior + stats.norm.logpdf(y, states @ W, scale)[:, ~np.isnan(y)].sum(axis=1) for y in X])
    return np.logaddexp.reduce(joint, axis=1)


def test_one_component_has_both_signs(model):
    match = np.argmax(np.abs(model.components_ @ BARS.causes.T), axis=0)
    assert sorted(match) == list(range(6))
    signs = np.sign(np.sum(model.components_[match] * BARS.causes, axis=1))
    # A bar and its negative are the same cause; a pixel's mean over a hundred rows is within five standard errors.
    np.testing.assert_allclose(signs[:, None] * model.components_[match], BARS.causes, atol=5 * 2 / np.sqrt(100))
    # A sixth of the causes is positive and a sixth negative; 300 rows are within five standard errors.
    np.testing.assert_allclose(model.level_probabilities_.sum(axis=1), 1)
    np.testing.assert_allclose(model.level_probabilities_, [[1 / 6, 2 / 3, 1 / 6]] * 6, atol=5 * np.sqrt(0.14 / 300))
    np.testing.assert_allclose(model.activity_, 1 - model.level_probabilities_[:, 1])
    states = model.recognize(BARS.data).states[:, 0]
    assert set(np.unique(states)) == {-1, 0, 1}
    assert np.mean(states[:, match] * signs == BARS.states) > 0.95


@pytest.mark.parametrize("prior", [Ternary(), Graded((0, 0.5, 2))], ids=["ternary", "graded"])
def test_scores_are_those_of_enumeration(model, prior):
    X = BARS.data[:20].copy()
    missing = np.where(np.random.RandomState(0).uniform(size=X.shape) < 0.3, np.nan, X)
    settings = {"prior": prior, "init": model.components_, "noise_scale": 2.0, "learn": (), "annealing": None}
    every = LinearCauses(6, posterior=Exact(), max_iter=1, **settings).fit(BARS.data)
    selected = LinearCauses(6, posterior=Preselected(6, 6, keep=None), max_iter=1, **settings).fit(BARS.data)
    fewer = LinearCauses(6, posterior=Preselected(4, 2, singletons=False, keep=None), max_iter=1, **settings)
    for rows in (X, missing):
        expected = log_evidence(every, rows, prior.levels)
        np.testing.assert_allclose(every.score_samples(rows), expected, rtol=1e-8)
        np.testing.assert_allclose(selected.score_samples(rows), expected, rtol=1e-8)
        assert (fewer.fit(BARS.data).score_samples(rows) <= expected + 1e-9).all()
    np.testing.assert_allclose(every.transform(X), selected.transform(X), atol=1e-8)
    found = [each.recognize(X, 3) for each in (every, selected)]
    np.testing.assert_array_equal(found[0].states[:, 0], found[1].states[:, 0])


def test_the_bound_never_falls_and_candidates_learn_as_all_states_do():
    settings = {"prior": Graded((0, 1, 2)), "annealing": None, "max_iter": 15, "random_state": 0}
    X = make_bars(100, size=3, levels=(1, 2), noise="gaussian", random_state=1).data
    fits = [LinearCauses(3, posterior=p, **settings).fit(X) for p in (Exact(), Preselected(3, 3, keep=None))]
    assert (np.diff(fits[0].lower_bounds_) > -1e-9).all()
    np.testing.assert_allclose(fits[0].lower_bounds_, fits[1].lower_bounds_, rtol=1e-8)
    np.testing.assert_allclose(fits[0].components_, fits[1].components_, rtol=1e-5, atol=1e-6)


def test_levels_are_recovered_from_data_of_the_model():
    random = np.random.RandomState(0)
    levels, p, W = (0, 1, 2), [0.5, 0.3, 0.2], 5 * np.eye(3).repeat(2, axis=1)
    states = random.choice(levels, p=p, size=(4000, 3))
    X = states @ W + random.normal(size=(4000, 6))
    found = LinearCauses(3, prior=Graded(levels), random_state=0).fit(X)
    np.testing.assert_allclose(np.sort(np.linalg.norm(found.components_, axis=1)), np.linalg.norm(W[0]), rtol=0.05)
    # Five standard errors of a share of 4,000 rows are below 0.04; the mean over three causes is within 5 %.
    np.testing.assert_allclose(found.level_probabilities_.mean(axis=0), p, rtol=0.05)


def test_saved_sampled_and_learned_from_a_stream(model, tmp_path):
    model.save(tmp_path / "model")
    loaded = multicause.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.transform(BARS.data), model.transform(BARS.data))
    np.testing.assert_array_equal(loaded.level_probabilities_, model.level_probabilities_)
    X, causes = model.sample(3000, random_state=0)
    assert set(np.unique(causes)) == {-1, 0, 1}
    # Shares of 3,000 draws are within five standard errors.
    shares = np.stack([(causes == level).mean(axis=0) for level in (-1, 0, 1)], axis=1)
    np.testing.assert_allclose(shares, model.level_probabilities_, atol=5 * 0.5 / np.sqrt(3000))
    loaded.partial_fit(X[:200])
    assert np.isfinite(loaded.lower_bound_)


@pytest.mark.parametrize(
    ("prior", "message"),
    [
        (Graded((0, 1, 1)), "must be different from each other, but 1 is repeated"),
        (Graded((1, 2)), "must have zero, the level of a cause that is off"),
        (Graded([0, 1]), r"must be a tuple of numbers"),
        (Graded((0, np.nan)), r"must be a tuple of numbers"),
    ],
)
def test_bad_levels(prior, message):
    with pytest.raises(ValueError, match=message):
        LinearCauses(2, prior=prior).fit(BARS.data)


def test_other_bad_input():
    with pytest.raises(IncompatiblePartsError, match="needs a sum of causes"):
        MaximalCauses(2, prior=Ternary()).fit(BARS.data)
    with pytest.raises(ValueError, match=r"use Preselected with selection='auto' and keep=None"):
        LinearCauses(6, prior=Ternary(), posterior=Preselected()).fit(BARS.data)
    with pytest.raises(ValueError, match=r"has 3\^12 states, more than max_states=65,536"):
        LinearCauses(12, prior=Ternary(), posterior="exact").fit(BARS.data)
    with pytest.raises(ValueError, match="levels must be a sequence of numbers other than zero"):
        make_bars(10, levels=(0, 1))
    with pytest.raises(ValueError, match="Bars with levels add up"):
        make_bars(10, levels=(1, 2), combination="max")
