"""Checks of models and image shapes, shared by plots and reports."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from multicause.estimators.base import BaseModel

# Smallest fraction of the range of all data that the limits of a single row span, so that a nearly empty row does not
# show its rounding errors.
LEAST_SPAN = 0.25


def check_model(model: Any) -> None:
    """Raise an error unless ``model`` is a fitted model of this library."""
    check_is_fitted(model)
    if not isinstance(model, BaseModel):
        raise TypeError(
            f"model must be a fitted estimator of multicause; got {type(model).__name__} of another library."
        )


def check_components(model: Any) -> None:
    """Raise an error unless ``model`` is a fitted model of this library that has components."""
    check_model(model)
    if not hasattr(model, "components_"):
        raise TypeError(
            f"A model with components is needed, rows of features that each cause stands for; {type(model).__name__} "
            "has none, because its parameters may mean anything. Draw its parameters_ yourself, or what transform and "
            "recognize return."
        )


def check_image_shape(image_shape: Any, n_features: int, name: str) -> None:
    """Raise ValueError if rows cannot have this image shape; None is for rows that are not images."""
    if image_shape is None:
        return
    sides = tuple(image_shape) if isinstance(image_shape, Sequence | np.ndarray) else ()
    if len(sides) != 2 or not all(isinstance(side, int | np.integer) and side > 0 for side in sides):
        raise ValueError(f"image_shape must be a height and a width, e.g. (5, 5), or None; got {image_shape!r}.")
    if sides[0] * sides[1] != n_features:
        raise ValueError(
            f"image_shape={sides} has {sides[0]}·{sides[1]} = {sides[0] * sides[1]} pixels, but {name} have "
            f"{n_features} features. Pass a shape with that product, or None if rows are not images."
        )


def is_signed(rows: np.ndarray) -> bool:
    """Return whether there are relevant negative values."""
    return bool(np.nanmin(rows) < -0.01 * np.nanmax(np.abs(rows)))
