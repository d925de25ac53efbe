"""Denoising of images: components are learned from noisy patches, which are replaced by their posterior means.

There are two passes; the second one denoises the restored image, to which a part of the noise that the first one
removed is added. If there is little noise, both passes are done with small and with large patches, whose results are
combined (:mod:`multicause.restoration.combining`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from multicause.restoration.combining import Estimate, combine
from multicause.restoration.noise_level import estimate_noise_level
from multicause.restoration.patch_posterior import LearnedComponents
from multicause.restoration.patches import PatchGrid
from multicause.restoration.restorer import (
    FEW_COMPONENTS,
    LONG_SEARCH,
    MANY_COMPONENTS,
    SHORT_SEARCH,
    Restoration,
    RestorationProgress,
    RestorationSettings,
    Restorer,
    Steps,
    grid_for,
)

# Noise of images that have none, in deviations of the image.
LEAST_LEVEL = 1e-3
# Heights and widths of patches.
SMALL_PATCHES, MEDIUM_PATCHES, LARGE_PATCHES = 8, 10, 12
# Standard deviations of the noise, relative to that of the image, from which on patches have one size, and from which
# on that is the largest. Small and large patches were combined into 35.02 dB with a ratio of 0.34 (one size 34.88), but
# into 32.94 with 0.55 and 29.47 with 1.1 (one size: 33.04 and 29.99), because components then follow the noise, which
# the estimate of the errors does not include.
SOME_NOISE, MUCH_NOISE = 0.5, 0.75
# Share of the noise that a linear filter leaves, from which on an image has so much detail that small patches are best.
# Of 33 pairs of picture and noise, 11 are above; patches of 10 instead of 8 pixels lost 0.03 to 0.43 dB in ten of them,
# and gained 0.14 dB in one. Of the other 22, they gained up to 1.15 dB in 19, and lost 0.16, 0.04 and 0.00 dB in three.
DETAIL_FOR_SMALL_PATCHES = 0.15
MOST_PATCHES_OF_FILTER = 100_000
# Variance of the signal within patches, relative to the noise, from which on patches need more active causes in the
# second pass, and from which on more components can be learned, with more active causes. Of eleven noisy photographs,
# larger models gained 0.2 to 0.5 dB above the second threshold, 0.0 to 0.2 dB between the two, and lost up to 0.2 dB
# below the first. In the second pass, which has less noise, eight active causes gained 0.02 and 0.3 dB on two crops.
DETAIL_FOR_LONG_SEARCH, DETAIL_FOR_LARGE_MODEL = 0.85, 1.7
# Height and width of the blocks in which this is measured.
DETAIL_BLOCK_SIZE = 8
# With two sizes of patches, the first iterations of learning are those of fewer patches, so that both together take as
# long as one would: patches of each component, and share of the iterations. The second pass begins with learned
# components, and learns from fewer patches as well. (House, σ = 15, patches of 10 pixels: 34.94 instead of 35.01 dB, in
# half of the time.)
FIRST_PATCHES, FIRST_SHARE = 40, 0.6
SECOND_PATCHES = 60


class Pass(NamedTuple):
    """Result of one pass with patches of one size."""

    estimate: Estimate
    learned: LearnedComponents
    level: float  # standard deviation of the noise of the image


def denoise(
    image: np.ndarray,
    settings: RestorationSettings,
    random: np.random.RandomState,
    progress: RestorationProgress = lambda part, text: None,
) -> Restoration:
    """Return an image (height, width, channels) without its noise; it has no missing pixels."""
    level = max(estimate_level(image), LEAST_LEVEL)
    if settings.n_components is None:
        settings = with_model_for(image, level, settings)
    sizes = (settings.patch_size,) if settings.patch_size else sizes_for(image, level, settings)
    steps = Steps(progress, (5 if settings.second_noise else 3) * len(sizes))
    restorers = [Restorer(image.shape, size, settings, random, steps) for size in sizes]
    n_first, n_second = (FIRST_PATCHES, SECOND_PATCHES) if len(sizes) > 1 else (None, None)
    passes = [first_pass(restorer, image, level, settings, n_first) for restorer in restorers]
    restored, best = combined(passes, image)
    if settings.second_noise:
        pairs = zip(restorers, passes, strict=True)
        passes = [second_pass(restorer, image, restored, first, settings, n_second) for restorer, first in pairs]
        restored, best = combined(passes, image)
    return Restoration(restored, passes[best].level, passes[best].learned, sizes[best])


def combined(passes: Sequence[Pass], image: np.ndarray) -> tuple[np.ndarray, int]:
    """Return the combination of passes with patches of different sizes, and which of them has the largest weight."""
    noise_variance = float(np.mean([each.level**2 for each in passes]))
    return combine([each.estimate for each in passes], image, noise_variance)


def first_pass(
    restorer: Restorer, image: np.ndarray, level: float, settings: RestorationSettings, per_component: int | None
) -> Pass:
    """Learn from patches of the noisy image, and restore them.

    ``per_component`` limits the number of patches of the first iterations, relative to the number of components.
    """
    n_first = restorer.n_patches if per_component is None else restorer.patches_for(per_component)
    first_iter = min(round(FIRST_SHARE * settings.max_iter), settings.max_iter - 1)
    learned = None
    if n_first < restorer.n_patches and first_iter > 0:
        learned = restorer.learn(image, image, first_iter, level, None, n_patches=n_first)
        level = float(np.sqrt(learned.noise_variance))
    else:
        first_iter = 0
        restorer.steps.finish()
    learned = restorer.learn(image, image, settings.max_iter - first_iter, level, learned)
    restored = restorer.restore(image, image, learned)
    # The mean of a patch, which is kept as it is, depends on each of its pixels, too.
    dependence = restored.variance / learned.noise_variance + 1 / restorer.size**2
    return Pass(Estimate(restored.image, dependence), learned, float(np.sqrt(learned.noise_variance)))


def second_pass(
    restorer: Restorer,
    image: np.ndarray,
    restored: np.ndarray,
    first: Pass,
    settings: RestorationSettings,
    per_component: int | None,
) -> Pass:
    """Learn from patches of the restored image, to which a part of the noise is added, and restore them."""
    removed = image - restored
    again = restored + settings.second_noise * removed
    level, search = settings.second_noise * first.level, settings.second_search
    n_patches = None if per_component is None else restorer.patches_for(per_component)
    learned = restorer.learn(again, again, settings.second_iter, level, first.learned, search, n_patches)
    centres = restored + settings.second_noise_of_means * removed
    result = restorer.restore(again, centres, learned, search=search).image
    # The second pass changes little, so that its result is taken to depend on the noisy image as that of the first.
    return Pass(first.estimate._replace(image=result), learned, first.level)


def estimate_level(image: np.ndarray) -> float:
    """Return the standard deviation of the noise of an image (height, width, channels)."""
    return float(np.median([estimate_noise_level(image[..., channel]) for channel in range(image.shape[2])]))


def sizes_for(image: np.ndarray, noise_level: float, settings: RestorationSettings) -> tuple[int, ...]:
    """Return the heights and widths of patches of an image of deviation one: the more noise, the larger.

    Two sizes are combined if there is little noise, unless there is so much detail that a large model is learned, which
    takes long. With more noise, small patches are used if there is much detail.
    """
    n_components = settings.n_components or FEW_COMPONENTS
    # The deviation of the image includes that of the noise.
    ratio = noise_level / np.sqrt(max(np.var(image) - noise_level**2, 0.01))
    large_model = settings.search == LONG_SEARCH
    if ratio < SOME_NOISE:
        sizes = (SMALL_PATCHES,) if large_model else (SMALL_PATCHES, LARGE_PATCHES)
    elif not large_model and noise_left_by_filter(image, noise_level) > DETAIL_FOR_SMALL_PATCHES:
        sizes = (SMALL_PATCHES,)
    else:
        sizes = (MEDIUM_PATCHES if ratio < MUCH_NOISE else LARGE_PATCHES,)
    # A small image may have fewer large patches than components.
    fitting = [size for size in sizes if size <= min(image.shape[:2])]
    enough = [size for size in fitting if len(grid_for(image.shape, size, settings)) >= n_components]
    return tuple(enough) or (SMALL_PATCHES,)


def noise_left_by_filter(image: np.ndarray, noise_level: float) -> float:
    """Return the share of the noise that the best linear filter of small patches leaves (Wiener's filter).

    Along a principal component with the variance λ without noise, it leaves λ / (λ + σ²) of it.
    """
    grid = PatchGrid((*image.shape[:2], 1), SMALL_PATCHES)
    some = np.linspace(0, len(grid) - 1, min(len(grid), MOST_PATCHES_OF_FILTER)).astype(int)
    shares = []
    for channel in range(image.shape[2]):
        rows = grid.extract(image[..., channel, None], some)
        rows = rows - rows.mean(axis=1, keepdims=True)
        variances = np.linalg.eigvalsh(rows.T.astype(np.float64) @ rows / len(rows))
        signal = np.maximum(variances - noise_level**2, 0)
        shares.append(np.mean(signal / (signal + noise_level**2)))
    return float(np.mean(shares))


def with_model_for(image: np.ndarray, noise_level: float, settings: RestorationSettings) -> RestorationSettings:
    """Return settings with the number of components and of active causes: the more detail and the less noise, the more.

    Coloured patches keep the smaller number of components, as they take three times as long.
    """
    detail = detail_of(image, noise_level)
    large = detail > DETAIL_FOR_LARGE_MODEL and image.shape[2] == 1
    return settings._replace(
        n_components=MANY_COMPONENTS if large else FEW_COMPONENTS,
        search=LONG_SEARCH if large else SHORT_SEARCH,
        second_search=LONG_SEARCH if detail > DETAIL_FOR_LONG_SEARCH else SHORT_SEARCH,
    )


def detail_of(image: np.ndarray, noise_level: float) -> float:
    """Return the variance of the signal within patches, relative to that of the noise."""
    # Patches that do not overlap are enough for a mean.
    height, width = (length // DETAIL_BLOCK_SIZE * DETAIL_BLOCK_SIZE for length in image.shape[:2])
    blocks = image[:height, :width].reshape(
        height // DETAIL_BLOCK_SIZE, DETAIL_BLOCK_SIZE, width // DETAIL_BLOCK_SIZE, DETAIL_BLOCK_SIZE, -1
    )
    if blocks.size == 0:
        return 0.0
    return float(np.mean(np.var(blocks, axis=(1, 3), ddof=1, dtype=np.float64))) / noise_level**2 - 1
