"""Patches of photographs, whitened as in Olshausen & Field: TN10 §10.3, figure 10.6."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from sklearn.datasets import load_sample_image
from sklearn.utils import check_random_state

from multicause.datasets.files import stored
from multicause.datasets.patches import draw_patches

# Photographs bundled with scikit-image, and the number of pixels that their borders lose to the filter.
BUNDLED = ("camera", "astronaut", "coffee", "cat", "rocket")
BORDER = 8
# Cutoff frequency of the filter in cycles per pixel: the corners of the spectrum hold mostly sampling noise (Olshausen
# & Field 1997 use 200 cycles per picture of 512 pixels).
CUTOFF = 0.4


def load_photographs(path: str | Path | None = None) -> list[np.ndarray]:
    """Load grey photographs as float arrays.

    They are read from a ``.npz`` file of grey images at ``path``, or from ``natural_free/natural_free.npz`` in the
    folder that the environment variable MULTICAUSE_DATA names; without either, they are those that come with
    scikit-image, or, where it is not installed, with scikit-learn.
    """
    path = stored("natural_free/natural_free.npz") if path is None else path
    if path is not None:
        with np.load(path) as images:
            return [images[name].astype(float) for name in images.files if images[name].ndim == 2]
    try:
        from skimage import data
    except ImportError:
        return [load_sample_image(name).mean(axis=2) for name in ("china.jpg", "flower.jpg")]
    bundled = (np.asarray(getattr(data, name)(), dtype=float) for name in BUNDLED)
    return [image if image.ndim == 2 else image.mean(axis=2) for image in bundled]


def whiten_image(image: np.ndarray, cutoff: float = CUTOFF) -> np.ndarray:
    """Filter an image by |f| exp(−(|f|/cutoff)⁴), and scale it to unit variance.

    The amplitude of natural images falls like 1/|f|, so that |f| makes it flat; the second factor removes the corners
    of the spectrum.
    """
    image = np.asarray(image, dtype=float)
    if image.ndim != 2 or min(image.shape) < 2 * BORDER + 2:
        raise ValueError(f"An image must have two dimensions of at least {2 * BORDER + 2} pixels; got {image.shape}.")
    rows, columns = np.fft.fftfreq(image.shape[0]), np.fft.rfftfreq(image.shape[1])
    frequency = np.hypot(rows[:, None], columns)
    spectrum = np.fft.rfft2(image - image.mean()) * frequency * np.exp(-((frequency / cutoff) ** 4))
    white = np.fft.irfft2(spectrum, s=image.shape)[BORDER:-BORDER, BORDER:-BORDER]
    deviation = white.std()
    if not deviation > 0:
        raise ValueError("A constant image cannot be whitened.")
    return white / deviation


def make_white_patches(
    n_samples: int = 20_000,
    *,
    size: int = 12,
    images: Sequence[np.ndarray] | None = None,
    whiten: bool = True,
    cutoff: float = CUTOFF,
    shrink: int = 1,
    random_state: int | np.random.RandomState | None = None,
) -> np.ndarray:
    """Draw square patches at random positions of whitened images: (n_samples, size · size).

    Parameters
    ----------
    n_samples : int, default=20000
        Number of patches, the same from each image.
    size : int, default=12
        Height and width.
    images : sequence of arrays, optional
        Grey images; by default :func:`load_photographs`.
    whiten : bool, default=True
        Whether images are filtered by :func:`whiten_image` first; otherwise each has unit variance and zero mean.
    cutoff : float, default=0.4
        Cutoff of that filter, in cycles per pixel.
    shrink : int, default=1
        Side of the squares of pixels that are averaged first. Lenses and compression leave mostly noise at the finest
        scale of a photograph, which whitening would amplify.
    random_state : int, RandomState or None
        Seed of the positions.
    """
    random = check_random_state(random_state)
    if shrink < 1:
        raise ValueError(f"shrink must be a positive number of pixels; got {shrink!r}.")
    sources = load_photographs() if images is None else [np.asarray(image, dtype=float) for image in images]
    sources = [_shrunk(image, shrink) for image in sources]
    ready = [whiten_image(image, cutoff) if whiten else (image - image.mean()) / image.std() for image in sources]
    shares = np.diff(np.linspace(0, n_samples, len(ready) + 1).astype(int))
    drawn = zip(ready, shares, strict=True)
    patches = [draw_patches(image, (size, size), int(count), random)[0] for image, count in drawn]
    return random.permutation(np.concatenate(patches))


def _shrunk(image: np.ndarray, factor: int) -> np.ndarray:
    """Average over squares of pixels; incomplete squares at the lower and right border are dropped."""
    height, width = (side // factor for side in image.shape)
    return image[: height * factor, : width * factor].reshape(height, factor, width, factor).mean(axis=(1, 3))
