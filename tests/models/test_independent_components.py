"""Independent components against closed forms, FastICA, picard and finite differences."""

import numpy as np
import pytest
from scipy import stats
from sklearn.decomposition import FastICA

from multicause import IndependentComponents
from multicause.metrics import amari_distance
from multicause.updates import NaturalGradient

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def mixed(seed, n=2000, H=4, sources="laplace"):
    random = np.random.RandomState(seed)
    S = random.laplace(size=(n, H)) if sources == "laplace" else random.uniform(-1, 1, (n, H))
    A = random.normal(size=(H, H))
    return S @ A + 2, A, S


def test_likelihood_in_closed_form(seed):
    """TN10 eq. 10.35 with the density of 1/cosh."""
    X, _, _ = mixed(seed)
    model = IndependentComponents(random_state=seed, max_iter=5).fit(X)
    W = model.receptive_fields_
    np.testing.assert_allclose(W @ model.projective_fields_.T, np.eye(4), atol=1e-9)
    v = (X - X.mean(axis=0)) @ W.T
    np.testing.assert_allclose(model.transform(X), v, atol=1e-9)
    expected = stats.hypsecant.logpdf(v).sum(axis=1) + np.linalg.slogdet(W)[1]
    np.testing.assert_allclose(model.score_samples(X), expected, rtol=1e-9)
    np.testing.assert_allclose(model.free_energy(X), expected, rtol=1e-9)
    assert model.lower_bound_ == pytest.approx(expected.mean())
    np.testing.assert_allclose(model.reconstruct(X), X, atol=1e-9)
    np.testing.assert_allclose(model.inverse_transform(v), X, atol=1e-9)


def test_one_step_of_the_natural_gradient():
    """TN10 eq. 10.38 in the whitened space."""
    X, _, _ = mixed(0)
    start = IndependentComponents(init=np.eye(4), max_iter=1, tol=1e9).fit(X)
    step = IndependentComponents(
        init=np.eye(4), solver="natural_gradient", update=NaturalGradient(rate=0.1), max_iter=1
    ).fit(X)
    v = start.transform(X)
    W = start.receptive_fields_
    np.testing.assert_allclose(step.receptive_fields_, W + 0.1 * (W - (np.tanh(v).T @ v / len(v)) @ W), rtol=1e-8)


def test_as_near_to_planted_sources_as_fastica_and_picard(seed):
    picard = pytest.importorskip("picard", reason="python-picard is not installed")
    X, A, _ = mixed(seed, n=5000, H=5)
    ours = amari_distance(IndependentComponents(random_state=seed).fit(X).components_, A)
    K, W, _ = picard.picard(X.T, ortho=False, extended=False, tol=1e-7, random_state=seed)
    fast = FastICA(whiten="unit-variance", random_state=seed, max_iter=1000).fit(X)
    assert ours <= amari_distance(np.linalg.inv(W @ K).T, A) + 1e-3
    assert ours <= amari_distance(fast.mixing_.T, A) * 1.1


def test_flat_sources_need_a_flat_prior(seed):
    X, A, _ = mixed(seed, sources="uniform")
    flat = IndependentComponents(prior="sub_gaussian", random_state=seed).fit(X)
    sparse = IndependentComponents(random_state=seed).fit(X)
    assert amari_distance(flat.components_, A) < 1
    assert amari_distance(sparse.components_, A) > 2


def test_streams_fewer_components_and_samples(seed):
    X, A, _ = mixed(seed, n=8000)
    model = IndependentComponents(random_state=seed, update=NaturalGradient(rate=0.2))
    for start in range(0, 8000, 100):
        model.partial_fit(X[start : start + 100])
    assert amari_distance(model.components_, A) < 2.5
    few = IndependentComponents(2, random_state=seed).fit(X)
    assert few.components_.shape == few.receptive_fields_.shape == (2, 4)
    assert np.isfinite(few.score(X))
    whole = IndependentComponents(random_state=seed).fit(X)
    rows, causes = whole.sample(20_000, random_state=seed)
    np.testing.assert_allclose(causes @ whole.components_ + whole.mean_, rows, atol=1e-9)
    # Variance of 1/cosh is π²/4; within 6 standard errors (its kurtosis is 2), of 4 comparisons.
    assert (np.abs(causes.var(axis=0) - np.pi**2 / 4) < 6 * np.pi**2 / 4 * np.sqrt(4 / 20_000)).all()


@pytest.mark.parametrize(
    ("settings", "X", "text"),
    [
        (
            {"n_components": 5},
            np.eye(4),
            "n_components=5, but X has 4 features. Lower n_components, or use SparseCoding",
        ),
        (
            {},
            np.repeat(np.random.RandomState(0).normal(size=(9, 2)), 2, axis=1),
            "X varies in 2 of 4 directions only, and 4 are.*lower n_components to at most 2",
        ),
        (
            {"prior": "gauss"},
            np.random.RandomState(0).normal(size=(9, 2)),
            "Unknown prior 'gauss'. Known: 'hyperbolic_",
        ),
        (
            {"init": "pca"},
            np.random.RandomState(0).normal(size=(9, 2)),
            "Unknown init 'pca'. Known: 'random', 'identity'",
        ),
        ({"init": np.ones((2, 2))}, np.random.RandomState(0).normal(size=(9, 2)), "init must be invertible"),
        (
            {"init": np.ones((2, 3))},
            np.random.RandomState(0).normal(size=(9, 2)),
            r"shape .* = \(2, 2\).*got shape \(2, 3\)",
        ),
        (
            {"update": NaturalGradient(rate=2.0)},
            np.random.RandomState(0).normal(size=(9, 2)),
            "rate of NaturalGradient",
        ),
        ({"solver": "newton"}, np.eye(4), "'solver' parameter"),
    ],
)
def test_errors(settings, X, text):
    with pytest.raises(ValueError, match=text):
        IndependentComponents(**settings).fit(X)
