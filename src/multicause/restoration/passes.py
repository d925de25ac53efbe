"""One pass over all patches of an image: each is replaced by its posterior mean, and overlapping ones are averaged."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from multicause.restoration.patch_posterior import LearnedComponents, Restored, infer
from multicause.restoration.patches import PatchGrid

# Arrays of (patches, causes) that are alive at once.
ARRAYS_PER_CAUSE = 6

# Probabilities stay below one, so that a patch may differ from all patches nearby.
MOST_ACTIVE = 0.7


class Neighbourhood(NamedTuple):
    """Causes of a patch are as probable as in patches nearby, mixed with their probability in the whole image."""

    radius: int  # pixels; 0 uses the probabilities of the whole image alone
    share: float  # of the patches nearby


class RestoredImage(NamedTuple):
    """Weighted means over all restored patches at each pixel."""

    image: np.ndarray  # (height, width, channels)
    variance: np.ndarray  # (height, width, 1) of the posterior


class SearchSettings(NamedTuple):
    """Settings of the beam search for states of a patch."""

    max_active: int
    width: int


def restore_patches(
    image: np.ndarray,
    centres: np.ndarray,
    grid: PatchGrid,
    learned: LearnedComponents,
    *,
    search: SearchSettings,
    neighbourhood: Neighbourhood,
    least_variance: float,
    memory: int,
    progress: Callable[[float], None],
    precision: np.ndarray | None = None,
) -> RestoredImage:
    """Return the weighted mean of all restored patches at each pixel.

    Parameters
    ----------
    image : array of shape (height, width, channels)
        Pixels.
    centres : array of the same shape
        Image from which the means of patches are computed, which are subtracted before and added after inference.
    grid : PatchGrid
        Patches of the image.
    learned : LearnedComponents
        Learned parameters.
    search, neighbourhood : SearchSettings, Neighbourhood
        Settings of the inference of causes.
    least_variance : float
        Patches have the weight 1 / (posterior variance + ``least_variance`` · σ²).
    memory : int
        Bytes for temporary arrays; lines of patches are worked through in strips.
    progress : callable
        Function that is called with the fraction of the work that is done.
    precision : array of the same shape, optional
        σ² over the variance of the noise of each pixel, by default one everywhere.
    """
    sums, totals = np.zeros(image.shape), np.zeros((*image.shape[:2], 2))
    lines, per_line = grid.shape
    step = grid.step
    radius = -(-neighbourhood.radius // step) if neighbourhood.radius else 0
    bytes_per_line = per_line * 4 * (ARRAYS_PER_CAUSE * len(learned.components) + 6 * learned.components.shape[1])
    height = max(1, memory // bytes_per_line - 2 * radius)
    for begin in range(0, lines, height):
        end = min(begin + height, lines)
        outer = grid.strip(max(0, begin - radius), min(end + radius, lines))
        rows = outer.extract(image).astype(np.float32)
        means = patch_means(outer.extract(centres), image.shape[2])
        rows -= means
        certain = None if precision is None else outer.extract(precision)
        restored = infer(rows, learned, *search, precision=certain)
        inner = slice((begin - max(0, begin - radius)) * per_line, (end - max(0, begin - radius)) * per_line)
        if radius:
            nearby = outer.average_nearby(restored.active, radius)[inner]
            everywhere = (1 - neighbourhood.share) * learned.activity.astype(np.float32)
            activity = (neighbourhood.share * nearby + everywhere).clip(max=MOST_ACTIVE)
            certain = None if certain is None else certain[inner]
            restored = infer(rows[inner], learned, *search, activity, certain)
        else:
            restored = Restored(restored.mean[inner], restored.variance[inner], restored.active[inner])
        weights = 1 / (restored.variance + least_variance * learned.noise_variance)
        columns = np.stack([weights, weights * restored.variance], axis=1)
        grid.strip(begin, end).add(restored.mean + means[inner], columns, sums, totals)
        progress(end / lines)
    total, variance = totals[..., :1], totals[..., 1:]
    return RestoredImage(np.divide(sums, total, out=sums).astype(image.dtype), variance / total)


def patch_means(rows: np.ndarray, n_channels: int) -> np.ndarray:
    """Return the mean of each patch and channel, for each of its values: (n, D)."""
    means = rows.reshape(len(rows), -1, n_channels).mean(axis=1, dtype=np.float64)
    return np.tile(means, rows.shape[1] // n_channels).astype(np.float32)
