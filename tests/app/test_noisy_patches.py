"""Noisy images: posterior means of patches whose contrast is unknown, and `multicause reconstruct` against a blur."""

import warnings

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter
from scipy.stats import multivariate_normal

from multicause import EnergyComponents, KMeans, PrincipalComponents
from multicause.app.noisy_patches import CONTRASTS, NoisyPatches
from multicause.app.preparation import PreparedModel, RowPreparation
from multicause.datasets import make_patches
from multicause.datasets.overlap import reconstruct_image
from multicause.restoration import estimate_noise_level
from tests.app.cli.calls import call, result_of


@pytest.fixture(scope="module")
def photographs():
    data = pytest.importorskip("skimage.data", reason="scikit-image is not installed")
    return data.coins()[:128, :128] / 255.0, data.camera()[100:196, 200:296] / 255.0


@pytest.fixture(scope="module")
def centred(photographs):
    """Model of centred patches of one of the photographs."""
    rows = make_patches(photographs[0], 1000, shape=(6, 6), random_state=0).data
    rows = rows - rows.mean(axis=1, keepdims=True)
    return PreparedModel(PrincipalComponents(9, random_state=0).fit(rows), RowPreparation(center=True))


def decibels(clean, found):
    return -10 * np.log10(np.mean((clean - found) ** 2))


def test_reconstructions_are_means_over_contrasts(centred):
    """Each contrast by conditioning of dense normal densities, in the space without row means."""
    random = np.random.RandomState(0)
    rows, sigma = random.normal(3, 1, size=(50, 36)), 0.7
    found = NoisyPatches(centred, sigma, rows)
    means = centred.inverse_transform(centred.sample(10_000, random_state=0)[1])
    offset, C = means.mean(axis=0), np.cov(means.T)
    values, axes = np.linalg.eigh(C)
    model_axes = axes[:, -9:]
    basis = np.linalg.svd(np.eye(36) - 1 / 36)[0][:, :35]  # orthogonal to constant patches
    beside = basis @ basis.T - model_axes @ model_axes.T
    centred_rows = rows - rows.mean(axis=1, keepdims=True) - offset
    details = max(0.0, float((centred_rows @ beside * centred_rows).sum() / 50 / 26 - sigma**2))
    assert details > 0
    signal = basis.T @ ((model_axes * values[-9:]) @ model_axes.T + details * beside) @ basis
    y = centred_rows @ basis
    covariances = [z * signal + sigma**2 * np.eye(35) for z in CONTRASTS]
    scores = np.stack([multivariate_normal(cov=each).logpdf(y) for each in covariances], axis=1)
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    each = [z * y @ np.linalg.solve(cov, signal) for z, cov in zip(CONTRASTS, covariances, strict=True)]
    expected = np.einsum("nz,znd->nd", weights, each) @ basis.T + offset + rows.mean(axis=1, keepdims=True)
    np.testing.assert_allclose(found.reconstruct(rows), expected, atol=1e-8)


@pytest.mark.parametrize("sigma", [0.03, 0.1])
def test_noise_is_removed_better_than_by_the_best_blur(centred, photographs, sigma):
    clean = photographs[1]
    noisy = np.clip(clean + np.random.RandomState(0).normal(0, sigma, clean.shape), 0, 1)
    level = 10 * estimate_noise_level(noisy) / (noisy.max() - noisy.min())
    rows = make_patches(noisy, 1000, shape=(6, 6), random_state=0).data
    found = decibels(clean, reconstruct_image(NoisyPatches(centred, level, rows), noisy, (6, 6)))
    blur = max(decibels(clean, gaussian_filter(noisy, width)) for width in np.arange(0.3, 2, 0.1))
    assert found > blur + 0.3
    assert found > decibels(clean, noisy) + 1


def test_only_causes_with_a_strength_are_suitable(centred):
    assert centred.adds_strengths
    rows = np.random.RandomState(0).normal(size=(8, 4))
    for model in (KMeans(2, max_iter=1, n_init=1), EnergyComponents(4, max_iter=1)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert not model.fit(rows).adds_strengths


def test_the_command_removes_noise_unless_told_otherwise(photographs, tmp_path):
    from skimage.io import imread, imsave

    clean = photographs[1]
    noisy = np.clip(clean + np.random.RandomState(0).normal(0, 0.1, clean.shape), 0, 1)
    for name, image in {"coins": photographs[0], "noisy": noisy}.items():
        imsave(tmp_path / f"{name}.png", np.rint(255 * image).astype(np.uint8), check_contrast=False)
    options = ["--patches", "6x6", "--count", 500, "--components", 9, "--no-report"]
    result_of("fit", tmp_path / "coins.png", *options, "--model", "pca", "--center", "--out", tmp_path / "run")
    levels, found = [], []
    for text in ("auto", "0.1", "none"):
        words = ["reconstruct", tmp_path / "run", tmp_path / "noisy.png", "--noise-level", text]
        levels += result_of(*words, "--out", tmp_path / f"{text}.png")["noise_levels"]
        found.append(decibels(clean, imread(tmp_path / f"{text}.png") / 255))
    assert levels[0] == pytest.approx(estimate_noise_level(np.rint(255 * noisy) / 255))
    assert levels[1:] == [0.1, None]
    assert found[0] > max(decibels(clean, gaussian_filter(noisy, width)) for width in np.arange(0.3, 2, 0.1))
    assert found[0] > found[2] + 1
    run = call(*words[:3], "--noise-level", "much", "--out", tmp_path / "not.png")
    assert run.exit_code == 2
    assert "--noise-level must be 'auto', 'none' or a number from 0, of which 1 is white; got 'much'." in run.stderr
