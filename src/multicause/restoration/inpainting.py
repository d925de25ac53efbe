"""Inpainting of images: components are learned from a filled image, and its missing pixels are filled in again."""

from __future__ import annotations

import numpy as np
from scipy.ndimage import gaussian_filter

from multicause.restoration.denoising import estimate_level
from multicause.restoration.restorer import Restoration, RestorationProgress, RestorationSettings, Restorer, Steps

# Initial noise of learning, in deviations of the image: patches do not explain all details of an image without noise.
LEAST_LEVEL = 0.1
# Precision of pixels that were filled in, relative to known ones.
GUESSED = 0.02
# Rounds of learning and restoring; means of patches get better from one to the next, and for longer if most pixels are
# missing: from the fifth to the eighth round, two pictures with 80 % missing gained 0.4 and 0.1 dB.
ROUNDS, MORE_ROUNDS, MOSTLY_MISSING = 5, 10, 0.7
# Weight of known pixels that a smoothed pixel needs, relative to all.
ENOUGH = 0.05


def inpaint(
    image: np.ndarray,
    settings: RestorationSettings,
    random: np.random.RandomState,
    progress: RestorationProgress = lambda part, text: None,
) -> Restoration:
    """Return an image (height, width, channels) of which pixels that are NaN have been filled in."""
    level = max(estimate_level(image), LEAST_LEVEL)
    size = settings.patch_size or size_for_share(image)
    missing = np.isnan(image)
    n_rounds = ROUNDS if missing.mean() < MOSTLY_MISSING else MORE_ROUNDS
    restorer = Restorer(image.shape, size, settings, random, Steps(progress, 2 * n_rounds))
    filled, learned = fill_smoothly(image), None
    for _ in range(n_rounds):
        max_iter = settings.max_iter if learned is None else settings.second_iter
        learned = restorer.learn(filled, filled, max_iter, level, learned)
        level = float(np.sqrt(learned.noise_variance))
        restored = restorer.restore(filled, filled, learned, np.where(missing, GUESSED, 1.0)).image
        filled = np.where(missing, restored, image)
    return Restoration(restored, level, learned, size)


def size_for_share(image: np.ndarray) -> int:
    """Return the height and width of patches: the more pixels are missing, the larger."""
    share = np.isnan(image).mean()
    return 8 if share < 0.4 else 10 if share < 0.7 else 12


def fill_smoothly(image: np.ndarray) -> np.ndarray:
    """Return an image whose missing pixels are Gaussian means of those nearby, as narrow as known pixels allow."""
    result = image.copy()
    for channel in range(image.shape[2]):
        plane = result[..., channel]  # a view
        known = ~np.isnan(plane)
        values, width = np.where(known, plane, 0.0), 0.5
        while np.isnan(plane).any():
            weights = gaussian_filter(known.astype(float), width, mode="constant", truncate=3)
            sums = gaussian_filter(values, width, mode="constant", truncate=3)
            enough = np.isnan(plane) & (weights > ENOUGH)
            plane[enough] = sums[enough] / weights[enough]
            width *= 1.5
            if width > 2 * max(plane.shape):  # there are very few known pixels
                plane[np.isnan(plane)] = values.sum() / known.sum() if known.any() else 0.0
    return result
