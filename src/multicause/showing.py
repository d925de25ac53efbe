"""What decides how a model and its rows are shown, in a report as in a plot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from multicause.compatibility import Support
from multicause.shell import Shell

# Part of the limits of all data that those of a single row have at least, so that a row of hardly anything does not
# show its rounding.
LEAST_SPAN = 0.25


def check_model(model: Any) -> None:
    """Refuse what is no fitted model of this library."""
    check_is_fitted(model)
    if not isinstance(model, Shell):
        raise TypeError(
            f"model must be a fitted estimator of multicause; got {type(model).__name__} of another library."
        )


def check_image_shape(image_shape: Any, n_features: int, name: str) -> None:
    """Refuse a shape that rows cannot have; None is for rows that are no images."""
    if image_shape is None:
        return
    sides = tuple(image_shape) if isinstance(image_shape, Sequence | np.ndarray) else ()
    if len(sides) != 2 or not all(isinstance(side, int | np.integer) and side > 0 for side in sides):
        raise ValueError(f"image_shape must be a height and a width, e.g. (5, 5), or None; got {image_shape!r}.")
    if sides[0] * sides[1] != n_features:
        raise ValueError(
            f"image_shape={sides} has {sides[0]}·{sides[1]} = {sides[0] * sides[1]} pixels, but {name} have "
            f"{n_features} features. Give a shape with that product, or None if rows are no images."
        )


def has_probabilities(model: Any) -> bool:
    """Whether ``transform`` gives probabilities of causes, rather than real values of them."""
    inner = getattr(model, "_model", None)
    return inner is not None and inner.prior.support not in (Support.REAL, Support.GAUSSIAN)


def is_signed(rows: np.ndarray) -> bool:
    """Whether negative values matter."""
    return bool(np.nanmin(rows) < -0.01 * np.nanmax(np.abs(rows)))
