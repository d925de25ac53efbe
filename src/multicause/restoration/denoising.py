"""Denoising of images: components are learned from noisy patches, which are replaced by their posterior means."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from multicause.restoration.learning import learn_components
from multicause.restoration.noise_level import estimate_noise_level
from multicause.restoration.passes import Neighbourhood, SearchSettings, patch_means, restore_patches
from multicause.restoration.patch_posterior import LearnedComponents
from multicause.restoration.patches import PatchGrid

# Noise of images that have none, in deviations of the image.
LEAST_LEVEL = 1e-3
# Variance of the signal within patches, relative to the noise, from which on patches need more active causes in the
# second pass, and from which on more components can be learned, with more active causes. Of eleven noisy photographs,
# larger models gained 0.2 to 0.5 dB above the second threshold, 0.0 to 0.2 dB between the two, and lost up to 0.2 dB
# below the first. In the second pass, which has less noise, eight active causes gained 0.02 and 0.3 dB on two crops.
MUCH_DETAIL, VERY_MUCH_DETAIL = 0.85, 1.7
# Sides of the patches in which this is measured.
SIDE_OF_DETAIL = 8
# Numbers of components, and searches for states of patches, for little and for much detail.
FEWEST, MOST = 512, 1024
SHORT, LONG = SearchSettings(5, 4), SearchSettings(8, 4)

RestorationProgress = Callable[[float, str], None]


class RestorationSettings(NamedTuple):
    """Settings of a restoration; defaults were chosen on photographs of scikit-image (benchmarks/restoration.py)."""

    patch_size: int | None = None  # height and width; None chooses by the noise
    n_components: int | None = None  # None chooses by detail and noise
    n_samples: int = 100_000  # most patches that are learned from
    max_iter: int = 40
    step: int | None = None  # pixels from one patch to the next; None chooses by the size of the image
    search: SearchSettings = SHORT
    second_search: SearchSettings = (
        SHORT  # the same for the second pass; chosen with the number of components if that is None
    )
    neighbourhood: Neighbourhood = Neighbourhood(8, 0.9)
    least_variance: float = 0.03  # σ² times this is added to posterior variances, whose inverses weight patches
    second_noise: float = 0.4  # part of what the first pass removed that the second one starts with; 0: one pass
    second_noise_of_means: float = 0.2  # the same for the means of patches
    second_iter: int = 8  # iterations of learning before the second pass
    memory: int = 2**30  # bytes


class Restoration(NamedTuple):
    """A restored image, with the noise level and the components that were used."""

    image: np.ndarray  # (height, width, channels)
    noise_level: float  # standard deviation
    learned: LearnedComponents | None  # None for an image without any contrast
    patch_size: int


class Restorer:
    """Learning from patches of an image and restoration of them, with reports of progress.

    Parameters
    ----------
    image : array of shape (height, width, channels)
        Image; only its shape is used here.
    size : int
        Height and width of patches.
    settings : RestorationSettings
        Settings of learning and restoration.
    random : RandomState
        Random state by which patches for learning are chosen.
    progress : callable
        Function that is called with the progress.
    n_steps : int
        Total number of calls of :meth:`learn` and :meth:`restore`.
    """

    def __init__(
        self,
        image: np.ndarray,
        size: int,
        settings: RestorationSettings,
        random: np.random.RandomState,
        progress: RestorationProgress,
        n_steps: int,
    ) -> None:
        self._settings, self._random, self._progress = settings, random, progress
        self._n_components = settings.n_components or FEWEST
        self._grid = PatchGrid(image.shape, size, settings.step or choose_step(image, size))
        self._chosen = np.sort(random.permutation(len(self._grid))[: settings.n_samples])
        self._n_steps, self._done = n_steps, 0

    def learn(
        self,
        image: np.ndarray,
        centres: np.ndarray,
        max_iter: int,
        noise_level: float,
        before: LearnedComponents | None,
        search: SearchSettings | None = None,
    ) -> LearnedComponents:
        """Return components of patches of an image, without the means of the same patches of ``centres``."""
        search = search or self._settings.search
        rows = self._grid.extract(image, self._chosen).astype(np.float32)
        rows -= patch_means(self._grid.extract(centres, self._chosen), image.shape[2])
        learned = learn_components(
            rows,
            self._n_components,
            noise_level=noise_level,
            max_active=search.max_active,
            width=search.width,
            max_iter=max_iter,
            random=self._random,
            before=before,
            progress=lambda part: self._report(part, "learning components"),
        )
        self._done += 1
        return learned

    def restore(
        self,
        image: np.ndarray,
        centres: np.ndarray,
        learned: LearnedComponents,
        precision: np.ndarray | None = None,
        search: SearchSettings | None = None,
    ) -> np.ndarray:
        """Return the image from its restored patches, see :func:`restore_patches`."""
        restored = restore_patches(
            image,
            centres,
            self._grid,
            learned,
            search=search or self._settings.search,
            neighbourhood=self._settings.neighbourhood,
            least_variance=self._settings.least_variance,
            memory=self._settings.memory,
            progress=lambda part: self._report(part, "restoring patches"),
            precision=precision,
        )
        self._done += 1
        return restored

    def _report(self, part: float, what: str) -> None:
        self._progress(min(1.0, (self._done + part) / self._n_steps), what)


def denoise(
    image: np.ndarray,
    settings: RestorationSettings,
    random: np.random.RandomState,
    progress: RestorationProgress = lambda part, text: None,
) -> Restoration:
    """Return an image (height, width, channels) without its noise; it has no missing pixels."""
    level = max(estimate_level(image), LEAST_LEVEL)
    size = settings.patch_size or size_for_noise(image, level)
    if settings.n_components is None:
        settings = with_model_for(image, level, settings)
    restorer = Restorer(image, size, settings, random, progress, n_steps=4 if settings.second_noise else 2)
    learned = restorer.learn(image, image, settings.max_iter, level, None)
    level = float(np.sqrt(learned.noise_variance))
    first = restorer.restore(image, image, learned)
    if not settings.second_noise:
        return Restoration(first, level, learned, size)
    removed = image - first
    again = first + settings.second_noise * removed
    more = settings.second_search
    learned = restorer.learn(again, again, settings.second_iter, settings.second_noise * level, learned, more)
    second = restorer.restore(again, first + settings.second_noise_of_means * removed, learned, search=more)
    return Restoration(second, level, learned, size)


def estimate_level(image: np.ndarray) -> float:
    """Return the standard deviation of the noise of an image (height, width, channels)."""
    return float(np.median([estimate_noise_level(image[..., channel]) for channel in range(image.shape[2])]))


def size_for_noise(image: np.ndarray, noise_level: float) -> int:
    """Return the height and width of patches of an image of deviation one: the more noise, the larger."""
    # The deviation of the image includes that of the noise.
    ratio = noise_level / np.sqrt(max(np.nanvar(image) - noise_level**2, 0.01))
    return 8 if ratio < 0.5 else 10 if ratio < 0.75 else 12


def with_model_for(image: np.ndarray, noise_level: float, settings: RestorationSettings) -> RestorationSettings:
    """Return settings with the number of components and of active causes: the more detail and the less noise, the more.

    Coloured patches keep the smaller number of components, as they take three times as long.
    """
    detail = detail_of(image, noise_level)
    large = detail > VERY_MUCH_DETAIL and image.shape[2] == 1
    return settings._replace(
        n_components=MOST if large else FEWEST,
        search=LONG if large else SHORT,
        second_search=LONG if detail > MUCH_DETAIL else SHORT,
    )


def detail_of(image: np.ndarray, noise_level: float) -> float:
    """Return the variance of the signal within patches, relative to that of the noise."""
    # Patches that do not overlap are enough for a mean.
    height, width = (length // SIDE_OF_DETAIL * SIDE_OF_DETAIL for length in image.shape[:2])
    blocks = image[:height, :width].reshape(
        height // SIDE_OF_DETAIL, SIDE_OF_DETAIL, width // SIDE_OF_DETAIL, SIDE_OF_DETAIL, -1
    )
    if blocks.size == 0:
        return 0.0
    return float(np.mean(np.var(blocks, axis=(1, 3), ddof=1, dtype=np.float64))) / noise_level**2 - 1


def choose_step(image: np.ndarray, size: int) -> int:
    """Return the pixels from one patch to the next, which grows with the image to limit the computing time."""
    return max(1, min(size // 2, round(float(np.sqrt(image.shape[0] * image.shape[1])) / 1000)))
