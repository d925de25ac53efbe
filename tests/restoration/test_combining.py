"""Combination of two restorations: closed forms of the best mixture, and regions in which one of them is better."""

import numpy as np
import pytest
from scipy.ndimage import uniform_filter

from multicause.restoration.combining import WINDOW, Estimate, combine
from tests.restoration.conftest import psnr

SIGMA = 2.0


def constant(value, image):
    return np.full((*image.shape[:2], 1), value)


@pytest.mark.parametrize("n_channels", [1, 3])
def test_the_noisy_image_and_a_black_one_are_mixed_by_wieners_factor(n_channels):
    # Without structure in space, the best factor of y is S / (S + σ²); the weight of zeros is the rest, σ² / ⟨y²⟩.
    random = np.random.RandomState(0)
    clean = 3 * random.normal(size=(300, 300, n_channels))
    noisy = clean + SIGMA * random.normal(size=clean.shape)
    kept, nothing = Estimate(noisy, constant(1.0, noisy)), Estimate(np.zeros_like(noisy), constant(0.0, noisy))
    mixed, best = combine([kept, nothing], noisy, SIGMA**2)
    weight = np.mean(1 - mixed / noisy)
    assert best == 0
    # ⟨y²⟩ in a window has a relative standard deviation of √(2 / (4π · 9)); inverses of such means are larger by 1.8 %.
    n_effective = 4 * np.pi * WINDOW**2 * n_channels
    assert weight == pytest.approx(SIGMA**2 / (9 + SIGMA**2) * (1 + 2 / n_effective), rel=0.01)
    reversed_mix, best = combine([nothing, kept], noisy, SIGMA**2)
    np.testing.assert_allclose(reversed_mix, mixed, atol=1e-9)
    assert best == 1


def test_each_region_takes_the_estimate_that_is_better_there():
    random = np.random.RandomState(1)
    clean = np.zeros((120, 160, 1))
    clean[:, 80:] = 8 * random.normal(size=(120, 80, 1))  # detail on the right
    noisy = clean + SIGMA * random.normal(size=clean.shape)
    smooth = uniform_filter(noisy, size=(7, 7, 1))
    kept, averaged = Estimate(noisy, constant(1.0, noisy)), Estimate(smooth, constant(1 / 49, noisy))
    mixed, _ = combine([kept, averaged], noisy, SIGMA**2)
    assert psnr(mixed, clean) > max(psnr(noisy, clean), psnr(smooth, clean)) + 1
    inner = slice(10, -10)
    left, right = (np.mean((mixed - clean)[inner, part] ** 2) for part in (slice(10, 70), slice(90, 150)))
    assert left < 0.1 * SIGMA**2  # nearly the mean of 49 pixels
    assert right == pytest.approx(SIGMA**2, rel=0.15)  # nearly the noisy image


def test_equal_estimates_stay_as_they_are():
    image = np.random.RandomState(0).normal(size=(20, 20, 1)).astype(np.float32)
    one = Estimate(image, constant(1.0, image))
    for estimates in ([one], [one, one]):
        mixed, best = combine(estimates, image + 1, 1.0)
        np.testing.assert_array_equal(mixed, image)
        assert mixed.dtype == np.float32
        assert best == 0
