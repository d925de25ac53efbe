"""Missing values of the classical models, in files and on clusters, and errors that say what can be done."""

import warnings
from itertools import product

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit, logsumexp
from sklearn.utils import get_tags

import multicause
from multicause import (
    EnergyComponents,
    FactorAnalysis,
    HelmholtzMachine,
    IndependentComponents,
    KMeans,
    LinearCauses,
    MaximalCauses,
    MixtureOfGaussians,
    MixtureOfPoissons,
    PrincipalComponents,
    RestrictedMaximalCauses,
    SoftmaxNetwork,
    SparseCoding,
)
from multicause.app.report import write_report
from multicause.callbacks import Checkpoint
from multicause.datasets import make_bars
from multicause.engines import Local
from multicause.metrics import reconstruction_quality, recovered_causes
from multicause.posteriors import Preselected, Truncated

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
EMPTY = 5


def with_gaps(X, share=0.35, seed=0):
    """Rows of which some values are NaN, and one row without any value."""
    gaps = np.random.RandomState(seed).uniform(size=X.shape) < share
    gaps[EMPTY] = True
    return np.where(gaps, np.nan, X).astype(X.dtype)


def two_clusters(n=60):
    random = np.random.RandomState(0)
    mixing = random.normal(size=(3, 3))
    first = random.multivariate_normal([100, 104, 98], mixing @ mixing.T + np.eye(3), n)
    return np.concatenate([first, random.normal([97, 99, 103], 1, (n, 3))])


def factors(n=120):
    random = np.random.RandomState(0)
    return 50 + random.normal(size=(n, 2)) @ random.normal(size=(2, 5)) * 2 + random.normal(size=(n, 5)) * 0.5


def normal_density(Y, mean, covariance):
    """log N of the observed values of each row."""
    found = np.zeros(len(Y))
    for n, y in enumerate(Y):
        seen = ~np.isnan(y)
        if seen.any():
            found[n] = stats.multivariate_normal.logpdf(y[seen], mean[seen], covariance[np.ix_(seen, seen)])
    return found


# ------------------------------------------------------------------------------------------------- mixtures


@pytest.mark.parametrize("covariance", ["spherical", "diagonal", "full"])
def test_mixture_of_gaussians(covariance):
    X = two_clusters()
    Y = with_gaps(X)
    model = MixtureOfGaussians(2, covariance=covariance, max_iter=30, tol=0, random_state=0).fit(Y)
    table = []
    for mean, variance, share in zip(model.components_, model.noise_variance_, model.activity_, strict=True):
        matrix = variance if covariance == "full" else np.diag(np.broadcast_to(variance, 3))
        table.append(np.log(share) + normal_density(Y, mean, matrix))
    expected = logsumexp(table, axis=0)
    np.testing.assert_allclose(model.score_samples(Y), expected, rtol=1e-10, atol=1e-10)
    assert np.diff(model.lower_bounds_).min() > -1e-12 * np.abs(expected).max()
    np.testing.assert_allclose(model.transform(Y)[EMPTY], model.activity_, atol=1e-10)
    np.testing.assert_allclose(model.transform(np.concatenate([X[:3], Y]))[:3], model.transform(X[:3]), atol=1e-10)
    whole, absent = model.impute(Y), np.isnan(Y)
    assert np.mean((whole - X)[absent] ** 2) < np.mean((np.nanmean(Y, axis=0) - X)[absent] ** 2)
    mixed = MixtureOfGaussians(2, covariance=covariance, random_state=0).partial_fit(X).partial_fit(Y)
    assert np.isfinite(mixed.components_).all()


def test_full_covariances_impute_the_conditional_mean():
    Y = with_gaps(two_clusters())
    model = MixtureOfGaussians(1, covariance="full", max_iter=20, random_state=0).fit(Y)
    mean, covariance = model.components_[0], model.noise_variance_[0]
    whole = model.impute(Y)
    for y, filled in zip(Y, whole, strict=True):
        seen = ~np.isnan(y)
        slope = covariance[np.ix_(~seen, seen)] @ np.linalg.inv(covariance[np.ix_(seen, seen)])
        np.testing.assert_allclose(filled[~seen], mean[~seen] + slope @ (y[seen] - mean[seen]), rtol=1e-9)


def test_mixture_of_poissons_and_k_means():
    X = np.random.RandomState(0).poisson([[1, 9, 3]] * 40 + [[8, 2, 4]] * 40).astype(float)
    Y = with_gaps(X)
    model = MixtureOfPoissons(2, max_iter=10, tol=0, random_state=0).fit(Y)
    table = [
        np.log(share) + np.nansum(stats.poisson.logpmf(Y, rates), axis=1)
        for rates, share in zip(model.components_, model.activity_, strict=True)
    ]
    np.testing.assert_allclose(model.score_samples(Y), logsumexp(table, axis=0), rtol=1e-10, atol=1e-10)
    assert np.diff(model.lower_bounds_).min() > -1e-12
    clusters = KMeans(2, random_state=0).fit(Y)
    distances = np.nansum((Y[:, None] - clusters.components_) ** 2, axis=2)
    np.testing.assert_array_equal(clusters.predict(Y), distances.argmin(axis=1))
    assert clusters.inertia_ == pytest.approx(distances.min(axis=1).sum())
    for h, centre in enumerate(clusters.components_):
        np.testing.assert_allclose(centre, np.nanmean(Y[clusters.predict(Y) == h], axis=0))


# --------------------------------------------------------------------------------------------- real causes


@pytest.mark.parametrize("estimator", [FactorAnalysis, PrincipalComponents])
def test_gaussian_factors(estimator, tmp_path):
    X = factors()
    Y = with_gaps(X)
    model = estimator(2, random_state=0).fit(Y)
    covariance = (model.components_.T * model.activity_**2) @ model.components_
    covariance += np.diag(np.broadcast_to(model.noise_variance_, 5))
    np.testing.assert_allclose(model.score_samples(Y), normal_density(Y, model.mean_, covariance), rtol=1e-9, atol=1e-9)
    assert np.diff(model.lower_bounds_).min() > -1e-10
    assert model.lower_bound_ == pytest.approx(model.score(Y))
    np.testing.assert_allclose(model.transform(Y)[EMPTY], 0, atol=1e-12)
    np.testing.assert_allclose(model.impute(Y)[EMPTY], model.mean_)
    np.testing.assert_allclose(model.transform(np.concatenate([X[:3], Y]))[:3], model.transform(X[:3]), atol=1e-8)
    # At the maximum of the likelihood, no mean is better than the one that was learned.
    for shift in 1e-3 * np.eye(5):
        for other in (model.mean_ + shift, model.mean_ - shift):
            assert normal_density(Y, other, covariance).sum() < normal_density(Y, model.mean_, covariance).sum()
    model.save(tmp_path / "model.mc")
    loaded = multicause.load(tmp_path / "model.mc")
    np.testing.assert_array_equal(loaded.impute(Y), model.impute(Y))
    for first, then in ((Y, Y), (X, Y), (Y, X)):
        stream = estimator(2, random_state=0).partial_fit(first).partial_fit(then)
        assert np.isfinite(stream.components_).all()
    assert estimator is FactorAnalysis or stream.score(X) > model.score(X) - 0.5


def test_principal_axes_are_orthonormal_and_ordered():
    model = PrincipalComponents(2).fit(with_gaps(factors()))
    np.testing.assert_allclose(model.components_ @ model.components_.T, np.eye(2), atol=1e-10)
    assert model.explained_variance_[0] > model.explained_variance_[1]


def test_a_mask_of_nothing_is_the_closed_form_of_principal_components():
    """One missing value in many rows hardly changes the axes, though EM finds them instead of an eigenvector."""
    X = factors(400)
    Y = X.copy()
    Y[0, 0] = np.nan
    masked, plain = (PrincipalComponents(2).fit(rows) for rows in (Y, X))
    np.testing.assert_allclose(masked.components_, plain.components_, atol=0.01)
    np.testing.assert_allclose(masked.noise_variance_, plain.noise_variance_, rtol=0.02)


def test_sparse_coding():
    X = np.random.RandomState(0).laplace(size=(100, 4))
    Y = with_gaps(X)
    model = SparseCoding(5, max_iter=4, tol=0, random_state=0).fit(Y)
    np.testing.assert_allclose(model.transform(Y)[EMPTY], 0, atol=1e-6)
    causes = model.transform(Y)
    apart = np.nan_to_num(Y - causes @ model.components_)
    slope = apart @ model.components_.T / model.noise_variance_
    # At the most probable causes, the slope of the likelihood does not exceed that of the Laplace prior.
    assert (np.abs(slope) <= 1 / model.activity_ * 1.01).all()
    assert np.isfinite(model.partial_fit(Y).components_).all()


@pytest.mark.parametrize("higher", [(), (2,)])
def test_helmholtz_machine(higher):
    X = make_bars(60, size=3, value=1.0, noise=None, random_state=0).data
    Y = with_gaps(X)
    model = HelmholtzMachine(3, higher=higher, max_iter=3, tol=0, random_state=0).fit(Y)
    assert np.isfinite(model.lower_bounds_).all()
    np.testing.assert_allclose(model.score_samples(np.concatenate([X[:3], Y]))[:3], model.score_samples(X[:3]))
    assert np.isfinite(model.impute(Y)).all()
    if higher:
        return
    parameters, states = model._parameters, np.array(list(product((0, 1), repeat=3)))
    bias, logits = parameters.prior["bias_1"], states @ model.components_ + model.bias_
    log_prior = np.sum(states * bias - np.logaddexp(0, bias), axis=1)
    terms = Y[:, None] * logits - np.logaddexp(0, logits)
    log_joint = np.nansum(terms, axis=2) + log_prior
    np.testing.assert_allclose(model.transform(Y)[EMPTY], expit(bias))
    # Estimates from 20 samples of a recognition network that has hardly learned yet.
    np.testing.assert_allclose(model.score_samples(Y).mean(), logsumexp(log_joint, axis=1).mean(), atol=0.05)
    np.testing.assert_array_equal(model.recognize(Y, top=1).states[:, 0], states[log_joint.argmax(axis=1)])


# ------------------------------------------------------------------------------------- engines and the rest


def counts(n=1200):
    return with_gaps(make_bars(n, noise="poisson", random_state=0).data.astype(np.float32))


PLAIN = {"annealing": None, "repair": False, "max_iter": 3, "tol": 0, "random_state": 0}


@pytest.mark.parametrize(
    "model",
    [
        MaximalCauses(6, noise="poisson", posterior=Preselected(4, 2), **PLAIN),
        KMeans(4, max_iter=3, random_state=0),
        FactorAnalysis(2, max_iter=3, random_state=0),
    ],
    ids=["candidates", "k-means", "factors"],
)
def test_rows_on_disk_give_the_same(model, tmp_path):
    X = counts(6000)
    np.save(tmp_path / "rows.npy", X)
    stored, small = np.load(tmp_path / "rows.npy", mmap_mode="r"), Local(memory_budget="512KiB", n_jobs=1)
    assert small.source(stored) is not None
    here, there = (model.__class__(**{**model.get_params(deep=False), "engine": small}).fit(Y) for Y in (X, stored))
    np.testing.assert_allclose(there.lower_bounds_, here.lower_bounds_, rtol=1e-5)
    np.testing.assert_allclose(there.impute(stored), here.impute(X), rtol=1e-2, atol=1e-2)


def test_a_cluster_gives_the_same():
    dask_array = pytest.importorskip("dask.array", reason="dask is not installed")
    distributed = pytest.importorskip("distributed", reason="distributed is not installed")
    X = counts(600).astype(float)
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=2, processes=False, protocol="tcp", host="127.0.0.1", dashboard_address=None
        ) as cluster,
        distributed.Client(cluster),
    ):
        rows = dask_array.from_array(X, chunks=(200, 25))
        here, there = (MaximalCauses(5, noise="poisson", **PLAIN).fit(Y) for Y in (X, rows))
        np.testing.assert_allclose(there.components_, here.components_, rtol=1e-6)
        np.testing.assert_allclose(there.impute(rows).compute(), here.impute(X), rtol=1e-6)
        with pytest.raises(ValueError, match="Input X contains NaN: row .* of block .* IndependentComponents whitens"):
            IndependentComponents().fit(rows)


def test_search_repair_and_every_posterior():
    X = with_gaps(make_bars(300, size=3, noise="gaussian", noise_scale=1.0, random_state=0).data, 0.3)
    for posterior in (None, Preselected(4, 2), Preselected(4, 2, selection="upper_bound"), Truncated(2)):
        model = MaximalCauses(6, posterior=posterior, max_iter=40, random_state=0).fit(X)
        assert np.isfinite(model.lower_bound_)
        assert np.isfinite(model.impute(X)).all()
        assert 0 < model.is_explained(X).mean() <= 1
    restricted = RestrictedMaximalCauses(6, max_iter=40, random_state=0).fit(np.maximum(X, 0))
    np.testing.assert_allclose(restricted.components_.sum(axis=1), restricted.total_)
    for init in ("data", "mean", KMeans(6, max_iter=2, random_state=0)):
        assert np.isfinite(MaximalCauses(6, init=init, **PLAIN).fit(np.maximum(X, 0)).lower_bound_)


def test_resume(tmp_path):
    X = counts(300)
    settings = {"noise": "poisson", "random_state": 0, "max_iter": 6, "tol": 0, "annealing": None, "repair": False}
    whole = MaximalCauses(5, **settings).fit(X)
    stopping = MaximalCauses(5, **settings)
    stopping.set_callbacks(Checkpoint(tmp_path, every=4))
    stopping.fit(X)
    resumed = MaximalCauses(5, **settings).fit(X, resume=tmp_path)
    np.testing.assert_array_equal(resumed.components_, whole.components_)


def test_report_and_quality(tmp_path):
    X = counts(60)
    model = MaximalCauses(5, noise="poisson", **PLAIN).fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        write_report(model, X, tmp_path / "report.html", image_shape=(5, 5))
        quality = reconstruction_quality(model, X)
    assert f"{int(np.isnan(X).sum())} of 1,500, shown as imputed" in (tmp_path / "report.html").read_text()
    apart, usual = X - model.reconstruct(X), X - np.nanmean(X, axis=0)
    assert quality.r2 == pytest.approx(1 - np.nansum(apart**2) / np.nansum(usual**2), rel=1e-4)


def test_offsets_cost_no_digits():
    """Sums of causes are scored by pairs of components near zero, and by means far from it."""
    X = make_bars(80, size=3, combination="sum", noise="gaussian", noise_scale=1.0, random_state=0).data
    Y = with_gaps(X)
    init = np.random.RandomState(0).normal(size=(3, X.shape[1]))
    near = LinearCauses(3, init=init, **PLAIN).fit(Y)
    # A cause that is always on, nearly, carries the offset.
    far = LinearCauses(4, init=np.vstack([init, np.full(9, 1e6)]), activity=[0.5, 0.5, 0.5, 1 - 1e-6], **PLAIN)
    far.fit(Y + 1e6)
    assert far.lower_bound_ > near.lower_bound_ - 1


# --------------------------------------------------------------------------------------------------- errors


def test_masked_values_are_missing():
    counts = np.random.RandomState(0).poisson(3, size=(60, 4))
    mask = np.random.RandomState(1).uniform(size=counts.shape) < 0.1
    masked, gaps = np.ma.MaskedArray(counts, mask), np.where(mask, np.nan, counts)
    model = PrincipalComponents(2).fit(gaps)
    np.testing.assert_array_equal(PrincipalComponents(2).fit(masked).components_, model.components_)
    np.testing.assert_array_equal(model.transform(masked), model.transform(gaps))


def test_columns_without_any_value_are_named():
    X = two_clusters()
    X[:, 1] = np.nan
    for model in (MaximalCauses(2), MixtureOfGaussians(2), FactorAnalysis(1), KMeans(2)):
        with pytest.raises(ValueError, match="X has columns without any observed value: 1, of 3 columns"):
            model.fit(X)
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    with pytest.raises(ValueError, match="without any observed value: 'two'"):
        KMeans(2).fit(pandas.DataFrame(X, columns=["one", "two", "three"]))
    X = two_clusters()
    X[10:, 1] = np.nan
    with pytest.raises(ValueError, match="or those of all rows with a positive weight"):
        KMeans(2).fit(X, sample_weight=np.arange(len(X)) >= 10)


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (IndependentComponents(), "whitens data"),
        (EnergyComponents(2), "complete rows"),
        (SoftmaxNetwork(2), "complete rows"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_models_that_need_all_values_say_so(model, reason):
    X = with_gaps(two_clusters())
    with pytest.raises(
        ValueError, match=f"Input X contains NaN: row 4, column 2.*{reason}.* MaximalCauses, LinearCauses"
    ):
        model.fit(X)
    assert not get_tags(model).input_tags.allow_nan


@pytest.mark.parametrize("model", [MaximalCauses(2), LinearCauses(2), KMeans(2), FactorAnalysis(1), SparseCoding(2)])
def test_infinity_is_refused(model):
    assert get_tags(model).input_tags.allow_nan
    X = with_gaps(two_clusters())
    X[7, 1] = np.inf
    with pytest.raises(ValueError, match="infinity"):
        model.fit(X)


def test_values_are_checked_beside_missing_ones():
    X = with_gaps(np.random.RandomState(0).poisson(3, (20, 4)).astype(float))
    X[0, :] = -0.5
    with pytest.raises(ValueError, match="Poisson noise needs values of at least 0"):
        MaximalCauses(2, noise="poisson").fit(X)
    with pytest.raises(ValueError, match="Binary data are needed"):
        HelmholtzMachine(2).fit(with_gaps(two_clusters()))


# ------------------------------------------------------------------------------------------------- recovery


def test_bars_are_found_though_half_of_all_pixels_are_missing():
    """Bars, Poisson noise, defaults: in all of three trials, as in all of twenty that were run by hand."""
    for seed in range(3):
        bars = make_bars(500, size=4, noise="poisson", random_state=seed)
        X = np.where(np.random.RandomState(seed).uniform(size=bars.data.shape) < 0.5, np.nan, bars.data)
        model = MaximalCauses(8, noise="poisson", random_state=seed).fit(X)
        assert recovered_causes(model, bars.causes).all_found
