"""Factor analysis and principal components against closed forms, scikit-learn and each other."""

import subprocess
import sys

import numpy as np
import pytest
from scipy import stats
from scipy.linalg import subspace_angles
from sklearn.decomposition import PCA
from sklearn.decomposition import FactorAnalysis as FactorAnalysisOfScikitLearn

import multicause
from multicause import FactorAnalysis, PrincipalComponents
from multicause.preparation.base import Preparation
from multicause.preparation.condensed import Condensed
from multicause.preparation.moments import condensed, covariance_of

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def factors(seed, n=400, D=8, H=2, offset=5.0):
    random = np.random.RandomState(seed)
    return (
        random.normal(size=(n, H)) @ random.normal(size=(H, D))
        + random.normal(size=(n, D)) * random.uniform(0.4, 1.5, D)
        + offset
    )


def test_factor_analysis_reaches_scikit_learns_likelihood(seed):
    X = factors(seed)
    ours = FactorAnalysis(2, tol=1e-10, max_iter=20_000, random_state=seed).fit(X)
    theirs = FactorAnalysisOfScikitLearn(2, tol=1e-10, max_iter=20_000, svd_method="lapack").fit(X)
    assert ours.score(X) == pytest.approx(theirs.score(X), abs=1e-6)
    np.testing.assert_allclose(
        ours.components_.T @ ours.components_, theirs.components_.T @ theirs.components_, atol=0.01
    )
    np.testing.assert_allclose(ours.noise_variance_, theirs.noise_variance_, atol=0.01)


def test_evidence_and_recognition_in_closed_form(seed):
    """TN10 eq. 10.20 and 10.21, with matrices as they stand there."""
    X = factors(seed)
    model = FactorAnalysis(2, max_iter=20, random_state=seed).fit(X)
    G, Sigma = model.components_.T, np.diag(model.noise_variance_)
    evidence = stats.multivariate_normal.logpdf(X, X.mean(axis=0), G @ G.T + Sigma)
    np.testing.assert_allclose(model.score_samples(X), evidence, rtol=1e-9)
    np.testing.assert_allclose(model.free_energy(X), evidence, rtol=1e-9)
    Psi = np.linalg.inv(np.eye(2) + G.T @ np.linalg.inv(Sigma) @ G)
    W = Psi @ G.T @ np.linalg.inv(Sigma)
    np.testing.assert_allclose(model.receptive_fields_, W, atol=1e-10)
    np.testing.assert_allclose(model.transform(X), (X - X.mean(axis=0)) @ W.T, atol=1e-9)
    np.testing.assert_allclose(model.reconstruct(X), model.transform(X) @ G.T + X.mean(axis=0), atol=1e-9)
    found = model.recognize(X)
    np.testing.assert_allclose(found.states[:, 0], model.transform(X))
    np.testing.assert_allclose(found.log_evidence, evidence, rtol=1e-9)


def test_one_step_is_that_of_the_appendix():
    X = factors(0)
    init, sigma2 = np.random.RandomState(1).normal(size=(2, 8)), 0.7**2
    model = FactorAnalysis(2, init=init, noise_scale=0.7, max_iter=1).fit(X)
    G, C, Sigma = init.T, np.cov(X.T, bias=True), sigma2 * np.eye(8)
    Psi = np.linalg.inv(np.eye(2) + G.T @ np.linalg.inv(Sigma) @ G)
    W = Psi @ G.T @ np.linalg.inv(Sigma)
    G = C @ W.T @ np.linalg.inv(W @ C @ W.T + Psi)
    rest = np.eye(8) - G @ W
    np.testing.assert_allclose(model.components_.T, G, rtol=1e-8)
    np.testing.assert_allclose(model.noise_variance_, np.diag(G @ Psi @ G.T + rest @ C @ rest.T), rtol=1e-8)


def test_condensed_rows_teach_the_same_as_all(seed):
    X, weights = factors(seed, offset=0.0), np.random.RandomState(seed).uniform(0.1, 2, 400)
    engine = multicause.engines.Local(memory_budget=100_000)
    weight, mean, covariance = covariance_of(engine.load(X, weights))
    np.testing.assert_allclose(covariance, np.cov(X.T, aweights=weights, bias=True), atol=1e-12)
    np.testing.assert_allclose(mean, np.average(X, axis=0, weights=weights), atol=1e-12)
    rows, few = condensed(weight, covariance, X.dtype)
    assert rows.shape == (16, 8)
    np.testing.assert_allclose(few @ rows, 0, atol=1e-9)
    np.testing.assert_allclose((rows.T * few) @ rows, weight * covariance, atol=1e-9)
    assert few.sum() == pytest.approx(weight)

    class AllRows(Condensed):
        def prepare(self, record, data):
            return Preparation.prepare(self, record, data)

    class NotCondensed(FactorAnalysis):
        def _preparer(self):
            return AllRows()

    settings = {"init": np.ones((2, 8)) * [[1], [0.5]] + np.eye(2, 8), "max_iter": 15, "tol": 0.0}
    short, long = FactorAnalysis(2, **settings).fit(X), NotCondensed(2, **settings).fit(X)
    np.testing.assert_allclose(short.components_, long.components_, atol=1e-8)
    np.testing.assert_allclose(short.lower_bounds_, long.lower_bounds_, rtol=1e-10)


def test_the_covariance_of_rows_far_from_the_first_ones_keeps_its_digits():
    """Single precision, two blocks with means far apart, the second far away: summed in double all the same."""
    X = np.random.RandomState(0).normal(size=(3000, 3)).astype(np.float32)
    X[1500:] += 1000
    _, mean, covariance = covariance_of(multicause.engines.Local(memory_budget=100_000).load(X))
    np.testing.assert_allclose(mean, X.mean(axis=0, dtype=float), rtol=1e-12)
    np.testing.assert_allclose(covariance, np.cov(X.T.astype(float), bias=True), rtol=1e-11)


@pytest.mark.parametrize(("n", "D", "H"), [(400, 8, 2), (60, 40, 3), (50, 4, 4)])
def test_principal_components_are_scikit_learns(n, D, H, seed):
    X = factors(seed, n, D)
    ours, theirs = PrincipalComponents(H, random_state=seed).fit(X), PCA(H, svd_solver="full").fit(X)
    assert np.max(subspace_angles(ours.components_.T, theirs.components_.T)) < 1e-6
    np.testing.assert_allclose(np.abs(np.sum(ours.components_ * theirs.components_, axis=1)), 1, atol=1e-8)
    np.testing.assert_allclose(ours.explained_variance_, theirs.explained_variance_ * (n - 1) / n, rtol=1e-8)
    np.testing.assert_allclose(np.abs(ours.transform(X)), np.abs(theirs.transform(X)), atol=1e-6)
    np.testing.assert_allclose(ours.reconstruct(X), theirs.inverse_transform(theirs.transform(X)), atol=1e-6)
    np.testing.assert_allclose(ours.receptive_fields_, ours.components_, atol=1e-9)
    assert ours.outcome_ == "converged"
    G, scale = ours.components_.T, ours.activity_
    covariance = (G * scale**2) @ G.T + ours.noise_variance_ * np.eye(D)
    evidence = stats.multivariate_normal.logpdf(X, X.mean(axis=0), covariance)
    np.testing.assert_allclose(ours.score_samples(X), evidence, rtol=1e-8)
    assert ours.lower_bound_ == pytest.approx(evidence.mean(), rel=1e-9)
    if H < D:
        # No other probabilistic PCA is more probable: neither with more nor with less noise.
        for factor in (0.9, 1.1):
            other = covariance + (factor - 1) * ours.noise_variance_ * (np.eye(D) - G @ G.T)
            assert stats.multivariate_normal.logpdf(X, X.mean(axis=0), other).mean() < evidence.mean()


def test_energy_of_principal_components(seed):
    """TN10 eq. 10.23: the density of the recognized cause and of the data given it."""
    X = factors(seed)
    model = PrincipalComponents(2, random_state=seed).fit(X)
    v, sigma = model.transform(X), np.sqrt(model.noise_variance_)
    expected = stats.norm.logpdf(v, 0, model.activity_).sum(axis=1)
    expected = expected + stats.norm.logpdf(X, model.reconstruct(X), sigma).sum(axis=1)
    np.testing.assert_allclose(model.free_energy(X), expected, rtol=1e-9)


def test_factor_analysis_without_noise_spans_the_principal_subspace(seed):
    """TN10 §10.3: all Σ equal and vanishing."""
    X = factors(seed, D=6)
    axes = PrincipalComponents(2, random_state=seed).fit(X).components_.T
    limit = FactorAnalysis(2, learn=("components",), noise_scale=1e-2, tol=1e-12, random_state=seed).fit(X)
    assert np.max(subspace_angles(limit.components_.T, axes)) < 1e-4
    noisy = FactorAnalysis(2, tol=1e-9, random_state=seed).fit(X * [1, 1, 1, 1, 1, 9])
    far = PrincipalComponents(2, random_state=seed).fit(X * [1, 1, 1, 1, 1, 9]).components_.T
    assert np.max(subspace_angles(noisy.components_.T, far)) > 0.05  # with noise of their own, dimensions differ


def test_a_noisy_sensor_misleads_principal_components_only(seed):
    """TN10 figure 10.3, with its 500 samples."""
    random = np.random.RandomState(seed)
    cause = random.normal(size=500)
    for deviation, least, most in ((0.5, 0.9, 1.0), (3.0, 0.0, 0.8)):
        X = cause[:, None] + random.normal(size=(500, 3)) * [0.5, 0.5, deviation]
        by_factors = FactorAnalysis(1, random_state=seed).fit_transform(X)[:, 0]
        by_axes = PrincipalComponents(1, random_state=seed).fit_transform(X)[:, 0]
        assert abs(np.corrcoef(by_factors, cause)[0, 1]) >= 0.9
        assert least <= abs(np.corrcoef(by_axes, cause)[0, 1]) <= most


@pytest.mark.parametrize("estimator", [FactorAnalysis, PrincipalComponents])
def test_samples_have_the_models_covariance(estimator, seed):
    """Within 6 standard errors of 20000 samples in 36 comparisons: false alarm below 1e-6."""
    model = estimator(2, random_state=seed).fit(factors(seed))
    X, causes = model.sample(20_000, random_state=seed)
    G = model.components_.T * model.activity_
    expected = G @ G.T + np.diag(np.broadcast_to(model.noise_variance_, 8))
    scale = np.sqrt((np.outer(np.diag(expected), np.diag(expected)) + expected**2) / len(X))
    assert (np.abs(np.cov(X.T) - expected) < 6 * scale).all()
    assert (np.abs(X.mean(axis=0) - model.mean_) < 6 * np.sqrt(np.diag(expected) / len(X))).all()
    assert (np.abs(causes.std(axis=0) - model.activity_) < 6 * model.activity_ / np.sqrt(2 * len(X))).all()


@pytest.mark.parametrize(
    ("estimator", "X", "text"),
    [
        (FactorAnalysis(5), np.eye(4), "n_components=5, but X has 4 features. Lower n_components to at most 4"),
        (PrincipalComponents(9), np.eye(4), "n_components=9, but X has 4 features"),
        (FactorAnalysis(1), np.ones((5, 3)), "All 5 rows of X that have a weight are equal.* X needs rows that differ"),
        (PrincipalComponents(1), 1e200 * np.eye(4), r"1e\+200, is too large to be squared in float64. Scale X down"),
        (FactorAnalysis(1), 1e-200 * np.eye(4), "differ by at most 1e-200, too little to be squared in float64. Scale"),
        (FactorAnalysis(1, init="pca"), np.eye(4), "Unknown init 'pca'"),
        (FactorAnalysis(1, learn=("mean",)), np.eye(4), "learn must be a tuple of names from"),
        (PrincipalComponents(1), [[np.inf, 1], [1, 2]], "infinity"),
    ],
)
def test_errors(estimator, X, text):
    with pytest.raises(ValueError, match=text):
        estimator.fit(X)


def test_rows_that_count_must_differ():
    """A single row with a weight has no covariance; later batches of a stream may have one row."""
    X, weights = factors(0, n=20), np.eye(20)[3]
    for estimator in (FactorAnalysis(2), PrincipalComponents(2)):
        with pytest.raises(ValueError, match="All 1 rows of X that have a weight are equal"):
            estimator.fit(X, sample_weight=weights)
        with pytest.raises(TypeError, match="no states with a single active cause under its prior, Gaussian"):
            estimator.fit(X).score_single_causes(X)
        assert np.isfinite(estimator.partial_fit(X[:1]).score(X))


def test_singular_covariances_end_with_finite_numbers():
    """Constant dimensions, copies of one another, and fewer rows than features."""
    X = factors(0)
    for data in (np.column_stack([X, np.ones(400), X[:, 0]]), X[:5], np.repeat(X[:, :1], 8, axis=1)):
        for estimator in (FactorAnalysis, PrincipalComponents):
            settings = {"max_iter": 300} if estimator is FactorAnalysis else {}
            model = estimator(2, random_state=0, **settings).fit(data)
            assert np.isfinite(model.components_).all()
            assert np.isfinite(model.score(data))
            assert model.outcome_ in ("converged", "max_iter", "cause_died")
            if estimator is FactorAnalysis:
                assert np.diff(model.lower_bounds_[:-1]).min() > -1e-6  # a millionth of the terms that cancel there


SEVERAL_THREADS = """
import numpy as np
from multicause import FactorAnalysis, MixtureOfGaussians, PrincipalComponents
from multicause.engines import Local

random = np.random.RandomState(0)
X = random.normal(size=(8000, 32))
X[random.uniform(size=X.shape) < 0.4] = np.nan
settings = {"max_iter": 3, "tol": 0.0, "random_state": 0, "engine": Local(n_jobs=2)}
print(np.isfinite(FactorAnalysis(10, **settings).fit(X).score_samples(X)).all())
few = X[:, :12]  # full covariances take long
print(np.isfinite(MixtureOfGaussians(2, covariance="full", **settings).fit(few).score_samples(few)).all())
PrincipalComponents(10, random_state=0).fit(X)
"""


def test_factorizations_of_rows_with_missing_values_end_on_several_threads():
    """Factorizations by LAPACK waited for XLA's threads forever, where blocks of rows ran at the same time."""
    result = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", SEVERAL_THREADS], timeout=120, capture_output=True, text=True, check=True
    )
    assert result.stdout.split() == ["True", "True"]
