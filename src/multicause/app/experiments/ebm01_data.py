"""Data of EBM01's experiments: music, speech and natural images.

Real data are read from the folder given by the environment variable MULTICAUSE_DATA: ``music16``, ``timit_sample``,
``natural_free`` and ``vanhateren``. Without it, synthetic sources, a synthetic sound and photographs of scikit-learn
are used instead.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from scipy.signal import resample_poly

from multicause.datasets import files
from multicause.datasets.patches import draw_patches

OUT = Path("out/reproduce")
N_SOURCES = 16
SPEECH_RATE = 8000
SEGMENT = 100
N_SEGMENTS = 50_000
N_PATCHES = 122_880


def mixing_matrix() -> np.ndarray:
    """Return the instantaneous mixing matrix: 1 on the diagonal and 1/9 off it."""
    return np.full((N_SOURCES, N_SOURCES), 1 / 9) + (1 - 1 / 9) * np.eye(N_SOURCES)


def sources() -> tuple[str, np.ndarray]:
    """Return a description and sixteen sources of unit variance, (16, N).

    Music is down-sampled by 5. Synthetic sources have several super-Gaussian densities: Laplace, Student-t, Gaussian
    with varying amplitude, and logistic.
    """
    place = files.stored("music16")
    if place is not None:
        waves = np.load(place / "music16_blind_44100.npz")["x"].astype(float)
        sources, name = resample_poly(waves, 1, 5, axis=1), "music"
    else:
        random, n = np.random.RandomState(0), 40_000
        shapes = [
            *(random.laplace(size=n) for _ in range(4)),
            *(random.standard_t(freedom, size=n) for freedom in (5, 6, 7, 8)),
            *(random.normal(size=n) * np.exp(spread * random.normal(size=n)) for spread in (0.3, 0.4, 0.5, 0.6)),
            *(random.logistic(size=n) for _ in range(4)),
        ]
        sources, name = np.stack(shapes), "synthetic sources"
    sources = sources - sources.mean(axis=1, keepdims=True)
    return name, sources / sources.std(axis=1, keepdims=True)


def segments() -> tuple[str, np.ndarray]:
    """Return a description and segments of 12.5 ms of speech at 8 kHz from random positions, (50000, 100)."""
    place, random = files.stored("timit_sample"), np.random.RandomState(0)
    if place is not None:
        stored = np.load(place / "timit_sa2_16spk.npz")
        waves = [stored[name].astype(float) for name in stored.files if name.startswith("dr") and name[4] == "m"]
        waves, name = [resample_poly(wave, 1, 2) for wave in waves], f"speech of {len(waves)} men"
    else:
        waves, name = [_bursts(random) for _ in range(10)], "synthetic sound"
    windows = np.concatenate([np.lib.stride_tricks.sliding_window_view(wave, SEGMENT) for wave in waves])
    return name, windows[random.choice(len(windows), N_SEGMENTS)].astype(np.float32)


def patches(side: int) -> tuple[str, np.ndarray]:
    """Return a description and patches of log intensities, (122880, side²), equally many from each image.

    An image of van Hateren's collection, as in the paper, is preferred to photographs: whitening amplifies the highest
    frequencies, which in 8-bit photographs with smooth areas are mostly rounding errors.
    """
    linear, free, random = files.stored("vanhateren"), files.stored("natural_free"), np.random.RandomState(0)
    if linear is not None:
        images, name = [np.load(linear / "vanhateren_grass.npz")["x"].astype(float)], "image of van Hateren"
    elif free is not None:
        stored = np.load(free / "natural_free.npz")
        images, name = [stored[one].astype(float) for one in stored.files], "natural images"
    else:
        from sklearn.datasets import load_sample_images

        images, name = [image.mean(axis=2) for image in load_sample_images().images], "photographs"
    rows = []
    for number, image in enumerate(images):
        n = N_PATCHES // len(images) + (number < N_PATCHES % len(images))
        rows.append(draw_patches(np.log1p(image), (side, side), n, random)[0])
    return f"{len(images)} {name}", np.concatenate(rows).astype(np.float32)


def _bursts(random: np.random.RandomState) -> np.ndarray:
    """Generate decaying tones at random times, with noise so that every direction has variance."""
    time = np.arange(2000) / SPEECH_RATE
    wave = 0.02 * random.normal(size=22_000)
    for start in random.randint(0, 20_000, 100):
        tone = np.exp(-time / random.uniform(0.002, 0.03)) * np.sin(2 * np.pi * random.uniform(100, 3500) * time)
        wave[start : start + 2000] += random.uniform(0.2, 1) * tone
    return wave
