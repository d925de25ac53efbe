"""Images without their noise: components are learned from noisy patches, which are replaced by posterior means."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from multicause.restoration.inference import Components
from multicause.restoration.learning import learn_components
from multicause.restoration.noise_level import estimate_noise_level
from multicause.restoration.passes import Neighbourhood, Search, patch_means, restore_patches
from multicause.restoration.patches import PatchGrid

Progress = Callable[[float, str], None]


class Settings(NamedTuple):
    """How an image is restored. The defaults were chosen on photographs of scikit-image, see benchmarks/restoration.py."""

    patch_size: int | None = None  # height and width; None chooses by the noise
    n_components: int = 512
    n_samples: int = 20_000  # patches that are learned from
    max_iter: int = 40
    step: int | None = None  # pixels from one patch to the next; None chooses by the size of the image
    search: Search = Search(5, 4)
    neighbourhood: Neighbourhood = Neighbourhood(8, 0.9)
    steady: float = 0.03
    rest: float = 0.4  # part of what the first pass took away that the second one gets back; 0 leaves it out
    rest_of_means: float = 0.2  # the same for means of patches
    max_iter_again: int = 8  # iterations of learning between both passes
    blend: float = 1.0  # weight of the second pass in the result
    memory: int = 2**30  # bytes


class Restoration(NamedTuple):
    """A restored image, and what it was restored with."""

    image: np.ndarray  # (height, width, channels)
    noise_level: float  # standard deviation
    learned: Components
    patch_size: int


def denoise(
    image: np.ndarray, settings: Settings, random: np.random.RandomState, progress: Progress = lambda part, text: None
) -> Restoration:
    """Return an image (height, width, channels) without its noise; it has no missing pixels."""
    level = float(np.median([estimate_noise_level(image[..., c]) for c in range(image.shape[2])]))
    size = settings.patch_size or choose_patch_size(image, level)
    grid = PatchGrid(image.shape, size, settings.step or choose_step(image))
    chosen = np.sort(random.permutation(len(grid))[: settings.n_samples])

    def learn(source: np.ndarray, max_iter: int, level: float, before: Components | None, part: float) -> Components:
        rows = grid.extract(source, chosen).astype(np.float32)
        rows -= patch_means(rows, image.shape[2])
        return learn_components(
            rows,
            settings.n_components,
            noise_level=level,
            max_active=settings.search.max_active,
            width=settings.search.width,
            max_iter=max_iter,
            random=random,
            before=before,
            progress=lambda done: progress(part + 0.25 * done, "learning components"),
        )

    def restore(source: np.ndarray, centres: np.ndarray, learned: Components, part: float) -> np.ndarray:
        return restore_patches(
            source,
            centres,
            grid,
            learned,
            search=settings.search,
            neighbourhood=settings.neighbourhood,
            steady=settings.steady,
            memory=settings.memory,
            progress=lambda done: progress(part + 0.25 * done, "restoring patches"),
        )

    learned = learn(image, settings.max_iter, level, None, 0.0)
    level = float(np.sqrt(learned.noise_variance))
    first = restore(image, image, learned, 0.25)
    if not settings.rest:
        return Restoration(first, level, learned, size)
    again = first + settings.rest * (image - first)
    learned = learn(again, settings.max_iter_again, settings.rest * level, learned, 0.5)
    second = restore(again, first + settings.rest_of_means * (image - first), learned, 0.75)
    return Restoration(settings.blend * second + (1 - settings.blend) * first, level, learned, size)


def choose_patch_size(image: np.ndarray, noise_level: float) -> int:
    """Return the height and width of patches: the more noise, the larger."""
    return 10


def choose_step(image: np.ndarray) -> int:
    """Return the pixels from one patch to the next, which grow with the image so that its time stays bearable."""
    return max(1, round(np.sqrt(image.shape[0] * image.shape[1]) / 1000))
