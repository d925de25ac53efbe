"""Reconstruction of a whole recording from overlapping pieces of its spectrogram or waveform."""

from __future__ import annotations

from typing import Any

import numpy as np

from multicause.datasets.overlap import AT_ONCE
from multicause.datasets.reading import Reading
from multicause.datasets.spectrograms import (
    DYNAMIC_RANGE,
    LOWEST,
    N_CHANNELS,
    STEP,
    TOP,
    WINDOW,
    length_of,
    log_scaled,
    spectrograms,
)

# Pieces of a waveform overlap by three quarters.
OVERLAPPING = 4
# Levels that are above their reconstruction by at most so many standard deviations of the model's noise are explained.
EXPLAINED = 2.0
# Noise is estimated from the quietest tenth of the time at each frequency.
QUIETEST = 0.1
# Powers above this multiple of the noise's mean power are rarely noise: one in seven values of white noise.
STANDS_OUT = 2.0


def reconstruct_sound(
    model: Any, wave: np.ndarray, sample_rate: int, reading: Reading, *, remove_noise: bool = False
) -> np.ndarray:
    """Reconstruct a recording by a model that was fitted to pieces of spectrograms or waveforms: (n_samples,).

    With a model of waveforms, reconstructed pieces are added up, weighted by a Hann window. A model of spectrograms
    determines levels only: where the recording is above its reconstruction by more than two standard deviations of the
    model's noise (``noise_variance_``, if it has one), the excess counts as noise, and Wiener's filter attenuates the
    frequency by the ratio of both powers. The phases are those of the recording, and no frequency is amplified.

    With ``remove_noise``, the power N of steady noise is estimated for each frequency from the quietest tenth of the
    time. Amplitudes are multiplied by M / (M + N), with the power M of the reconstruction, or by 1 − 2 N / P if that is
    larger, with the power P of the recording: sounds that the model does not know are kept as far as they stand out.

    Parameters
    ----------
    model : fitted estimator with ``reconstruct``
        Model that was fitted to pieces of recordings.
    wave : ndarray of shape (n_samples,)
        Samples; loudness must be comparable to that of the data of the fit.
    sample_rate : int
        Sample rate of the recording in Hz; the result has the same one.
    reading : Reading
        Settings by which the data of the fit were read, with their ``level``.
    remove_noise : bool, default=False
        Whether to estimate steady noise and to remove it, with a model of spectrograms. Otherwise the result is what
        the causes alone explain.
    """
    from scipy.signal import istft, resample_poly, stft  # slow to import

    wave = np.asarray(wave, dtype=float)
    own = reading.sample_rate
    slow = wave if sample_rate == own else resample_poly(wave, own, sample_rate)
    least = length_of(reading.frames) if reading.sound == "spectrogram" else reading.length
    if len(slow) < least:
        raise ValueError(f"The recording has {len(slow)} samples at {own} Hz; at least {least} are needed.")
    if reading.sound == "waveform":
        again = _from_waveform(model, slow, reading)
        return again if sample_rate == own else _cut(resample_poly(again, sample_rate, own), len(wave))
    times, frequencies, before, after = _levels(model, slow, reading)
    window = max(8, round(WINDOW * sample_rate / own))
    options = {"fs": sample_rate, "nperseg": window, "noverlap": window - max(1, window // 4)}
    bins, moments, spectrum = stft(wave, **options)
    if remove_noise:
        gain = 1 / (1 + _noise_power(10 ** (before / 10)) / 10 ** (after / 10))
    else:
        tolerance = EXPLAINED * np.sqrt(np.mean(getattr(model, "noise_variance_", 0.0))) * DYNAMIC_RANGE / TOP
        # Wiener's filter multiplies amplitudes by a ratio of powers; in decibels it is interpolated.
        gain = np.clip(after - before + tolerance, -DYNAMIC_RANGE, 0)
    in_time = np.stack([np.interp(moments, times, line) for line in gain])
    gain = np.stack([np.interp(bins, frequencies, column) for column in in_time.T], axis=1)
    if remove_noise:
        power = np.abs(spectrum) ** 2
        gain = np.maximum(gain, 1 - STANDS_OUT * _noise_power(power) / np.maximum(power, np.finfo(float).tiny))
    else:
        gain = 10 ** (gain / 10)
    _, again = istft(gain * spectrum, **options)
    return _cut(again, len(wave))


def _noise_power(power: np.ndarray) -> np.ndarray:
    """Return the mean power of steady noise from powers (frequencies, times), which noise has exponentially spread."""
    return np.quantile(power, QUIETEST, axis=1, keepdims=True) / -np.log1p(-QUIETEST)


def _levels(model: Any, wave: np.ndarray, reading: Reading) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return times, frequencies, and levels in decibels (frequencies, times) of a recording and its reconstruction."""
    margin = length_of(reading.frames)
    # The beginning and end are mirrored, so that each window is in as many pieces as all others.
    padded = np.pad(wave, (margin, margin + STEP), mode="reflect" if len(wave) > margin + STEP else "constant")
    n_windows = (len(padded) - WINDOW) // STEP + 1
    coefficients = spectrograms(padded[None, : length_of(n_windows)], reading.sample_rate, n_windows)
    level = 1.0 if reading.level is None else reading.level
    log_levels = log_scaled(coefficients, level).reshape(N_CHANNELS, n_windows)
    pieces = np.lib.stride_tricks.sliding_window_view(log_levels, reading.frames, axis=1).swapaxes(0, 1)
    reconstructed = _reconstructed(model, pieces.reshape(len(pieces), -1), reading.dtype)
    sums, counts = np.zeros_like(log_levels), np.zeros(n_windows)
    for frame in range(reading.frames):
        own = slice(frame, frame + len(pieces))
        sums[:, own] += reconstructed.reshape(len(pieces), N_CHANNELS, reading.frames)[:, :, frame].T
        counts[own] += 1
    times = (np.arange(n_windows) * STEP + WINDOW / 2 - margin) / reading.sample_rate
    frequencies = np.geomspace(LOWEST, reading.sample_rate / 2, N_CHANNELS)
    return times, frequencies, log_levels * DYNAMIC_RANGE / TOP, sums / counts * DYNAMIC_RANGE / TOP


def _from_waveform(model: Any, wave: np.ndarray, reading: Reading) -> np.ndarray:
    length, step = reading.length, max(1, reading.length // OVERLAPPING)
    level = 1.0 if reading.level is None else reading.level
    n_pieces = -(-(len(wave) + length) // step)
    padded = np.pad(wave, (length, (n_pieces + 1) * step))
    starts = step * np.arange(n_pieces + 1)
    pieces = np.lib.stride_tricks.sliding_window_view(padded, length)[starts]
    reconstructed = level * _reconstructed(model, pieces / level, reading.dtype)
    # Its ends are not zero, so that no weight vanishes.
    window = np.hanning(length + 2)[1:-1]
    sums, weights = np.zeros(len(padded)), np.zeros(len(padded))
    for start, piece in zip(starts, reconstructed, strict=True):
        sums[start : start + length] += window * piece
        weights[start : start + length] += window
    own = slice(length, length + len(wave))
    return sums[own] / weights[own]


def _reconstructed(model: Any, rows: np.ndarray, dtype: str) -> np.ndarray:
    parts = [rows[start : start + AT_ONCE].astype(dtype) for start in range(0, len(rows), AT_ONCE)]
    return np.concatenate([np.asarray(model.reconstruct(part), dtype=float) for part in parts])


def _cut(wave: np.ndarray, length: int) -> np.ndarray:
    """Return a wave of exactly this length."""
    return np.pad(wave[:length], (0, max(0, length - len(wave))))
