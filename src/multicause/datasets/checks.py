"""Argument checks shared by the data sets."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike


def whole(number: int, name: str, least: int) -> int:
    """Return a whole number of at least ``least``, or raise ValueError."""
    if not isinstance(number, Integral) or isinstance(number, bool) or number < least:
        raise ValueError(f"{name} must be a whole number of at least {least}; got {number!r}.")
    return int(number)


def positive(number: float, name: str) -> float:
    """Return a positive finite number, or raise ValueError."""
    if not isinstance(number, Real) or isinstance(number, bool) or not (np.isfinite(number) and number > 0):
        raise ValueError(f"{name} must be a positive number; got {number!r}.")
    return float(number)


def check_dtype(dtype: Any) -> np.dtype:
    """Return a floating-point type that models support, or raise ValueError."""
    if dtype not in ("float32", "float64", np.float32, np.float64):
        raise ValueError(f"dtype must be float32 or float64; got {dtype!r}.")
    return np.dtype(dtype)


def one_per_cause(activity: float | ArrayLike | None, n_causes: int, cause: str) -> np.ndarray:
    """Return the activity of each cause, by default two active ones on average; ``cause`` is used in the error."""
    # A single cause cannot be active twice; it is active in half of the rows.
    default = 0.5 if n_causes == 1 else 2 / n_causes
    activities = np.asarray(default if activity is None else activity, dtype=float)
    if activities.shape not in ((), (n_causes,)):
        raise ValueError(
            f"activity must be one number or one per {cause}, shape ({n_causes},); got {activities.shape}."
        )
    return np.full(n_causes, activities)


def check_probabilities(probabilities: np.ndarray, cause: str, look_at: str) -> None:
    """Raise ValueError unless all values are probabilities in (0, 1]."""
    if not (np.isfinite(probabilities).all() and (probabilities > 0).all() and (probabilities <= 1).all()):
        raise ValueError(f"Probabilities of {cause}s must lie in (0, 1]; got {probabilities}. Check {look_at}.")
