"""Principal axes by eigendecomposition: of a covariance, of rows far from zero, and of a stream."""

import numpy as np
import pytest
from scipy import stats
from sklearn.decomposition import PCA

from multicause import PrincipalComponents
from multicause.records import Parameters
from multicause.solvers.principal_axes import principal_axes, rotated


def start(n_components, n_features):
    return Parameters(np.ones((n_components, n_features)), {"scale": np.ones(n_components)}, {"floor": np.array(1e-9)})


def test_axes_variances_and_bound_of_a_covariance(seed):
    """Their density is that of probabilistic PCA, whose bound is its mean log density over the data."""
    random = np.random.RandomState(seed)
    X = random.normal(size=(50, 5)) @ random.normal(size=(5, 5))
    X = X - X.mean(axis=0)
    found = principal_axes(X.T @ X / 50, start(2, 5))
    theirs = PCA(2).fit(X)
    W, scale, noise = found.parameters.components, found.parameters.prior["scale"], found.parameters.noise["variance"]
    np.testing.assert_allclose(np.abs(W @ theirs.components_.T), np.eye(2), atol=1e-9)
    np.testing.assert_allclose(found.variances, theirs.explained_variance_ * 49 / 50)
    np.testing.assert_allclose(noise, theirs.noise_variance_ * 49 / 50)
    density = stats.multivariate_normal(np.zeros(5), (W.T * scale**2) @ W + noise * np.eye(5))
    assert found.bound == pytest.approx(density.logpdf(X).mean())
    assert (np.take_along_axis(W, np.abs(W).argmax(axis=1)[:, None], axis=1) > 0).all()


def test_rotated_parameters_have_the_same_density(seed):
    random = np.random.RandomState(seed)
    before = start(3, 6)._replace(components=random.normal(size=(3, 6)), prior={"scale": random.uniform(1, 2, 3)})
    after = rotated(before)
    covariances = [(each.components.T * each.prior["scale"] ** 2) @ each.components for each in (before, after)]
    np.testing.assert_allclose(*covariances)
    np.testing.assert_allclose(after.components @ after.components.T, np.eye(3), atol=1e-12)
    assert (np.diff(after.prior["scale"]) < 0).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_principal_components_of_close_variances_far_from_zero(dtype, seed):
    """Variances that differ by 1 % along hidden axes, and an offset of 100 standard deviations."""
    random = np.random.RandomState(seed)
    axes, variances = np.linalg.qr(random.normal(size=(6, 6)))[0], 1.01 ** -np.arange(6)
    rows = random.normal(size=(300, 6))
    white = np.linalg.svd(rows - rows.mean(axis=0), full_matrices=False)[0] * np.sqrt(300)
    X = ((white * np.sqrt(variances)) @ axes.T + 100).astype(dtype)
    model = PrincipalComponents(3).fit(X)
    tolerance = 1e-9 if dtype == np.float64 else 1e-2
    np.testing.assert_allclose(np.abs(np.sum(model.components_ * axes.T[:3], axis=1)), 1, atol=tolerance)
    np.testing.assert_allclose(model.explained_variance_, variances[:3], rtol=1e-5)
    np.testing.assert_allclose(model.noise_variance_, variances[3:].mean(), rtol=1e-5)
    theirs = PCA(3).fit(X.astype(float))
    np.testing.assert_allclose(model.explained_variance_, theirs.explained_variance_ * 299 / 300, rtol=1e-5)


def test_a_stream_has_the_principal_components_and_the_bound_of_all_its_rows(seed):
    """Batches of different sizes and weights, with a mean that moves; and no attributes that ``fit`` does not leave."""
    random = np.random.RandomState(seed)
    X, weights = random.normal(size=(400, 8)) @ random.normal(size=(8, 8)) + 5, random.uniform(0.1, 2, 400)
    X[250:] += 3
    whole, stream = PrincipalComponents(2).fit(X, sample_weight=weights), PrincipalComponents(2)
    bounds = []
    for rows in (slice(0, 50), slice(50, 250), slice(250, 400)):
        stream.partial_fit(X[rows], sample_weight=weights[rows])
        bounds.append(stream.score(X[: rows.stop], sample_weight=weights[: rows.stop]))
    np.testing.assert_allclose(stream.components_, whole.components_, atol=1e-9)
    np.testing.assert_allclose(stream.explained_variance_, whole.explained_variance_, rtol=1e-9)
    assert stream.lower_bound_ == pytest.approx(whole.lower_bound_, rel=1e-10)
    assert whole.lower_bound_ == pytest.approx(whole.score(X, sample_weight=weights), rel=1e-10)
    np.testing.assert_allclose(stream.lower_bounds_, bounds, rtol=1e-10)
    assert stream.n_iter_ == 3
    assert vars(stream).keys() == vars(whole).keys()
