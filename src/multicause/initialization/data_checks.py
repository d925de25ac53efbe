"""Checks of the data before learning: values that no model, or not this model, can explain."""

from __future__ import annotations

from functools import partial

import numpy as np

from multicause.engines.base import Data
from multicause.engines.missing import filled_with_means, with_any_value
from multicause.model import Model
from multicause.noises import Noise

# Number of rows from which the distance of the data from zero is estimated.
ROWS_TO_MEASURE = 10_000
# Spacing of floating-point numbers that is too coarse for the data, relative to their standard deviation, and the
# distance of data from zero, in standard deviations, up to which likelihoods are accurate in double precision.
COARSEST = 0.01
FARTHEST = 1e9
# Number of standard errors by which the mean of a column must exceed zero to count as positive.
SURELY_POSITIVE = 2.0


def lost_digits(X: np.ndarray) -> str:
    """Return a warning if rows are too far from zero for the precision of their dtype; empty otherwise."""
    rows = filled_with_means(X[:: -(-len(X) // ROWS_TO_MEASURE)].astype(float))
    mean = rows.mean(axis=0)
    with np.errstate(over="ignore"):  # values that are too large raise another error
        spread, farthest = float(np.sqrt(np.mean((rows - mean) ** 2))), float(np.abs(mean).max())
    step = float(np.spacing(X.dtype.type(farthest)))
    if spread == 0 or not np.isfinite(spread) or (step < COARSEST * spread and farthest < FARTHEST * spread):
        return ""
    other = ", or use float64 data" if X.dtype == np.float32 else ""
    return (
        f"The values of X lie {farthest / spread:.1e} standard deviations from zero, where {X.dtype} has steps of "
        f"{step / spread:.1e} standard deviations: too few digits are left for what varies, and likelihoods are not "
        f"reliable. Subtract the mean of the data{other}."
    )


def contradicting_signs(model: Model, rows: np.ndarray) -> str:
    """Return a warning if components must be non-negative but data are centred or negative; empty otherwise.

    Means of such a model are non-negative, so that most columns should have a mean above zero. Data that were centred
    by a scaler have none, and components learned from them only explain positive values.
    """
    if model.combination.bounds[0] < 0 or not (rows < 0).any():
        return ""
    mean, error = np.nanmean(rows, axis=0), np.nanstd(rows, axis=0) / np.sqrt(len(rows))
    varying = error > 0
    below = mean[varying] < SURELY_POSITIVE * error[varying]
    if not (varying.any() and below.mean() > 0.5):
        return ""
    return (
        f"Components of {model.combination!r} are not negative, but {below.sum()} of {varying.sum()} columns of X have "
        "no mean above zero, as if they were centred: values below zero cannot be explained. (1) Leave the data as "
        "they are, without StandardScaler or subtracted means; (2) scale them with MaxAbsScaler or MinMaxScaler, which "
        "keep zero or the smallest value at zero; (3) use LinearCauses, whose components have either sign."
    )


def check_values(data: Data) -> tuple[float, float]:
    """Return the smallest and the largest value.

    Raise ValueError if all values are equal, or if their squares overflow or underflow in their dtype.
    """
    (low, high), limits = data.overview.limits, np.finfo(data.dtype)
    largest = max(-low, high)
    if largest > np.sqrt(float(limits.max) / data.n_features):
        raise ValueError(
            f"The largest value of X, {largest:.3g}, is too large to be squared in {data.dtype}. Scale X down."
        )
    if low == high:
        raise ValueError(
            f"All values of X are equal ({low:.6g}), so there are no causes to find. "
            "X needs at least two different values."
        )
    if largest < np.sqrt(float(limits.tiny)):
        raise ValueError(
            f"The largest value of X, {largest:.3g}, is too small to be squared in {data.dtype}. Scale X up."
        )
    return low, high


def check_noise(noise: Noise, data: Data) -> None:
    """Raise ValueError if some values are impossible under a noise.

    Extreme values are enough to find that out; the error is that of all rows together.
    """
    extreme_rows = data.overview.extreme_rows
    try:
        if len(extreme_rows):
            noise.check_data(extreme_rows)
    except ValueError:
        data.each(partial(_check_rows, noise))
        raise


def _check_rows(noise: Noise, rows: np.ndarray, weights: np.ndarray) -> None:
    noise.check_data(with_any_value(rows))
