"""Recordings without steady noise, and recordings and settings that are refused."""

import numpy as np
import pytest

from multicause.restoration import denoise_sound, restorer
from multicause.restoration.passes import restore_patches
from tests.restoration.conftest import N_SAMPLES, QUICK

# Recordings are restored in many strips: that takes longer than to compile programs well.
pytestmark = pytest.mark.usefixtures("optimized")


@pytest.fixture(scope="module")
def tones():
    # As long as the recording of the command line's test, so that both share their programs.
    rate = 4000
    time = np.arange(N_SAMPLES) / rate
    return np.sin(2 * np.pi * 440 * time) * (time % 0.5 < 0.25) + np.sin(2 * np.pi * 1300 * time) * (time % 0.7 > 0.4)


@pytest.fixture(scope="module")
def recording(tones):
    return tones + 0.3 * np.random.RandomState(0).normal(size=len(tones))


def test_steady_noise_of_a_recording_is_removed(tones, recording):
    noisy, found = recording, denoise_sound(recording, **QUICK)
    assert found.shape == noisy.shape
    assert np.mean((found - tones) ** 2) < 0.3 * np.mean((noisy - tones) ** 2)


def test_strips_within_a_memory_budget_give_the_same_recording(recording, monkeypatch):
    """In each pass over the spectrogram: learning for the second one would amplify differences by rounding."""
    n_strips = []

    def in_strips_and_whole(*arguments, memory, progress, **settings):
        strips = []
        found = restore_patches(*arguments, memory=memory, progress=strips.append, **settings)
        whole = restore_patches(*arguments, memory=2**30, progress=progress, **settings)
        np.testing.assert_allclose(found.image, whole.image, atol=1e-6 * np.abs(whole.image).max())
        np.testing.assert_allclose(found.variance, whole.variance, rtol=1e-5)
        n_strips.append(len(strips))
        return found

    monkeypatch.setattr(restorer, "restore_patches", in_strips_and_whole)
    denoise_sound(recording, **QUICK, memory_budget="256KiB")
    assert len(n_strips) == 2
    assert min(n_strips) > 10


def test_silence_stays():
    np.testing.assert_array_equal(denoise_sound(np.zeros(9000, np.int16)), np.zeros(9000))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"window": 2}, "window must be a whole number of at least 4; got 2"),
        ({"window": 8}, "A window of 8 samples has 5 frequencies, fewer than the 8 of a patch"),
        ({"patch_size": None}, "patch_size must be a whole number of at least 2; got None"),
        ({"memory_budget": "much"}, "memory size"),
        ({"max_iter": 0}, "max_iter must be a whole number of at least 1; got 0"),
    ],
)
def test_settings_of_recordings_that_make_no_sense(settings, message):
    with pytest.raises(ValueError, match=message):
        denoise_sound(np.ones(9000), **settings)


@pytest.mark.parametrize(
    ("samples", "message"),
    [
        (np.zeros(100), "The recording has 100 samples; at least 4096"),
        (np.where(np.arange(9000) == 5, np.nan, 0.1), "1 values that are NaN or infinite"),
        (np.zeros((9000, 2, 2)), "samples must be real numbers of shape"),
    ],
)
def test_recordings_that_cannot_be_denoised(samples, message):
    with pytest.raises(ValueError, match=message):
        denoise_sound(samples)
