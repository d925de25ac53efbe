"""Rows from image files: whole images of one size, or patches of images of any size."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from multicause.datasets.files import read_image
from multicause.datasets.patches import make_patches

COLOURS = 3


def unreadable(path: Path, error: Exception) -> ValueError:
    """Return the error for a file that an image reader has refused."""
    reason = (str(error).strip() or type(error).__name__).splitlines()[0]
    if "find a backend" in reason:  # imageio's words for a file that none of its formats knows
        reason = "it is damaged, or of another kind. Expected a png, jpg, tif, bmp or gif file."
    return ValueError(f"{str(path)!r} cannot be read as an image: {reason}")


def read_pixels(path: Path) -> np.ndarray:
    """Read an image of any shape and type; errors of all readers become a ValueError that names the file."""
    try:
        return np.asarray(read_image(path))
    except (FileNotFoundError, ImportError, PermissionError):
        raise
    except Exception as error:  # image readers raise any exception of their format's library
        raise unreadable(path, error) from error


def read_grey(path: Path) -> tuple[np.ndarray, bool]:
    """Read the grey values (height, width) of an image, and whether it was coloured.

    Integers are divided by the largest value of their type, so that white is one; other numbers stay unchanged. The
    colours of a pixel are averaged, and transparency is ignored.
    """
    pixels = read_pixels(path)
    if pixels.dtype.kind not in "buif" or pixels.size == 0:
        raise ValueError(f"{str(path)!r} must hold pixels; got an array of {pixels.dtype} with shape {pixels.shape}.")
    if pixels.dtype.kind in "ui":
        pixels = pixels / np.iinfo(pixels.dtype).max
    if pixels.ndim == 2:
        return pixels.astype(float), False
    if pixels.ndim == 4:
        raise ValueError(
            f"{str(path)!r} is an animation of {len(pixels)} frames; expected one image. Save each frame as a "
            "separate image."
        )
    if pixels.ndim != 3 or pixels.shape[2] > COLOURS + 1:
        raise ValueError(
            f"{str(path)!r} must be one image, grey or coloured; got shape {pixels.shape}. Save each frame or "
            "layer as a separate image."
        )
    channels = pixels[..., :COLOURS] if pixels.shape[2] >= COLOURS else pixels[..., :1]  # grey and transparency
    coloured = channels.shape[2] == COLOURS and bool((channels != channels[..., :1]).any())
    return channels.mean(axis=2), coloured


def whole_images(files: Sequence[Path], images: Sequence[np.ndarray], scale: float) -> np.ndarray:
    """Return one image in each row, with white at ``scale``: (n, height · width)."""
    for file, image in zip(files, images, strict=True):
        if image.shape != images[0].shape:
            raise ValueError(
                f"Whole images must have one size, but {str(files[0])!r} has {_size(images[0])} pixels and "
                f"{str(file)!r} has {_size(image)}. Resize them, or learn from patches: patches=(10, 10)."
            )
    return scale * np.stack([image.ravel() for image in images])


def patches_of(
    files: Sequence[Path],
    images: Sequence[np.ndarray],
    shape: tuple[int, int],
    count: int,
    scale: float,
    random: np.random.RandomState,
) -> np.ndarray:
    """Draw ``count`` patches, equally many from each image, scaled to [0, ``scale``]: (count, height · width)."""
    shares = np.diff(np.linspace(0, count, len(images) + 1).astype(int))
    patches = []
    for file, image, share in zip(files, images, shares, strict=True):
        if share:
            try:
                patches.append(make_patches(image, int(share), shape=shape, scale=scale, random_state=random).data)
            except ValueError as error:
                raise ValueError(f"{str(file)!r}: {error}") from error
    return np.concatenate(patches)


def _size(image: np.ndarray) -> str:
    return f"{image.shape[0]}×{image.shape[1]}"
