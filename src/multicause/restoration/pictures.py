"""Conversion between images of the user and the arrays that restoration uses."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from multicause.datasets.pictures import COLOURS


class Picture(NamedTuple):
    """An image with mean zero and standard deviation one, and the parameters of the inverse transformation."""

    values: np.ndarray  # (height, width, channels), NaN where a pixel is missing
    centre: float
    scale: float
    shape: tuple[int, ...]  # of the user's image

    def restored(self, values: np.ndarray) -> np.ndarray:
        """Return an array of the user's shape and units."""
        return (self.centre + self.scale * values.astype(np.float64)).reshape(self.shape)


def as_pixels(image: ArrayLike) -> np.ndarray:
    """Return an image as floats (height, width) or (height, width, 3), with NaN where pixels are missing."""
    given = np.ma.filled(image.astype(float), np.nan) if isinstance(image, np.ma.MaskedArray) else np.asarray(image)
    if given.dtype.kind not in "buif":
        raise ValueError(f"image must hold real numbers; got dtype {given.dtype}.")
    if given.ndim == 3 and given.shape[2] in (2, COLOURS + 1):
        raise ValueError(
            f"image has {given.shape[2]} channels, of which the last is probably its transparency; expected 1 or "
            f"{COLOURS}. Leave it out, image[..., :-1], and pass transparent pixels as missing where they are: "
            "mask=image[..., -1] == 0."
        )
    if given.ndim == 4:
        raise ValueError(f"image must be one image; got {len(given)} frames of shape {given.shape[1:]}.")
    if given.ndim not in (2, 3) or (given.ndim == 3 and given.shape[2] not in (1, COLOURS)):
        raise ValueError(f"image must have the shape (height, width) or (height, width, 3); got {given.shape}.")
    if given.size == 0:
        raise ValueError(f"image has no pixels; its shape is {given.shape}.")
    pixels = given.astype(np.float64)
    n_infinite = int(np.isinf(pixels).sum())
    if n_infinite:
        raise ValueError(f"image has {n_infinite} infinite values; replace them by NaN, which means missing.")
    return pixels


def as_picture(pixels: np.ndarray) -> Picture:
    """Return pixels in units of their deviation, so that offsets and units do not matter."""
    if np.isnan(pixels).all():
        raise ValueError("All pixels of the image are missing; there is nothing to learn from.")
    centre, scale = float(np.nanmean(pixels)), float(np.nanstd(pixels))
    # Sums of equal values may be off by rounding.
    if not scale > 1e-12 * abs(centre):
        scale = 0.0
    # Without offset and units, single precision has digits enough, and large images take half of the memory.
    values = ((pixels - centre) / (scale or 1.0)).astype(np.float32)
    return Picture(values.reshape(*pixels.shape[:2], -1), centre, scale, pixels.shape)


def with_mask(pixels: np.ndarray, mask: ArrayLike | None) -> np.ndarray:
    """Return pixels with NaN where ``mask`` (height, width), or one of the image's own shape, is true."""
    if mask is None:
        return pixels
    missing = np.asarray(mask)
    if missing.dtype.kind not in "buif" or not np.isfinite(missing).all():
        raise ValueError(
            "mask must hold truth values or finite numbers, which are not zero where a pixel is missing; got dtype "
            f"{missing.dtype}{', with NaN or infinity' if missing.dtype.kind == 'f' else ''}."
        )
    if missing.shape not in (pixels.shape, pixels.shape[:2]):
        raise ValueError(
            f"mask must have the height and width of the image, {pixels.shape[:2]}, or its shape, {pixels.shape}; got "
            f"{missing.shape}."
        )
    if missing.ndim < pixels.ndim:
        missing = missing[..., None]
    return np.where(missing != 0, np.nan, pixels)
