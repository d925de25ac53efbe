"""Distribution of the power of sound filters over time and frequency (EBM01 fig. 4)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.ndimage import binary_closing
from scipy.signal import hilbert

# Values above this fraction of the peak count as present; shorter gaps between them are filled (EBM01 fig. 4).
THRESHOLD = 0.5
GAP_IN_TIME, GAP_IN_FREQUENCY = 6, 3


class TimeFrequencyPower(NamedTuple):
    """Power over frequency and time, summed over filters."""

    power: np.ndarray  # (F, T)
    frequencies: np.ndarray  # (F,)
    times: np.ndarray  # (T,)
    templates_in_time: np.ndarray  # (n, T) support of each filter in time
    templates_in_frequency: np.ndarray  # (n, F) support of each filter in frequency


def time_frequency_power(filters: ArrayLike, *, sampling_rate: float = 1.0) -> TimeFrequencyPower:
    """Sum the outer products of the time and frequency templates of filters, weighted by their power.

    The template in time is one where the squared envelope, the absolute value of the analytic signal, exceeds half its
    peak; that in frequency is one where the power spectrum does. Gaps of fewer than 6 samples in time and 3 in
    frequency are filled.

    Parameters
    ----------
    filters : array-like of shape (n, T)
        One filter per row.
    sampling_rate : float, default=1.0
        Samples per second, for the axes.
    """
    waves = np.asarray(filters, dtype=float)
    if waves.ndim != 2 or waves.shape[1] < 2:
        raise ValueError(
            f"filters must have shape (n, T), one filter of two or more samples per row; got {waves.shape}."
        )
    if not np.isfinite(waves).all():
        raise ValueError("filters must be finite; they hold NaN or infinity.")
    if not sampling_rate > 0:
        raise ValueError(f"sampling_rate must be positive; got {sampling_rate!r}.")
    envelopes = np.abs(hilbert(waves, axis=1)) ** 2
    spectra = np.abs(np.fft.rfft(waves, axis=1)) ** 2
    in_time, in_frequency = _template(envelopes, GAP_IN_TIME), _template(spectra, GAP_IN_FREQUENCY)
    total = (waves**2).sum(axis=1)
    return TimeFrequencyPower(
        power=(in_frequency * total[:, None]).T @ in_time,
        frequencies=np.fft.rfftfreq(waves.shape[1], 1 / sampling_rate),
        times=np.arange(waves.shape[1]) / sampling_rate,
        templates_in_time=in_time,
        templates_in_frequency=in_frequency,
    )


def _template(values: np.ndarray, gap: int) -> np.ndarray:
    """Return one where values exceed half the peak of their row, with short gaps filled, and zero elsewhere."""
    present = values > THRESHOLD * values.max(axis=1, keepdims=True)
    # Closing fills gaps that are shorter than its structure; padding keeps it from changing the ends of a row.
    padded = np.pad(present, ((0, 0), (gap, gap)))
    filled = binary_closing(padded, np.ones((1, gap), bool))
    return filled[:, gap:-gap].astype(float)
