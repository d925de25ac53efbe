"""Denoising of recordings: amplitudes follow from patches of the spectrogram, phases are those of the recording."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral

import numpy as np
from numpy.typing import ArrayLike
from scipy.signal import istft, stft
from sklearn.utils import check_random_state

from multicause.arrays import bytes_from
from multicause.restoration.denoising import denoise
from multicause.restoration.restorer import RestorationSettings

# exp ⟨log p⟩ of an exponential variable p of mean one, as the power of noise is, with Euler's constant.
LOG_BIAS = float(np.exp(-np.euler_gamma))
# Noise is estimated from the quietest part of the time at each frequency.
QUIETEST = 0.25
# Share of the amplitude of the noise that is kept, because complete silence sounds unnatural.
FLOOR = 0.1
# Amplitudes below this share of the largest one are replaced by it, which bounds the logarithm.
SILENCE = 1e-6


def denoise_sound(
    samples: ArrayLike,
    *,
    window: int = 512,
    patch_size: int = 8,
    n_components: int = 128,
    max_iter: int = 30,
    memory_budget: int | str = "1GiB",
    random_state: int | np.random.RandomState | None = None,
    progress: Callable[[float, str], None] | None = None,
) -> np.ndarray:
    """Remove steady noise, such as hiss and hum, from a recording.

    The logarithm of the recording's spectrogram is denoised as an image is (:func:`denoise_image`), which gives the
    expected power P of each frequency at each time. The noise's power N is that of each frequency in its quietest
    quarter of the time, so that there should be pauses. Amplitudes are multiplied by 1 − N/P, which is Wiener's
    filter, and overlapping windows are added up with the phases of the recording.

    Parameters
    ----------
    samples : array-like of shape (n_samples,) or (n_samples, n_channels)
        A recording, of at least ``patch_size`` windows. Channels are restored one by one.
    window : int, default=512
        Samples of a window, of which three quarters overlap with the next: about 10 to 30 milliseconds for speech.
    patch_size : int, default=8
        Frequencies and windows of a patch of the spectrogram.
    n_components, max_iter, memory_budget, random_state, progress
        As for :func:`denoise_image`.

    Returns
    -------
    ndarray of the shape of samples
        Floats in the units of the recording.
    """
    wave = np.asarray(samples)
    if wave.dtype.kind not in "buif" or wave.ndim not in (1, 2) or 0 in wave.shape[1:]:
        raise ValueError(
            f"samples must be real numbers of shape (n_samples,) or (n_samples, n_channels); got dtype {wave.dtype} "
            f"and shape {wave.shape}."
        )
    for name, value, least in (
        ("window", window, 4),
        ("patch_size", patch_size, 2),
        ("n_components", n_components, 1),
        ("max_iter", max_iter, 1),
    ):
        if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
            raise ValueError(f"{name} must be a whole number of at least {least}; got {value!r}.")
    if window // 2 + 1 < patch_size:
        raise ValueError(
            f"A window of {window} samples has {window // 2 + 1} frequencies, fewer than the {patch_size} of a patch. "
            "Use a larger window or a smaller patch_size."
        )
    if len(wave) < patch_size * window:
        raise ValueError(
            f"The recording has {len(wave)} samples; at least {patch_size * window}, {patch_size} windows of "
            f"{window}, are needed. Use a longer recording or a smaller window."
        )
    waves = wave.reshape(len(wave), -1).astype(np.float64)
    bad = int((~np.isfinite(waves)).sum())
    if bad:
        raise ValueError(f"samples has {bad} values that are NaN or infinite; cut them off or replace them.")
    random = check_random_state(random_state)
    settings = RestorationSettings(
        patch_size=patch_size, n_components=n_components, max_iter=max_iter, memory=bytes_from(memory_budget)
    )
    report = progress or (lambda part, text: None)
    n_channels = waves.shape[1]
    restored = [
        _restore(waves[:, c], window, settings, random, lambda part, text, c=c: report((c + part) / n_channels, text))  # type: ignore[misc]
        for c in range(n_channels)
    ]
    return np.stack(restored, axis=1).reshape(wave.shape)


def _restore(
    wave: np.ndarray,
    window: int,
    settings: RestorationSettings,
    random: np.random.RandomState,
    progress: Callable[[float, str], None],
) -> np.ndarray:
    centre = wave.mean()
    _, _, spectrum = stft(wave - centre, nperseg=window, noverlap=window - window // 4)
    power = np.abs(spectrum) ** 2
    if not power.max() > 0:
        return wave.copy()  # silence
    logarithm = np.log(np.maximum(power, SILENCE**2 * power.max()))
    level, spread = logarithm.mean(), logarithm.std()
    denoised = denoise(((logarithm - level) / spread)[..., None], settings, random, progress).image[..., 0]
    expected = np.exp(level + spread * denoised) / LOG_BIAS
    noise = np.quantile(expected, QUIETEST, axis=1, keepdims=True)
    gain = np.maximum(1 - noise / expected, FLOOR)  # Wiener's filter
    _, restored = istft(gain * spectrum, nperseg=window, noverlap=window - window // 4)
    return centre + restored[: len(wave)]
