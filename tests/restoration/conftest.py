"""A small image, with noise and without some of its pixels, which tests of restoration share."""

import numpy as np
import pytest

# All calls share these, and with them their compiled programs.
QUICK = {"patch_size": 6, "n_components": 24, "max_iter": 8, "random_state": 0}
N_SAMPLES = 4500  # of recordings
WORDS = ("--patch-size", 6, "--components", 24, "--iterations", 8)


def synthetic_image(side=48):
    """Return stripes beside a disc on a ramp, between 60 and 220."""
    y, x = np.mgrid[:side, :side] / side
    stripes = np.where(np.sin(12 * np.pi * y) > 0, 60, 200)
    disc = np.where((x - 0.7) ** 2 + (y - 0.5) ** 2 < 0.04, 220, 60 + 60 * y)
    return np.where(x < 0.45, stripes, disc).astype(float)


def psnr(image, clean):
    """Return the peak signal-to-noise ratio in dB for a range of 255."""
    return 10 * np.log10(255**2 / np.mean((image - clean) ** 2))


@pytest.fixture(scope="module")
def clean():
    return synthetic_image()


@pytest.fixture(scope="module")
def noisy(clean):
    return clean + 25 * np.random.RandomState(0).normal(size=clean.shape)


@pytest.fixture(scope="module")
def lost(clean):
    return np.random.RandomState(1).uniform(size=clean.shape) < 0.4
