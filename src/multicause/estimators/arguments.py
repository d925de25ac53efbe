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


def check_count(name: str, value: Any, least: int = 1) -> None:
    """Raise ValueError unless a value is a whole number of at least ``least``."""
    if not isinstance(value, Integral) or isinstance(value, bool) or int(value) < least:
        raise ValueError(f"{name} must be a whole number of at least {least}; got {value!r}.")


def random_of_batch(random_state: Any, n_iter: int) -> Any:
    """Return the random state of a later batch of a stream; an integer seed gives each batch different numbers."""
    return np.random.RandomState([int(random_state), n_iter]) if isinstance(random_state, Integral) else random_state


def validate_n_samples(n_samples: Any, width: int, dtype: np.dtype) -> int:
    """Return the number of rows to draw; raise an error if rows of this width would not fit into memory."""
    check_count("n_samples", n_samples)
    check_room(int(n_samples), width, dtype)
    return int(n_samples)
