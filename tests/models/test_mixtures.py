"""Mixtures and K-means against closed forms, scikit-learn and each other."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp
from sklearn.cluster import KMeans as KMeansOfScikitLearn
from sklearn.exceptions import NotFittedError
from sklearn.mixture import GaussianMixture

from multicause import KMeans, MixtureOfGaussians, MixtureOfPoissons, fit_trials, load
from multicause.posteriors import Exact, OneHot
from multicause.priors import Categorical
from multicause.updates import WeightedMean

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
NAMES_OF_SCIKIT_LEARN = {"spherical": "spherical", "diagonal": "diag", "full": "full"}


def clusters(seed, n=300, offset=0.0):
    random = np.random.RandomState(seed)
    centres = random.normal(0, 3, (3, 4))
    labels = random.randint(3, size=n)
    return centres[labels] + random.normal(size=(n, 4)) * random.uniform(0.5, 1.5, 4) + offset


def covariances(model):
    """Σ_h as matrices, from the model's own form."""
    variance, D = model.noise_variance_, model.components_.shape[1]
    if variance.ndim == 1:
        return [v * np.eye(D) for v in variance]
    return [np.diag(v) for v in variance] if variance.ndim == 2 else list(variance)


def log_joint(model, X):
    """log γ_h p(x | h) by SciPy: (n, H)."""
    parts = zip(model.activity_, model.components_, covariances(model), strict=True)
    return np.stack([np.log(g) + stats.multivariate_normal.logpdf(X, m, c) for g, m, c in parts], axis=1)


@pytest.mark.parametrize("covariance", NAMES_OF_SCIKIT_LEARN)
def test_the_same_as_scikit_learn_from_the_same_start(covariance, seed):
    X = clusters(seed)
    H, D = 3, X.shape[1]
    init, activity, precision = X[[0, 100, 200]], np.array([0.2, 0.5, 0.3]), 1 / 1.5**2
    precisions = {
        "spherical": np.full(H, precision),
        "diagonal": np.full((H, D), precision),
        "full": np.stack([precision * np.eye(D)] * H),
    }
    ours = MixtureOfGaussians(
        H, covariance=covariance, init=init, activity=activity, noise_scale=1.5, max_iter=30, tol=0.0
    ).fit(X)
    theirs = GaussianMixture(
        H,
        covariance_type=NAMES_OF_SCIKIT_LEARN[covariance],
        means_init=init,
        weights_init=activity,
        precisions_init=precisions[covariance],
        reg_covar=0,
        max_iter=30,
        tol=0,
    ).fit(X)
    if theirs.covariances_.min() < 1e-4 and covariance != "full":
        pytest.skip("a cluster of one row: scikit-learn has no smallest variance")
    np.testing.assert_allclose(ours.score_samples(X), theirs.score_samples(X), atol=1e-6)
    np.testing.assert_allclose(ours.components_, theirs.means_, atol=1e-6)
    np.testing.assert_allclose(ours.noise_variance_, theirs.covariances_, atol=1e-6)
    np.testing.assert_allclose(ours.activity_, theirs.weights_, atol=1e-6)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-6)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))


@pytest.mark.parametrize("covariance", NAMES_OF_SCIKIT_LEARN)
def test_evidence_and_responsibilities_by_bayes(covariance, seed):
    X = clusters(seed)
    model = MixtureOfGaussians(3, covariance=covariance, max_iter=5, random_state=seed).fit(X)
    table = log_joint(model, X)
    np.testing.assert_allclose(model.score_samples(X), logsumexp(table, axis=1), rtol=1e-9)
    np.testing.assert_allclose(model.transform(X), np.exp(table - logsumexp(table, axis=1, keepdims=True)), atol=1e-9)
    best = model.recognize(X, top=1)
    np.testing.assert_array_equal(best.states[:, 0].argmax(axis=1), table.argmax(axis=1))
    np.testing.assert_allclose(model.reconstruct(X), model.transform(X) @ model.components_)


@pytest.mark.parametrize("covariance", NAMES_OF_SCIKIT_LEARN)
def test_an_offset_changes_nothing(covariance):
    """Squares are expanded around the data's mean, so that an offset of 1e6 costs no more digits than it must."""
    near = MixtureOfGaussians(3, covariance=covariance, init=clusters(0)[:3], max_iter=20).fit(clusters(0))
    far = MixtureOfGaussians(3, covariance=covariance, init=clusters(0, offset=1e6)[:3], max_iter=20)
    far.fit(clusters(0, offset=1e6))
    np.testing.assert_allclose(far.components_ - 1e6, near.components_, atol=1e-6)
    np.testing.assert_allclose(far.noise_variance_, near.noise_variance_, rtol=1e-5, atol=1e-6)


def test_fixed_means_have_variances_around_them():
    X, init = clusters(0), np.array([[0.0, 0, 0, 0], [3, 3, 3, 3]])
    model = MixtureOfGaussians(2, init=init, learn=("noise",), covariance="full", max_iter=1).fit(X)
    start = MixtureOfGaussians(2, init=init, learn=(), max_iter=1).fit(X)
    q = start.transform(X)
    for h in range(2):
        expected = (q[:, h, None] * (X - init[h])).T @ (X - init[h]) / q[:, h].sum()
        np.testing.assert_allclose(model.noise_variance_[h], expected, rtol=1e-9)
    np.testing.assert_array_equal(model.components_, init)


def test_poisson_mixture_by_bayes(seed):
    X = np.random.RandomState(seed).poisson([[1, 9, 4]] * 50 + [[8, 2, 4]] * 30).astype(float)
    model = MixtureOfPoissons(2, random_state=seed).fit(X)
    table = np.stack(
        [
            np.log(g) + stats.poisson.logpmf(X, m).sum(axis=1)
            for g, m in zip(model.activity_, model.components_, strict=True)
        ],
        axis=1,
    )
    np.testing.assert_allclose(model.score_samples(X), logsumexp(table, axis=1), rtol=1e-9)
    assert model.outcome_ == "converged"
    q = model.transform(X)  # at the optimum, rates are the means of the rows (TN10 eq. 10.3)
    np.testing.assert_allclose(model.components_, (q.T @ X) / q.sum(axis=0)[:, None], rtol=1e-2)


def test_enumerating_all_states_gives_the_same_as_the_one_hot_posterior():
    """States that the categorical prior forbids get no weight and no NaN, at any temperature."""
    import jax.numpy as jnp

    from multicause.arrays import double_precision
    from multicause.combinations import Sum
    from multicause.em.e_step import expect_one
    from multicause.model import Model
    from multicause.noises import Poisson
    from multicause.records import Block, Parameters

    X = np.random.RandomState(0).poisson(4, (12, 5)).astype(float)
    with double_precision():
        rows = jnp.asarray(X)
        block = Block(rows, jnp.ones(12), Poisson().summarize(rows))
        W = jnp.asarray(np.random.RandomState(1).uniform(1, 8, (3, 5)))
        parameters = Parameters(W, {"activity": jnp.asarray([0.2, 0.5, 0.3])}, {})
        for temperature in (1.0, 1.7):
            one, every = (
                expect_one(
                    Model(Categorical(), Sum(nonnegative=True), Poisson(), posterior, WeightedMean(), frozenset()),
                    block,
                    parameters,
                    jnp.asarray(temperature),
                )
                for posterior in (OneHot(), Exact())
            )
            for name in ("bound", "free_energy"):
                np.testing.assert_allclose(getattr(one, name), getattr(every, name), rtol=1e-10)
            np.testing.assert_allclose(one.components["cause_data"], every.components["cause_data"], rtol=1e-10)
            np.testing.assert_allclose(one.prior["active"], every.prior["active"], rtol=1e-10)


def test_k_means_equals_scikit_learns(seed):
    X = clusters(seed, offset=5.0)
    weights = np.random.RandomState(seed).uniform(0.1, 2, len(X))
    for sample_weight in (None, weights):
        ours = KMeans(5, init=X[:5]).fit(X, sample_weight=sample_weight)
        theirs = KMeansOfScikitLearn(5, init=X[:5], n_init=1, tol=0).fit(X, sample_weight=sample_weight)
        assert ours.inertia_ == pytest.approx(theirs.inertia_, rel=1e-9)
        np.testing.assert_array_equal(ours.predict(X), theirs.labels_)
        np.testing.assert_allclose(ours.components_, theirs.cluster_centers_, atol=1e-9)
        D, total = X.shape[1], len(X) if sample_weight is None else weights.sum()
        sigma2 = ours.inertia_ / (total * D)  # F at the end, from the inertia alone
        assert ours.lower_bound_ == pytest.approx(-np.log(5) - D / 2 * (np.log(2 * np.pi * sigma2) + 1), rel=1e-6)


def test_k_means_is_the_limit_of_a_mixture(seed):
    """TN10 §10.3: equal proportions and one variance that vanishes. Labels and centres agree."""
    X = clusters(seed)
    limit = KMeans(4, init=X[:4]).fit(X)
    mixture = MixtureOfGaussians(4, init=X[:4], noise_scale=1e-3, learn=("components",), max_iter=300, tol=1e-12).fit(X)
    np.testing.assert_array_equal(mixture.predict(X), limit.predict(X))
    np.testing.assert_allclose(mixture.components_, limit.components_, atol=1e-6)
    wide = MixtureOfGaussians(4, init=X[:4], noise_scale=3.0, learn=("components",)).fit(X)
    assert not np.allclose(wide.components_, limit.components_, atol=0.1)  # so the limit is one


@pytest.mark.parametrize("covariance", NAMES_OF_SCIKIT_LEARN)
def test_samples_have_the_clusters_moments(covariance, seed):
    """Within 6 standard errors of 20000 samples in some dozens of comparisons: false alarm below 1e-6."""
    model = MixtureOfGaussians(3, covariance=covariance, random_state=seed).fit(clusters(seed))
    X, causes = model.sample(20_000, random_state=seed)
    assert set(np.unique(causes)) == {0, 1}
    assert (causes.sum(axis=1) == 1).all()
    for h, expected in enumerate(covariances(model)):
        mine = X[causes[:, h] == 1]
        error = np.sqrt(np.diag(expected) / len(mine))
        assert (np.abs(mine.mean(axis=0) - model.components_[h]) < 6 * error).all()
        scale = np.sqrt(2 * np.outer(np.diag(expected), np.diag(expected)) / len(mine))
        assert (np.abs(np.cov(mine.T) - expected) < 6 * scale).all()


def test_a_cluster_of_one_row_keeps_the_smallest_variance():
    X = np.concatenate([clusters(0)[:30], [[500.0, 0, 0, 0]]])
    for covariance in NAMES_OF_SCIKIT_LEARN:
        model = MixtureOfGaussians(2, covariance=covariance, min_variance=0.01, init=X[[0, 30]]).fit(X)
        smallest = min(np.linalg.eigvalsh(c).min() for c in covariances(model))
        assert smallest == pytest.approx(0.01, rel=1e-6)
        assert np.isfinite(model.score(X))


def test_annealing_and_repair_words_work_for_mixtures():
    X = clusters(0)
    model = MixtureOfGaussians(3, annealing="auto", random_state=0, max_iter=100).fit(X)
    assert model.lower_bound_ >= MixtureOfGaussians(3, random_state=0).fit(X).lower_bound_ - 0.05


@pytest.mark.parametrize(
    ("estimator", "X", "text"),
    [
        (MixtureOfGaussians(5), np.eye(3), r"at least one row for each cause: n_components=5, but X has 3 rows. Lower"),
        (MixtureOfGaussians(2, init="pca"), np.eye(3), "Unknown init 'pca'. Known: 'kmeans\\+\\+'"),
        (MixtureOfGaussians(2, covariance="tied"), np.eye(3), "'covariance' parameter"),
        (MixtureOfGaussians(2, min_variance=-1.0), np.eye(3), "'min_variance' parameter"),
        (MixtureOfGaussians(2, activity=[0.5, 0.6]), np.eye(3), "positive and sum to one .* Divide it by its sum"),
        (MixtureOfGaussians(2, activity=[1.0]), np.eye(3), r"one proportion per cause, shape \(2,\); got shape \(1,\)"),
        (MixtureOfGaussians(2, learn=("means",)), np.eye(3), "learn must be a tuple of names from"),
        (MixtureOfPoissons(2), -np.eye(3), "Negative values in data: Poisson noise needs values of at least 0"),
        (MixtureOfGaussians(2), np.ones((4, 2)), r"All values of X are equal \(1\)"),
        (KMeans(2), np.ones((4, 2)), "All 4 rows of X that have a weight are equal"),
        (KMeans(2), [[np.nan, 1], [np.nan, 2]], "columns without any observed value"),
        (
            MixtureOfPoissons(2),
            1e30 * np.eye(3, dtype=np.float32),
            "too large to be squared in float32. Scale X down",
        ),
        (MixtureOfGaussians(2), 1e-200 * np.eye(3), "1e-200, is too small to be squared in float64. Scale X up"),
    ],
)
def test_errors(estimator, X, text):
    with pytest.raises(ValueError, match=text):
        estimator.fit(X)
    with pytest.raises(NotFittedError):
        estimator.predict(X)


def test_trials_in_bulk():
    sets = [clusters(seed) for seed in range(3)]
    alone = MixtureOfGaussians(3, random_state=1, max_iter=10, tol=0).fit(sets[1])
    found = fit_trials(MixtureOfGaussians(3, max_iter=10, tol=0), sets)
    np.testing.assert_allclose(found[1].components_, alone.components_)
    k_means = fit_trials(KMeans(3), sets)
    np.testing.assert_array_equal(k_means[2].components_, KMeans(3, random_state=2).fit(sets[2]).components_)


@pytest.mark.parametrize(("offset", "dtype"), [(1e8, np.float64), (3e3, np.float32)])
def test_k_means_of_data_far_from_zero(offset, dtype, tmp_path):
    """Distances have the digits that the data have, not those of their squares; inertia is never negative."""
    X = clusters(0, offset=offset).astype(dtype)
    ours = KMeans(5, init=X[:5]).fit(X)
    theirs = KMeansOfScikitLearn(5, init=X[:5].astype(float), n_init=1, tol=0).fit(X.astype(float))
    assert ours.inertia_ == pytest.approx(theirs.inertia_, rel=1e-3)
    np.testing.assert_array_equal(ours.predict(X), theirs.labels_)
    np.testing.assert_allclose(ours.components_, theirs.cluster_centers_, rtol=1e-6)
    np.testing.assert_allclose(ours.reconstruct(X), ours.components_[ours.predict(X)], rtol=1e-6)
    np.testing.assert_allclose(ours.inverse_transform(2 * np.eye(5)), 2 * ours.components_, rtol=1e-6)
    streamed = KMeans(5, init=X[:5]).partial_fit(X).partial_fit(X)
    assert np.abs(streamed.components_ - offset).max() < 20
    ours.save(tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").predict(X), ours.predict(X))
    assert KMeans(3, random_state=0).fit(np.repeat(X[:3], 4, axis=0)).inertia_ == 0
