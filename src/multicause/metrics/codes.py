"""Sparseness, coding cost and dependence of a representation: TN10 eq. 10.27 and §10.4, figures 10.9–10.11."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from multicause.runtime.optional import need


def kurtosis(values: ArrayLike, axis: int | None = None) -> np.ndarray:
    """Compute the excess kurtosis: zero for a Gaussian, positive for sparse values (eq. 10.27).

    This is the fourth central moment over the squared variance, minus 3.
    """
    from scipy import stats  # slow to import

    v = np.asarray(values, dtype=float)
    if not np.isfinite(v).all():
        raise ValueError("kurtosis needs finite values; got NaN or infinity.")
    if (np.ptp(v, axis=axis) == 0).any():
        raise ValueError("kurtosis needs values that vary; some do not.")
    return stats.kurtosis(v, axis=axis)


def coding_cost(values: ArrayLike, *, step: float) -> float:
    """Compute the entropy of values rounded to multiples of ``step``, in bits for each value (TN10 §10.4).

    This is the cost of the best code of one unit, if values have this precision and are treated as independent.
    """
    from scipy import stats  # slow to import

    if not (np.isfinite(step) and step > 0):
        raise ValueError(f"step must be a positive number, the precision of the code; got {step!r}.")
    v = np.asarray(values, dtype=float).ravel()
    if v.size == 0 or not np.isfinite(v).all():
        raise ValueError("coding_cost needs at least one value, and finite ones.")
    _, counts = np.unique(np.round(v / step), return_counts=True)
    return float(stats.entropy(counts, base=2))


class Decomposition(NamedTuple):
    """Multi-resolution decomposition of an image; lists are ordered from the coarsest scale to the finest."""

    low: np.ndarray
    horizontal: list[np.ndarray]  # details that vary from top to bottom, such as horizontal edges
    vertical: list[np.ndarray]  # details that vary from left to right
    diagonal: list[np.ndarray]


def decompose(image: ArrayLike, *, levels: int = 3, wavelet: str = "db4") -> Decomposition:
    """Decompose an image (height, width) by wavelets, TN10 figures 10.9 and 10.10.

    The decomposition is orthogonal and complete, with as many outputs as pixels. It needs PyWavelets, which the extra
    ``images`` installs.
    """
    pywt = need("pywt", "decompose", "images", name="PyWavelets")
    pixels = np.asarray(image, dtype=float)
    if pixels.ndim != 2:
        raise ValueError(f"An image must have two dimensions; got shape {pixels.shape}.")
    low, *details = pywt.wavedec2(pixels, wavelet, mode="periodization", level=levels)
    return Decomposition(low, *(list(part) for part in zip(*details, strict=True)))


def conditional_histogram(
    child: ArrayLike, parent: ArrayLike, *, bins: int = 41, limit: float | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Compute p[v_c | v_p] with columns scaled to a peak of one: (bins, bins), and the bin edges (figure 10.11).

    If outputs are independent all columns are equal; a bow tie shows that the child varies more where the parent is
    large. Columns without any value are NaN.
    """
    c, p = (np.asarray(values, dtype=float).ravel() for values in (child, parent))
    if c.shape != p.shape or c.size == 0:
        raise ValueError(f"child and parent must have the same number of values; got {c.size} and {p.size}.")
    limit = 3 * max(c.std(), p.std()) if limit is None else limit
    edges = np.linspace(-limit, limit, bins + 1)
    counts = np.histogram2d(c, p, bins=(edges, edges))[0]
    peaks = counts.max(axis=0)
    return np.where(peaks > 0, counts / np.where(peaks > 0, peaks, 1), np.nan), edges
