"""Compact text encoding of arrays for the page."""

from __future__ import annotations

import base64
import math
from typing import Any

import numpy as np

LEVELS = 255


def shrink_factor(n_pictures: int, size: int, budget: int, *, flat: bool) -> int:
    """Return the factor by which sides (or flat rows) must shrink for all pictures to fit into ``budget`` values."""
    ratio = n_pictures * size / budget
    return max(1, math.ceil(ratio if flat else math.sqrt(ratio)))


def shrunk(rows: np.ndarray, shape: tuple[int, int], factor: int) -> tuple[np.ndarray, tuple[int, int]]:
    """Average over blocks of pixels and return the new shape; blocks at the border may be smaller."""
    if factor == 1:
        return rows, shape
    images = rows.reshape(-1, *shape)
    for axis in (1, 2):
        places = np.arange(0, images.shape[axis], factor if shape[axis - 1] > 1 else 1)
        lengths = np.diff(np.append(places, images.shape[axis]))
        sums = np.add.reduceat(images, places, axis=axis)
        images = sums / (lengths[:, None] if axis == 1 else lengths)
    return images.reshape(len(rows), -1), (int(images.shape[1]), int(images.shape[2]))


def encoded(rows: np.ndarray, low: np.ndarray, high: np.ndarray) -> dict[str, Any]:
    """Encode rows as bytes between limits for each row."""
    span = np.where(high > low, high - low, 1)[:, None]
    levels = np.clip(np.rint((rows - low[:, None]) / span * LEVELS), 0, LEVELS).astype(np.uint8)
    return {
        "bytes": base64.b64encode(levels.tobytes()).decode("ascii"),
        "low": [short(value) for value in low],
        "high": [short(value) for value in high],
    }


def short(value: Any) -> float | None:
    """Round a number to six digits, which is more than a page shows; None for values that JSON does not have."""
    number = float(value)
    return float(f"{number:.6g}") if math.isfinite(number) else None


def thinned(values: np.ndarray, most: int) -> tuple[list[int], list[float | None]]:
    """Return at most ``most`` points of a curve, including its first and last, and their indices."""
    places = np.unique(np.linspace(0, len(values) - 1, min(most, len(values))).astype(int))
    return [int(place) for place in places], [short(values[place]) for place in places]
