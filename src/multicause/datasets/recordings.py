"""Rows from recordings: pieces of the log-spectrogram or of the waveform."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from multicause.datasets.spectrograms import length_of, log_scaled, spectrograms


def pieces_of(files: Sequence[Path], waves: Sequence[np.ndarray], length: int) -> np.ndarray:
    """Cut waveforms into half-overlapping pieces of ``length`` samples: (n, length)."""
    for file, wave in zip(files, waves, strict=True):
        if len(wave) < length:
            raise ValueError(
                f"{str(file)!r} has {len(wave)} samples, too few for one piece of {length}. Use a longer recording, or "
                "shorter pieces: set frames=... or length=... to a smaller number."
            )
    step = max(1, length // 2)
    return np.concatenate([np.lib.stride_tricks.sliding_window_view(wave, length)[::step] for wave in waves])


def spectrogram_rows(
    files: Sequence[Path], waves: Sequence[np.ndarray], n_windows: int, sample_rate: int, level: float | None
) -> tuple[np.ndarray, float]:
    """Return log-spectrograms (n, 50 · n_windows) of pieces, and the magnitude at 10: ``level`` or the loudest."""
    coefficients = spectrograms(pieces_of(files, waves, length_of(n_windows)), sample_rate, n_windows)
    level = float(np.abs(coefficients).max()) if level is None else level
    _check_level(level, files)
    return log_scaled(coefficients, level), level


def waveform_rows(
    files: Sequence[Path], waves: Sequence[np.ndarray], length: int, level: float | None
) -> tuple[np.ndarray, float]:
    """Return pieces of the waveform (n, length), divided by ``level`` or the standard deviation of all samples."""
    level = float(np.concatenate(waves).std()) if level is None else level
    _check_level(level, files)
    return pieces_of(files, waves, length) / level, level


def _check_level(level: float, files: Sequence[Path]) -> None:
    if not (np.isfinite(level) and level > 0):
        raise ValueError(f"{str(files[0])!r} is silent or not finite, so nothing can be learned from it.")
