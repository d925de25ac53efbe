"""Overlapping patches of an image, and an image as the weighted mean of its patches."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np

from multicause.arrays import Array, namespace


class PatchGrid:
    """Square patches of an image (height, width, channels), ``step`` pixels apart, which cover all of its pixels.

    Parameters
    ----------
    shape : (int, int, int)
        Height, width and number of channels of the image.
    size : int
        Height and width of a patch.
    step : int
        Pixels from one patch to the next; the last patch of each direction touches the border.
    """

    def __init__(self, shape: tuple[int, ...], size: int, step: int = 1) -> None:
        self.image_shape, self.size, self.step = shape, size, step
        self.tops, self.lefts = (_places(side - size + 1, step) for side in shape[:2])
        #: Number of patches in each direction.
        self.shape = len(self.tops), len(self.lefts)

    def __len__(self) -> int:
        return len(self.tops) * len(self.lefts)

    def strip(self, begin: int, end: int) -> PatchGrid:
        """Return the patches of the lines ``begin`` to ``end`` of patches, without the last, of the same image."""
        part = copy(self)
        part.tops = self.tops[begin:end]
        part.shape = len(part.tops), len(part.lefts)
        return part

    def extract(self, image: np.ndarray, chosen: np.ndarray | None = None) -> np.ndarray:
        """Return all patches, or those with the ``chosen`` numbers, as rows (n, size · size · channels)."""
        windows = np.lib.stride_tricks.sliding_window_view(image, (self.size, self.size), axis=(0, 1))
        if chosen is None:
            patches = windows[np.ix_(self.tops, self.lefts)]
        else:
            patches = windows[self.tops[chosen // self.shape[1]], self.lefts[chosen % self.shape[1]]]
        # The axes of a window come last; a row has the order of the image's own axes.
        return np.moveaxis(patches, -3, -1).reshape(-1, self.size**2 * self.image_shape[2])

    def add(self, rows: np.ndarray, weights: np.ndarray, sums: np.ndarray, totals: np.ndarray) -> None:
        """Add patches (n, size · size · channels), times their weights, to ``sums``, and the weights to ``totals``.

        ``weights`` (n, m) has the weight of each patch in its first column; further columns are summed likewise, in
        ``totals`` (height, width, m). The mean over all patches at each pixel is ``sums / totals[..., :1]``.
        """
        patches = rows.reshape(*self.shape, self.size, self.size, -1)
        weights = weights.reshape(*self.shape, -1)
        for y in range(self.size):
            for x in range(self.size):
                place = np.ix_(self.tops + y, self.lefts + x)
                sums[place] += weights[..., :1] * patches[:, :, y, x]
                totals[place] += weights

    def average_nearby(self, values: Array | np.ndarray, radius: int) -> Any:
        """Return the mean of values (n, m) of patches over those at most ``radius`` patches away, in a square.

        Values on a device stay there.
        """
        library = namespace(values)
        means = library.reshape(values, (*self.shape, -1))
        for axis in (0, 1):
            n = means.shape[axis]
            sums = library.cumsum(means, axis=axis, dtype=np.float32)
            ends = np.minimum(np.arange(n) + radius + 1, n)
            begins = np.maximum(np.arange(n) - radius, 0)
            along = (-1, 1, 1) if axis == 0 else (1, -1, 1)
            counts = (ends - begins).astype(np.float32).reshape(along)
            before = library.take(sums, np.maximum(begins - 1, 0), axis=axis) * (begins > 0).reshape(along)
            means = (library.take(sums, ends - 1, axis=axis) - before) / counts
        return library.maximum(means, 0).reshape(len(self), -1)


def _places(n: int, step: int) -> np.ndarray:
    """Return every ``step``-th of n places, and the last."""
    return np.unique(np.append(np.arange(0, n, step), n - 1))
