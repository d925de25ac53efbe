"""The level of white noise, estimated from an image."""

import numpy as np
import pytest

from multicause.restoration import estimate_noise_level


def test_noise_level_of_white_noise_with_missing_pixels():
    # The median of n values has a relative standard error of about 1.2/√n here; the limit is six of them.
    noise = 3 * np.random.RandomState(0).normal(size=(200, 200))
    noise[::7, ::5] = np.nan
    assert estimate_noise_level(noise) == pytest.approx(3, rel=0.05)


def test_noise_level_of_whole_numbers():
    noise = np.rint(np.random.RandomState(0).normal(128, 10, (100, 100)))
    assert estimate_noise_level(noise.astype(np.uint8)) == estimate_noise_level(noise)
