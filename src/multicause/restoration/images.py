"""Denoising and inpainting of images, which learn from the image itself."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from multicause.arrays import bytes_from
from multicause.restoration.counts import expected_counts, stabilize_counts
from multicause.restoration.denoising import SMALL_PATCHES, denoise
from multicause.restoration.inpainting import inpaint, size_for_share
from multicause.restoration.pictures import as_picture, as_pixels, with_mask
from multicause.restoration.restorer import Restoration, RestorationSettings

NOISES = ("gaussian", "poisson")


def denoise_image(
    image: ArrayLike,
    *,
    noise: str = "gaussian",
    patch_size: int | None = None,
    n_components: int | None = None,
    max_iter: int = RestorationSettings().max_iter,
    step: int | None = None,
    memory_budget: int | str = "1GiB",
    random_state: int | np.random.RandomState | None = None,
    progress: Callable[[float, str], None] | None = None,
) -> np.ndarray:
    """Remove the noise of an image, whose strength need not be known.

    Spike-and-slab causes (:class:`multicause.SpikeAndSlabCauses`) are learned from overlapping patches of the noisy
    image, and each patch is replaced by its posterior mean. A second pass denoises the result, to which a part of
    the removed noise is added. If there is little noise, this is done with patches of 8×8 and of 12×12 pixels; at each
    pixel, the result is the mixture of both whose error, estimated by Stein's lemma, is least.

    Parameters
    ----------
    image : array-like of shape (height, width) or (height, width, 3)
        Pixels in any units; those that are NaN are missing, and filled in.
    noise : {"gaussian", "poisson"}, default="gaussian"
        White noise of an unknown variance that is the same everywhere, or that of photon counts, which are
        stabilized by Anscombe's transform.
    patch_size : int, optional
        Height and width of patches in pixels. By default restorations with 8 and 12 are combined if there is little
        noise. With more noise it is 10, or 12 if there is much; it is 8 in small images, and in images with much
        detail, compared with the noise. If pixels are missing, it follows from their share.
    n_components : int, optional
        Number of components that are learned from patches. By default it is 512, or 1024 for grey images with much
        detail and little noise, whose patches are also allowed more active causes.
    max_iter : int, default=40
        Iterations of learning.
    step : int, optional
        Pixels from one patch to the next: more is faster and averages less. By default 1 up to 2.25 million pixels, and
        more for larger images.
    memory_budget : int or str, default="1GiB"
        Largest memory of temporary arrays while patches are restored; some lines of patches are restored at once in
        any case.
    random_state : int, RandomState or None
        Seed; the result of a seed is always the same on the same machine.
    progress : callable, optional
        Called with the fraction of the work that is done, from 0 to 1, and with a text that names the current step.

    Returns
    -------
    ndarray of the image's shape
        Floats in the units of the image, not clipped to the range of an integer type.

    Examples
    --------
    >>> import numpy as np
    >>> from multicause.restoration import denoise_image
    >>> stripes = np.tile([0.0, 0, 0, 0, 1, 1, 1, 1], (32, 4))
    >>> noisy = stripes + 0.3 * np.random.RandomState(0).normal(size=stripes.shape)
    >>> clean = denoise_image(noisy, n_components=8, max_iter=5, random_state=0)
    >>> bool(np.abs(clean - stripes).mean() < 0.3 * np.abs(noisy - stripes).mean())
    True
    """
    return restore_image(
        image,
        None,
        noise=noise,
        patch_size=patch_size,
        n_components=n_components,
        max_iter=max_iter,
        step=step,
        memory_budget=memory_budget,
        random_state=random_state,
        progress=progress,
    ).image


def inpaint_image(
    image: ArrayLike,
    mask: ArrayLike | None = None,
    *,
    patch_size: int | None = None,
    n_components: int | None = None,
    max_iter: int = RestorationSettings().max_iter,
    step: int | None = None,
    memory_budget: int | str = "1GiB",
    random_state: int | np.random.RandomState | None = None,
    progress: Callable[[float, str], None] | None = None,
) -> np.ndarray:
    """Fill in missing pixels; all others stay as they are.

    Missing pixels begin as a smooth interpolation. Spike-and-slab causes are learned from overlapping patches of that
    image, missing pixels are replaced by posterior means in which interpolated ones count little, and so on for five
    rounds, or ten if most are missing. Missing pixels may be scattered or form scratches and text; a hole that is
    wider than a patch cannot be restored, because its patches have no known pixels.

    Parameters
    ----------
    image : array-like of shape (height, width) or (height, width, 3)
        Pixels in any units; those that are NaN are missing.
    mask : array-like of shape (height, width) or of the image's shape, optional
        True, or not zero, where a pixel is missing.
    patch_size : int, optional
        Height and width of patches in pixels, by default larger the more is missing.
    n_components : int, optional
        Number of components that are learned from patches, by default 512.
    max_iter, step, memory_budget, random_state, progress
        As for :func:`denoise_image`.

    Returns
    -------
    ndarray of the image's shape
        Floats in the units of the image.

    Examples
    --------
    >>> import numpy as np
    >>> from multicause.restoration import inpaint_image
    >>> stripes = np.tile([0.0, 0, 0, 0, 1, 1, 1, 1], (32, 4))
    >>> lost = np.random.RandomState(0).uniform(size=stripes.shape) < 0.3
    >>> whole = inpaint_image(stripes, lost, n_components=8, max_iter=5, random_state=0)
    >>> bool(np.abs(whole - stripes)[lost].mean() < 0.1)
    True
    """
    pixels = as_pixels(image)
    missing = np.isnan(with_mask(pixels, mask))
    if not missing.any():
        return pixels
    restored = restore_image(
        image,
        mask,
        patch_size=patch_size,
        n_components=n_components,
        max_iter=max_iter,
        step=step,
        memory_budget=memory_budget,
        random_state=random_state,
        progress=progress,
    )
    return np.where(missing, restored.image, pixels)


def restore_image(
    image: ArrayLike,
    mask: ArrayLike | None,
    *,
    noise: str = "gaussian",
    memory_budget: int | str = "1GiB",
    random_state: int | np.random.RandomState | None = None,
    progress: Callable[[float, str], None] | None = None,
    **given: Any,
) -> Restoration:
    """Return the restored image in the units of the user, with noise level and components; known pixels change, too."""
    if noise not in NOISES:
        raise ValueError(f"noise must be one of {', '.join(map(repr, NOISES))}; got {noise!r}.")
    settings = _settings(memory_budget, **given)
    pixels = with_mask(as_pixels(image), mask)
    if noise == "poisson":
        if np.nanmin(pixels, initial=0) < 0:
            raise ValueError(
                f"Counts are not negative; the least pixel is {np.nanmin(pixels):g}. Subtract no background, or use "
                'noise="gaussian".'
            )
        pixels = stabilize_counts(pixels)
    picture = as_picture(pixels)
    report = progress or (lambda part, text: None)
    random = check_random_state(random_state)
    _check_patch_size(picture.values, settings)
    if picture.scale == 0:  # constant: nothing to remove, and nothing to learn
        found = Restoration(np.where(np.isnan(picture.values), 0.0, picture.values), 0.0, None, 0)
    elif np.isnan(picture.values).any():
        found = inpaint(picture.values, settings, random, report)
    else:
        found = denoise(picture.values, settings, random, report)
    restored = picture.restored(found.image)
    if noise == "poisson":
        restored = expected_counts(restored)
    level = found.noise_level * picture.scale
    if noise == "poisson":
        level *= float(np.sqrt(np.mean(restored)))  # stabilized counts have a noise of about one
    return found._replace(image=restored, noise_level=level)


def _settings(memory_budget: int | str, **given: Any) -> RestorationSettings:
    for name, value in given.items():
        optional = name in ("patch_size", "step", "n_components")
        least = 2 if name == "patch_size" else 1
        if value is None and optional:
            continue
        if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
            raise ValueError(f"{name} must be a whole number of at least {least}; got {value!r}.")
    return RestorationSettings(memory=bytes_from(memory_budget), **given)


def _check_patch_size(image: np.ndarray, settings: RestorationSettings) -> None:
    """Raise ValueError if no patch fits into the image, or if steps leave gaps between patches."""
    height, width = image.shape[:2]
    by_default = size_for_share(image) if np.isnan(image).any() else SMALL_PATCHES
    size = settings.patch_size or by_default
    if min(height, width) < size:
        raise ValueError(
            f"A patch of {size}×{size} does not fit into the image of {height}×{width}. Give a smaller patch_size, or "
            "a larger image; components are learned from many patches, so that some thousand pixels are needed."
        )
    if max(height, width) == size:
        raise ValueError(
            f"The image of {height}×{width} is a single patch of {size}×{size}; at least two patches are needed for "
            "learning. Give a smaller patch_size, or a larger image."
        )
    if settings.step is not None and settings.step > size:
        raise ValueError(
            f"step must be at most patch_size, {size}, so that patches leave no gaps; got {settings.step}."
        )
