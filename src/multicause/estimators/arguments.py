"""Checks of arguments that methods of several kinds of fitted models take."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from multicause.arrays import check_room


def validate_causes(S: ArrayLike, n_components: int, dtype: np.dtype) -> np.ndarray:
    """Return causes (n_samples, n_components) in a dtype; raise ValueError if they have another shape or hold NaN."""
    causes = np.asarray(S, dtype=dtype)
    if causes.ndim != 2 or causes.shape[1] != n_components:
        raise ValueError(
            f"Causes must have shape (n_samples, {n_components}), one column per cause; got {causes.shape}."
        )
    if not np.isfinite(causes).all():
        raise ValueError("Causes must be finite; they hold NaN or infinity.")
    return causes


def validate_n_samples(n_samples: Any, width: int, dtype: np.dtype) -> int:
    """Return the number of rows to draw; raise an error if rows of this width would not fit into memory."""
    if not isinstance(n_samples, Integral) or isinstance(n_samples, bool) or n_samples < 1:
        raise ValueError(f"n_samples must be a whole number of at least 1; got {n_samples!r}.")
    check_room(int(n_samples), width, dtype)
    return int(n_samples)
