"""Log-spectrograms as in MCA08 (appendix E.4): logarithmically spaced frequencies, decibels scaled to [0, 10]."""

from __future__ import annotations

import numpy as np

N_CHANNELS, LOWEST = 50, 100.0
# Samples of one Hamming window; windows overlap by half.
WINDOW = 200
STEP = WINDOW // 2
DYNAMIC_RANGE = 42.8
TOP = 10.0


def length_of(n_windows: int) -> int:
    """Return the number of samples that ``n_windows`` windows cover."""
    return WINDOW + (n_windows - 1) * STEP


def spectrograms(waves: np.ndarray, sample_rate: int, n_windows: int) -> np.ndarray:
    """Compute Fourier coefficients (n, 50 · n_windows) of waveforms (n, length), frequency × time in each row.

    Frequencies reach from 100 Hz to half the sample rate; waveforms must have the length :func:`length_of`.
    """
    frequencies = np.geomspace(LOWEST, sample_rate / 2, N_CHANNELS)
    time = np.arange(WINDOW) / sample_rate
    basis = np.hamming(WINDOW) * np.exp(-2j * np.pi * np.outer(frequencies, time))
    windows = np.lib.stride_tricks.sliding_window_view(waves, WINDOW, axis=1)[:, ::STEP][:, :n_windows]
    return np.einsum("ft,nwt->nfw", basis, windows, optimize=True).reshape(len(waves), -1)


def log_scaled(coefficients: np.ndarray, loudest: float) -> np.ndarray:
    """Convert magnitudes to decibels, with ``loudest`` at 10 and everything 42.8 dB or more below it at 0."""
    silence = 10 ** (-DYNAMIC_RANGE / 20)
    relative = np.abs(coefficients) / loudest
    decibels = 20 * np.log10(np.maximum(relative, silence))
    return np.where(relative > silence, TOP * (1 + decibels / DYNAMIC_RANGE), 0)
