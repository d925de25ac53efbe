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

# Noise of images that have none, in deviations of the image.
LEAST_LEVEL = 1e-3

Progress = Callable[[float, str], None]


class Settings(NamedTuple):
    """How an image is restored; the defaults were chosen on photographs of scikit-image (benchmarks/restoration.py)."""

    patch_size: int | None = None  # height and width; None chooses by the noise
    n_components: int = 512
    n_samples: int = 100_000  # most patches that are learned from
    max_iter: int = 40
    step: int | None = None  # pixels from one patch to the next; None chooses by the size of the image
    search: Search = Search(5, 4)
    neighbourhood: Neighbourhood = Neighbourhood(8, 0.9)
    least_variance: float = 0.03  # σ² times this is added to posterior variances, whose inverses weight patches
    second_noise: float = 0.4  # part of what the first pass removed that the second one starts with; 0: one pass
    second_noise_of_means: float = 0.2  # the same for the means of patches
    second_iter: int = 8  # iterations of learning before the second pass
    memory: int = 2**30  # bytes


class Restoration(NamedTuple):
    """A restored image, and what it was restored with."""

    image: np.ndarray  # (height, width, channels)
    noise_level: float  # standard deviation
    learned: Components | None  # None for an image without any contrast
    patch_size: int


class Restorer:
    """Learns from patches of an image and restores them, and tells how far this has come.

    Parameters
    ----------
    image : array of shape (height, width, channels)
        The image, of which only the shape matters here.
    size : int
        Height and width of patches.
    settings : Settings
        How to learn and restore.
    random : RandomState
        Chooses the patches that are learned from.
    progress : callable
        Told of progress.
    n_steps : int
        How often :meth:`learn` and :meth:`restore` will be called, together.
    """

    def __init__(
        self,
        image: np.ndarray,
        size: int,
        settings: Settings,
        random: np.random.RandomState,
        progress: Progress,
        n_steps: int,
    ) -> None:
        self._settings, self._random, self._progress = settings, random, progress
        self._grid = PatchGrid(image.shape, size, settings.step or choose_step(image, size))
        self._chosen = np.sort(random.permutation(len(self._grid))[: settings.n_samples])
        self._n_steps, self._done = n_steps, 0

    def learn(
        self, image: np.ndarray, centres: np.ndarray, max_iter: int, noise_level: float, before: Components | None
    ) -> Components:
        """Return components of patches of an image, without the means of the same patches of ``centres``."""
        rows = self._grid.extract(image, self._chosen).astype(np.float32)
        rows -= patch_means(self._grid.extract(centres, self._chosen), image.shape[2])
        learned = learn_components(
            rows,
            self._settings.n_components,
            noise_level=noise_level,
            max_active=self._settings.search.max_active,
            width=self._settings.search.width,
            max_iter=max_iter,
            random=self._random,
            before=before,
            progress=lambda part: self._tell(part, "learning components"),
        )
        self._done += 1
        return learned

    def restore(
        self, image: np.ndarray, centres: np.ndarray, learned: Components, precision: np.ndarray | None = None
    ) -> np.ndarray:
        """Return the image from its restored patches, see :func:`restore_patches`."""
        restored = restore_patches(
            image,
            centres,
            self._grid,
            learned,
            search=self._settings.search,
            neighbourhood=self._settings.neighbourhood,
            least_variance=self._settings.least_variance,
            memory=self._settings.memory,
            progress=lambda part: self._tell(part, "restoring patches"),
            precision=precision,
        )
        self._done += 1
        return restored

    def _tell(self, part: float, what: str) -> None:
        self._progress(min(1.0, (self._done + part) / self._n_steps), what)


def denoise(
    image: np.ndarray, settings: Settings, random: np.random.RandomState, progress: Progress = lambda part, text: None
) -> Restoration:
    """Return an image (height, width, channels) without its noise; it has no missing pixels."""
    level = max(estimate_level(image), LEAST_LEVEL)
    size = settings.patch_size or size_for_noise(image, level)
    restorer = Restorer(image, size, settings, random, progress, n_steps=4 if settings.second_noise else 2)
    learned = restorer.learn(image, image, settings.max_iter, level, None)
    level = float(np.sqrt(learned.noise_variance))
    first = restorer.restore(image, image, learned)
    if not settings.second_noise:
        return Restoration(first, level, learned, size)
    removed = image - first
    again = first + settings.second_noise * removed
    learned = restorer.learn(again, again, settings.second_iter, settings.second_noise * level, learned)
    second = restorer.restore(again, first + settings.second_noise_of_means * removed, learned)
    return Restoration(second, level, learned, size)


def estimate_level(image: np.ndarray) -> float:
    """Return the standard deviation of the noise of an image (height, width, channels)."""
    return float(np.median([estimate_noise_level(image[..., channel]) for channel in range(image.shape[2])]))


def size_for_noise(image: np.ndarray, noise_level: float) -> int:
    """Return the height and width of patches of an image of deviation one: the more noise, the larger."""
    # The deviation of the image includes that of the noise.
    ratio = noise_level / np.sqrt(max(np.nanvar(image) - noise_level**2, 0.01))
    return 8 if ratio < 0.5 else 10 if ratio < 0.75 else 12


def choose_step(image: np.ndarray, size: int) -> int:
    """Return the pixels from one patch to the next, which grow with the image so that its time stays bearable."""
    return max(1, min(size // 2, round(float(np.sqrt(image.shape[0] * image.shape[1])) / 1000)))
