"""Reconstruction of a whole image from overlapping patches."""

from __future__ import annotations

from typing import Any

import numpy as np

# Number of patches that are reconstructed together; more would only take more memory.
AT_ONCE = 20_000


def reconstruct_image(
    model: Any, image: np.ndarray, shape: tuple[int, int], *, scale: float = 10.0, step: int = 1, dtype: str = "float64"
) -> np.ndarray:
    """Reconstruct an image as the mean of all overlapping reconstructed patches: (height, width).

    The image is rescaled to fill [0, ``scale``], as :func:`multicause.datasets.make_patches` does, and back at the end.

    Parameters
    ----------
    model : fitted estimator with ``reconstruct``
        Model that was fitted to patches.
    image : array of shape (height, width)
        Image, at least as large as a patch.
    shape : (int, int)
        Height and width of a patch.
    scale : float, default=10.0
        Scale of the patches that the model was fitted to.
    step : int, default=1
        Distance between patches in pixels, at most the shorter side of a patch. Larger is faster and averages less.
    dtype : str, default="float64"
        Type of the patches.
    """
    height, width = shape
    if not 1 <= step <= min(shape):
        raise ValueError(
            f"step must be from 1 to {min(shape)}, so that patches of {height}×{width} leave no gap; got {step}."
        )
    windows, low, high = _windows(image, shape, scale)
    tops, lefts = (_places(n, step) for n in windows.shape[:2])
    sums, counts = np.zeros(image.shape), np.zeros(image.shape)
    lines = max(1, min(len(tops), AT_ONCE // len(lefts)))
    for start in range(0, len(tops), lines):
        tops_of_lines = tops[start : start + lines]
        # The last group is padded to the size of the others, so that no further program is compiled.
        filled = np.append(tops_of_lines, np.repeat(tops_of_lines[-1:], lines - len(tops_of_lines)))
        patches = windows[np.ix_(filled, lefts)].reshape(-1, height * width).astype(dtype)
        reconstructed = np.asarray(model.reconstruct(patches), dtype=float)[: len(tops_of_lines) * len(lefts)]
        reconstructed = reconstructed.reshape(len(tops_of_lines), len(lefts), height, width)
        for y in range(height):
            for x in range(width):
                place = np.ix_(tops_of_lines + y, lefts + x)
                sums[place] += reconstructed[:, :, y, x]
                counts[place] += 1
    return low + (high - low) * sums / counts / scale


def patches_at(
    image: np.ndarray, shape: tuple[int, int], *, scale: float = 10.0, step: int = 1
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the patches on a grid of an image: (rows, columns, height, width), and the pixels of its rows and columns.

    The image is rescaled to fill [0, ``scale``]. A last row and column of patches reaches to the border.
    """
    if step < 1:
        raise ValueError(f"step must be at least 1; got {step}.")
    windows, _, _ = _windows(image, shape, scale)
    tops, lefts = (_places(n, step) for n in windows.shape[:2])
    return windows[np.ix_(tops, lefts)], tops, lefts


def _windows(image: np.ndarray, shape: tuple[int, int], scale: float) -> tuple[np.ndarray, float, float]:
    """Return views of all patches of a rescaled image, and its darkest and brightest pixel."""
    height, width = shape
    if image.shape[0] < height or image.shape[1] < width:
        raise ValueError(
            f"A patch of {height}×{width} does not fit into the image of {image.shape[0]}×{image.shape[1]}."
        )
    low, high = float(image.min()), float(image.max())
    if not high > low:
        raise ValueError(f"The image is constant, all pixels are {low:g}; there is nothing to reconstruct.")
    return np.lib.stride_tricks.sliding_window_view(scale * ((image - low) / (high - low)), shape), low, high


def _places(n: int, step: int) -> np.ndarray:
    """Return every ``step``-th position and the last one, so that no border is left out."""
    return np.unique(np.append(np.arange(0, n, step), n - 1))
