"""Learning from patches of one size of an image, and restoration of these patches."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from multicause.restoration.learning import learn_components
from multicause.restoration.passes import Neighbourhood, RestoredImage, SearchSettings, patch_means, restore_patches
from multicause.restoration.patch_posterior import LearnedComponents
from multicause.restoration.patches import PatchGrid

# Numbers of components, and searches for states of patches, for little and for much detail.
FEW_COMPONENTS, MANY_COMPONENTS = 512, 1024
SHORT_SEARCH, LONG_SEARCH = SearchSettings(5, 4), SearchSettings(8, 4)
# Smallest number of patches that are learned from, if there are so many.
LEAST_PATCHES = 20_000

RestorationProgress = Callable[[float, str], None]


class RestorationSettings(NamedTuple):
    """Settings of a restoration; defaults were chosen on photographs of scikit-image (benchmarks/restoration.py)."""

    patch_size: int | None = None  # height and width; None chooses one size, or two to combine
    n_components: int | None = None  # None chooses by detail and noise
    n_samples: int = 100_000  # most patches that are learned from
    max_iter: int = 40
    step: int | None = None  # pixels from one patch to the next; None chooses by the size of the image
    search: SearchSettings = SHORT_SEARCH
    second_search: SearchSettings = (
        SHORT_SEARCH  # the same for the second pass; chosen with the number of components if that is None
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
    patch_size: int  # of these components


class Steps:
    """Progress of a restoration in several steps, which count as equally long.

    Parameters
    ----------
    progress : callable
        Function that is called with the fraction of the work that is done, and with a text.
    total : int
        Number of steps.
    """

    def __init__(self, progress: RestorationProgress, total: int) -> None:
        self._progress, self._total, self._done = progress, total, 0

    def report(self, part: float, what: str) -> None:
        """Report that a part of the current step is done."""
        self._progress(min(1.0, (self._done + part) / self._total), what)

    def finish(self) -> None:
        """Count the current step as done."""
        self._done += 1


class Restorer:
    """Learning from patches of an image and restoration of them.

    Parameters
    ----------
    shape : (int, int, int)
        Height, width and number of channels of the image.
    size : int
        Height and width of patches.
    settings : RestorationSettings
        Settings of learning and restoration.
    random : RandomState
        Random state by which patches for learning are chosen.
    steps : Steps
        Progress; each call of :meth:`learn` and of :meth:`restore` is a step.
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        size: int,
        settings: RestorationSettings,
        random: np.random.RandomState,
        steps: Steps,
    ) -> None:
        self._settings, self._random = settings, random
        #: Progress of the restoration.
        self.steps = steps
        #: Height and width of patches.
        self.size = size
        self._n_components = settings.n_components or FEW_COMPONENTS
        self._grid = grid_for(shape, size, settings)
        self._chosen = random.permutation(len(self._grid))[: settings.n_samples]

    @property
    def n_patches(self) -> int:
        """Number of patches that can be learned from."""
        return len(self._chosen)

    def patches_for(self, number: int) -> int:
        """Return how many patches are learned from, given their number for each component."""
        return min(self.n_patches, max(LEAST_PATCHES, number * self._n_components))

    def learn(
        self,
        image: np.ndarray,
        centres: np.ndarray,
        max_iter: int,
        noise_level: float,
        before: LearnedComponents | None,
        search: SearchSettings | None = None,
        n_patches: int | None = None,
    ) -> LearnedComponents:
        """Return components of patches of an image, without the means of the same patches of ``centres``.

        ``n_patches`` limits the number of patches.
        """
        search = search or self._settings.search
        chosen = np.sort(self._chosen[:n_patches])
        rows = self._grid.extract(image, chosen).astype(np.float32)
        rows -= patch_means(self._grid.extract(centres, chosen), image.shape[2])
        learned = learn_components(
            rows,
            self._n_components,
            noise_level=noise_level,
            max_active=search.max_active,
            width=search.width,
            max_iter=max_iter,
            random=self._random,
            before=before,
            progress=lambda part: self.steps.report(part, "learning components"),
        )
        self.steps.finish()
        return learned

    def restore(
        self,
        image: np.ndarray,
        centres: np.ndarray,
        learned: LearnedComponents,
        precision: np.ndarray | None = None,
        search: SearchSettings | None = None,
    ) -> RestoredImage:
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
            progress=lambda part: self.steps.report(part, "restoring patches"),
            precision=precision,
        )
        self.steps.finish()
        return restored


def grid_for(shape: tuple[int, ...], size: int, settings: RestorationSettings) -> PatchGrid:
    """Return the overlapping patches of one size of an image."""
    return PatchGrid(shape, size, settings.step or choose_step(shape, size))


def choose_step(shape: tuple[int, ...], size: int) -> int:
    """Return the pixels from one patch to the next, which grows with the image to limit the computing time."""
    return max(1, min(size // 2, round(float(np.sqrt(shape[0] * shape[1])) / 1000)))
