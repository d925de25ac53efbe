"""Checks that the data sets share."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike


def whole(number: int, name: str, least: int) -> int:
    """A whole number of at least ``least``, or an error."""
    if not isinstance(number, Integral) or isinstance(number, bool) or number < least:
        raise ValueError(f"{name} must be a whole number of at least {least}; got {number!r}.")
    return int(number)


def positive(number: float, name: str) -> float:
    """A positive finite number, or an error."""
    if not isinstance(number, Real) or isinstance(number, bool) or not (np.isfinite(number) and number > 0):
        raise ValueError(f"{name} must be a positive number; got {number!r}.")
    return float(number)


def check_dtype(dtype: Any) -> np.dtype:
    """A floating-point type that models compute in, or an error."""
    if dtype not in ("float32", "float64", np.float32, np.float64):
        raise ValueError(f"dtype must be float32 or float64; got {dtype!r}.")
    return np.dtype(dtype)


def one_per_cause(activity: float | ArrayLike | None, n_causes: int, cause: str) -> np.ndarray:
    """Activity of each cause, by default two active ones on average; ``cause`` names one in the error."""
    # A single cause cannot be active twice: then it is active in half of the rows.
    default = 0.5 if n_causes == 1 else 2 / n_causes
    given = np.asarray(default if activity is None else activity, dtype=float)
    if given.shape not in ((), (n_causes,)):
        raise ValueError(f"activity must be one number or one per {cause}, shape ({n_causes},); got {given.shape}.")
    return np.full(n_causes, given)


def check_probabilities(probabilities: np.ndarray, cause: str, look_at: str) -> None:
    """Refuse what is no probability of a cause that can occur."""
    if not (np.isfinite(probabilities).all() and (probabilities > 0).all() and (probabilities <= 1).all()):
        raise ValueError(f"Probabilities of {cause}s must lie in (0, 1]; got {probabilities}. Check {look_at}.")
