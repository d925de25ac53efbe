"""Log-spectrograms of simultaneous phonemes, whose waveforms add up and which nearly mask each other (max rule)."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike, fspath
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import Bunch, check_random_state

from multicause.datasets.checks import check_probabilities, one_per_cause, whole
from multicause.datasets.files import read_sound, sound_files
from multicause.datasets.spectrograms import N_CHANNELS, log_scaled, spectrograms
from multicause.datasets.synthetic_speech import synthesize

# Settings of MCA08 appendix E.4.
SAMPLE_RATE = 8000
LENGTH = 1000
N_WINDOWS = 9

Waveforms = str | PathLike[str] | Sequence[ArrayLike | str | PathLike[str]]


def make_phoneme_mixtures(
    n_samples: int = 500,
    *,
    waveforms: Waveforms | None = None,
    activity: float | ArrayLike | None = None,
    random_state: int | np.random.RandomState | None = None,
) -> Bunch:
    """Generate log-spectrograms of mixed phonemes, with their true causes (MCA08 §6.9 and appendix E.4).

    Waveforms z_h(t) of power one add up, z(t) = Σ_h s_h z_h(t). A spectrogram has the magnitudes of z's Fourier
    transform in 9 Hamming windows of 200 samples, each 100 after the last, at 50 frequencies from 100 to 4000 Hz with
    equal ratios. Its logarithm is scaled such that the 42.8 dB below the loudest point of the single waveforms fill
    [0, 10]; what is softer is zero. The loudest sound nearly determines each point of a mixture, so that mixtures
    follow the max rule; where two sounds are equally loud, their mixture is up to 6 dB (1.4) above them and may exceed
    10.

    Parameters
    ----------
    n_samples : int, default=500
        Number of mixtures.
    waveforms : path or sequence of arrays and paths, optional
        Sounds, each cut or padded with zeros to 1000 samples: a folder of wav files with one channel, a pattern such
        as "sounds/male_*.wav", or a list of such files and of arrays with 8000 samples a second. Files with another
        rate are resampled. Relative paths are also looked for in the folder that the environment variable
        MULTICAUSE_DATA names. By default three synthesized vowels (two of them diphthongs) and three plosives.
    activity : float or array-like of shape (n_causes,), optional
        Probability of each phoneme; by default two per mixture on average.
    random_state : int or RandomState, optional
        Seed of the mixtures. The default waveforms are always the same.

    Returns
    -------
    Bunch
        ``data`` (n_samples, 450), rows without a phoneme are zero; ``causes`` (n_causes, 450), the log-spectrograms
        of the single waveforms; ``states`` (n_samples, n_causes); ``activity`` (n_causes,); ``image_shape`` (50, 9),
        frequency × time, lowest frequency first; ``waveforms`` (n_causes, 1000); ``names``; ``sample_rate``.
    """
    n_samples = whole(n_samples, "n_samples", 1)
    named = _named(waveforms)
    waves = np.array([_normalized(wave, name) for name, wave in named])
    probabilities = one_per_cause(activity, len(waves), "phoneme")
    check_probabilities(probabilities, "phoneme", "activity")
    random = check_random_state(random_state)
    states = (random.uniform(size=(n_samples, len(waves))) < probabilities).astype(int)
    coefficients = spectrograms(waves, SAMPLE_RATE, N_WINDOWS)
    loudest = np.abs(coefficients).max()
    return Bunch(
        data=log_scaled(states @ coefficients, loudest),  # the transform is linear, so that mixing may come after it
        causes=log_scaled(coefficients, loudest),
        states=states,
        activity=probabilities,
        image_shape=(N_CHANNELS, N_WINDOWS),
        waveforms=waves,
        names=[name for name, _ in named],
        sample_rate=SAMPLE_RATE,
    )


def _named(waveforms: Waveforms | None) -> list[tuple[str, np.ndarray]]:
    if waveforms is None:
        return list(synthesize(LENGTH, SAMPLE_RATE).items())
    sounds = sound_files(waveforms) if isinstance(waveforms, str | PathLike) else list(waveforms)
    if not sounds:
        raise ValueError("waveforms is empty; pass at least one sound, or None for the synthesized ones.")
    return [
        (Path(fspath(sound)).stem, read_sound(sound, SAMPLE_RATE))
        if isinstance(sound, str | PathLike)
        else (str(number), np.asarray(sound))
        for number, sound in enumerate(sounds)
    ]


def _normalized(wave: np.ndarray, name: str) -> np.ndarray:
    """Return 1000 samples with unit power, (1/T) Σ_t z(t)² = 1."""
    if wave.ndim != 1 or wave.size == 0:
        raise ValueError(
            f"Waveform {name!r} must have one axis, time; got shape {wave.shape}. Choose one channel or average them."
        )
    if wave.dtype.kind not in "buif":
        raise ValueError(f"Waveform {name!r} must hold real numbers; got dtype {wave.dtype}.")
    padded = np.zeros(LENGTH)
    padded[: min(len(wave), LENGTH)] = wave[:LENGTH]
    if not np.isfinite(padded).all():
        raise ValueError(f"Waveform {name!r} has samples that are NaN or infinite; repair the recording.")
    peak = np.abs(padded).max()
    if peak == 0:
        raise ValueError(f"Waveform {name!r} is silent in its first {LENGTH} samples; cut off the silence before it.")
    padded /= peak  # squares of tiny or huge samples would exceed the range of floats
    return padded / np.sqrt(np.mean(padded**2))
