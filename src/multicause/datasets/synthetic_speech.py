"""Synthesis of six waveforms that resemble the phonemes of MCA08 appendix E.4.

Voiced sounds are harmonics of a falling pitch, each with the gain and phase of a vocal tract whose resonances, the
formants, glide from one vowel to the next. Plosives are noise: a short burst with the spectrum of its place of
articulation, then breath. Everything is fixed, including the noise, so that the waveforms are the same in every call.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Voiced(NamedTuple):
    """Vowel or diphthong: formants in Hz at its beginning and end, and pitch in Hz at its beginning."""

    start: tuple[float, ...]
    end: tuple[float, ...]
    pitch: float


class Plosive(NamedTuple):
    """Plosive: centre and width (octaves) of the burst, centre of the breath, times in milliseconds."""

    burst: float
    octaves: float
    breath: float
    onset: float
    decay: float
    breath_decay: float
    duration: float


# Mean formants of men's American English vowels (Peterson & Barney 1952); the fourth, which they did not measure, is
# about 3.4 kHz.
VOICED = {
    "au": Voiced((730.0, 1090.0, 2440.0, 3400.0), (440.0, 1020.0, 2240.0, 3300.0), 118.0),
    "i:": Voiced((270.0, 2290.0, 3010.0, 3600.0), (270.0, 2290.0, 3010.0, 3600.0), 140.0),
    "oi": Voiced((570.0, 840.0, 2410.0, 3300.0), (390.0, 1990.0, 2550.0, 3450.0), 100.0),
}
# Velar bursts are compact around 1.7 kHz, alveolar ones high, labial ones low and diffuse (Blumstein & Stevens 1979);
# velar ones last longest.
PLOSIVES = {
    "k": Plosive(1700.0, 0.50, 1500.0, 5.0, 30.0, 80.0, 110.0),
    "t": Plosive(3500.0, 0.50, 2800.0, 20.0, 15.0, 60.0, 110.0),
    "p": Plosive(500.0, 0.80, 700.0, 0.0, 15.0, 60.0, 90.0),
}
# Bandwidth of a formant, as in synthesis by rule: 50 Hz and 5 % of its frequency.
BANDWIDTH, RELATIVE_BANDWIDTH = 50.0, 0.05
# Resonances of a uniform tube above the speech band; they do not move, but raise the band below them.
HIGHER = (4500.0, 5500.0, 6500.0, 7500.0)
# The glottis of a raised voice falls by 9 dB per octave, and radiation from the lips gives 6 back. With the 12 dB of a
# soft voice, log-spectrograms of different vowels are more alike than those of recordings.
TILT = 0.5
# Falling intonation: fraction of the pitch that is lost per second.
FALL = 1.0
# Rise and fall time of the voice, seconds.
RISE, RELEASE = 0.010, 0.040
# Time at which the diphthong's glide is half done, and its duration, as fractions of the sound.
GLIDE_CENTRE, GLIDE_WIDTH = 0.55, 0.12
# Breath after the burst, and sound outside the burst's band, relative to the burst. In recordings of these plosives
# nearly all frequencies sound, and log-spectrograms hold as much as those of vowels.
BREATH, FLOOR = 0.7, 0.25
# Seed of the noise in the plosives.
NOISE_SEED = 1979


def synthesize(n: int, sample_rate: int) -> dict[str, np.ndarray]:
    """Synthesise waveforms by name, of ``n`` samples, or fewer for plosives, which end early."""
    random = np.random.RandomState(NOISE_SEED)
    waveforms = {name: _voiced(phoneme, n, sample_rate) for name, phoneme in VOICED.items()}
    for name, phoneme in PLOSIVES.items():
        waveforms[name] = _plosive(phoneme, random, sample_rate)
    return waveforms


def _voiced(phoneme: Voiced, n: int, sample_rate: int) -> np.ndarray:
    time = np.arange(n) / sample_rate
    glide = 1 / (1 + np.exp(-(time / time[-1] - GLIDE_CENTRE) / GLIDE_WIDTH))
    formants = np.outer(phoneme.start, 1 - glide) + np.outer(phoneme.end, glide)
    pitch = phoneme.pitch * (1 - FALL * time)
    phase = 2 * np.pi * np.cumsum(pitch) / sample_rate
    wave = np.zeros(n)
    for harmonic in range(1, int(sample_rate / 2 / pitch.min()) + 1):
        frequency = harmonic * pitch
        gain = _vocal_tract(frequency, formants) / harmonic**TILT * (frequency < sample_rate / 2)
        wave += (gain * np.exp(1j * harmonic * phase)).real
    envelope = np.minimum(1, time / RISE) * np.minimum(1, (time[-1] - time) / RELEASE)
    return wave * np.sin(np.pi / 2 * envelope)


def _vocal_tract(frequency: np.ndarray, formants: np.ndarray) -> np.ndarray:
    """Compute the transfer function at each time: a cascade of resonances with gain one at 0 Hz."""
    response = np.ones(len(frequency), dtype=complex)
    for formant in (*formants, *HIGHER):
        bandwidth = BANDWIDTH + RELATIVE_BANDWIDTH * formant
        response *= formant**2 / (formant**2 - frequency**2 + 1j * bandwidth * frequency)
    return response


def _plosive(phoneme: Plosive, random: np.random.RandomState, sample_rate: int) -> np.ndarray:
    n = round(phoneme.duration / 1000 * sample_rate)
    milliseconds = 1000 * np.arange(n) / sample_rate - phoneme.onset
    sounding = milliseconds >= 0
    since = np.where(sounding, milliseconds, 0)
    burst = sounding * np.exp(-since / phoneme.decay)
    breath = BREATH * sounding * np.exp(-since / phoneme.breath_decay)
    # Breath passes the open vocal tract and is broader than the burst.
    return burst * _band(random, n, sample_rate, phoneme.burst, phoneme.octaves) + breath * _band(
        random, n, sample_rate, phoneme.breath, 2 * phoneme.octaves
    )


def _band(random: np.random.RandomState, n: int, sample_rate: int, centre: float, octaves: float) -> np.ndarray:
    """Generate noise of unit power around a frequency."""
    spectrum = np.fft.rfft(random.normal(size=n))
    frequency = np.maximum(np.fft.rfftfreq(n, 1 / sample_rate), 1)
    gain = FLOOR + np.exp(-0.5 * (np.log2(frequency / centre) / octaves) ** 2)
    noise = np.fft.irfft(gain * spectrum, n)
    return noise / np.sqrt(np.mean(noise**2))
