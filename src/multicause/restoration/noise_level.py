"""The standard deviation of white noise in an image, estimated from its finest details."""

from __future__ import annotations

import numpy as np

# Median of |x| for a standard normal x.
NORMAL_MEDIAN = 0.6744897501960817


def estimate_noise_level(image: np.ndarray) -> float:
    """Return a robust estimate of the noise's standard deviation in a grey image (height, width).

    It is the median absolute diagonal difference of neighbouring pixels, (a − b − c + d) / 2, divided by that of a
    standard normal variable (Donoho & Johnstone 1994): smooth regions and straight edges have little of it, so
    most of it is noise. Pixels that are NaN are left out. Zero where no square of four pixels is known.

    Examples
    --------
    >>> import numpy as np
    >>> from multicause.restoration import estimate_noise_level
    >>> noise = np.random.RandomState(0).normal(scale=5, size=(200, 200))
    >>> round(estimate_noise_level(noise))
    5
    """
    image = np.asarray(image, dtype=float)
    details = (image[:-1, :-1] - image[1:, :-1] - image[:-1, 1:] + image[1:, 1:]) / 2
    known = np.abs(details[np.isfinite(details)])
    return float(np.median(known) / NORMAL_MEDIAN) if known.size else 0.0
