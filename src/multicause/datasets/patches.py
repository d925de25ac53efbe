"""Patches of a natural image, the visual data of the papers."""

from __future__ import annotations

from os import PathLike

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import Bunch, check_random_state

from multicause.datasets.checks import positive, whole
from multicause.datasets.files import grass, read_image


def make_patches(
    image: ArrayLike | str | PathLike[str] | None = None,
    n_samples: int = 5000,
    *,
    shape: tuple[int, int] = (10, 10),
    scale: float = 10.0,
    random_state: int | np.random.RandomState | None = None,
) -> Bunch:
    """Draw patches at random positions of an image (MCA08 §6.9 and appendix E.5).

    The image is rescaled linearly to fill [0, ``scale``] before it is cut, so that its darkest pixel is zero. MCA08
    used 250×250 pixels of the van Hateren database, number 2338; ET10 a similar image.

    Parameters
    ----------
    image : array-like of shape (height, width) or path, optional
        Intensities, or a file: npy, npz with one array, iml (van Hateren database), or png, tif and the like, which
        need scikit-image. A relative path is also looked for in the folder that the environment variable
        MULTICAUSE_DATA names. By default scikit-image's photograph of grass, 512×512; its grey values are
        gamma-encoded, those of the database linear in light intensity.
    n_samples : int, default=5000
        Number of patches.
    shape : tuple of two int, default=(10, 10)
        Height and width of a patch.
    scale : float, default=10.0
        Value of the brightest pixel.
    random_state : int or RandomState, optional
        Seed.

    Returns
    -------
    Bunch
        ``data`` (n_samples, height × width of a patch), ``positions`` (n_samples, 2) row and column of each patch's
        upper left pixel, ``image`` (rescaled), ``image_shape`` (of a patch).
    """
    n_samples = whole(n_samples, "n_samples", 1)
    scale = positive(scale, "scale")
    if not isinstance(shape, tuple | list) or len(shape) != 2:
        raise ValueError(f"shape must be the height and width of a patch, e.g. (10, 10); got {shape!r}.")
    height, width = (whole(side, "Each side of shape", 1) for side in shape)
    pixels = _rescale(_as_image(image), scale)
    data, positions = draw_patches(pixels, (height, width), n_samples, check_random_state(random_state))
    return Bunch(data=data, positions=positions, image=pixels, image_shape=(height, width))


def draw_patches(
    image: np.ndarray, shape: tuple[int, int], n_samples: int, random: np.random.RandomState
) -> tuple[np.ndarray, np.ndarray]:
    """Draw patches (n_samples, height · width) at random positions of an image, and return them with the positions."""
    height, width = shape
    if height > image.shape[0] or width > image.shape[1]:
        raise ValueError(
            f"A patch of {height}×{width} does not fit into the image of {image.shape[0]}×{image.shape[1]}; "
            "choose smaller patches."
        )
    windows = np.lib.stride_tricks.sliding_window_view(image, (height, width))
    rows, columns = (random.randint(0, n, n_samples) for n in windows.shape[:2])
    return windows[rows, columns].reshape(n_samples, -1), np.stack([rows, columns], axis=1)


def _as_image(image: ArrayLike | str | PathLike[str] | None) -> np.ndarray:
    if image is None:
        pixels = grass()
    elif isinstance(image, str | PathLike):
        pixels = read_image(image)
    else:
        pixels = np.asarray(image)
    if pixels.ndim != 2:
        raise ValueError(
            f"image must have two axes, height and width; got shape {pixels.shape}. Average the channels of a colour "
            "image first, e.g. image[..., :3].mean(axis=-1)."
        )
    if pixels.dtype.kind not in "buif":
        raise ValueError(f"image must hold real numbers; got dtype {pixels.dtype}.")
    return pixels.astype(float)


def _rescale(pixels: np.ndarray, scale: float) -> np.ndarray:
    if pixels.size == 0:
        raise ValueError(f"image has no pixels; its shape is {pixels.shape}.")
    if not np.isfinite(pixels).all():
        bad = int((~np.isfinite(pixels)).sum())
        raise ValueError(f"image has {bad} pixels that are NaN or infinite; replace them or cut them off.")
    low, high = pixels.min(), pixels.max()
    if low == high:
        raise ValueError(f"image is constant, all pixels are {low:g}; it cannot be rescaled and has no structure.")
    return scale * ((pixels - low) / (high - low))
