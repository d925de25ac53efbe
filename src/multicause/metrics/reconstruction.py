"""Explained variance of reconstructions."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_array, check_is_fitted

from multicause.runtime.scikit_learn import check_sample_weight

# Largest number of values in a block of rows: reconstructing all rows at once would double the memory of the data.
BLOCK_VALUES = 4_000_000


class ReconstructionQuality(NamedTuple):
    """Coefficients of determination of a model's reconstructions; NaN if there is no variance to explain."""

    r2: float
    r2_without_row_means: float


def reconstruction_quality(
    model: Any, X: ArrayLike, *, sample_weight: ArrayLike | None = None
) -> ReconstructionQuality:
    """Compute R² of the reconstructions r_n = ``model.reconstruct(X)`` of the data y_n.

    ``r2`` is 1 − Σ_n w_n ‖y_n − r_n‖² / Σ_n w_n ‖y_n − ȳ‖² with the weighted mean ȳ of all rows. It is high as soon as
    the overall level of each row is right. ``r2_without_row_means`` is the same after the mean of each row and of each
    reconstruction has been subtracted: it measures how well the shape of rows is explained. Values that are missing
    (NaN) are left out of both.

    Parameters
    ----------
    model : fitted estimator with ``reconstruct``
        A model of this library.
    X : array-like of shape (n_samples, n_features)
        Data.
    sample_weight : array-like of shape (n_samples,), optional
        Weight of each row.

    Returns
    -------
    ReconstructionQuality
        Both values: one is perfect, zero is as good as the mean row, and negative is worse.
    """
    check_is_fitted(model)
    if not hasattr(model, "reconstruct"):
        raise TypeError(f"reconstruction_quality needs a model with reconstruct; {type(model).__name__} has none.")
    rows = check_array(X, dtype=[np.float64, np.float32], ensure_all_finite="allow-nan")
    weights = check_sample_weight(sample_weight, rows, dtype=np.float64, ensure_non_negative=True)
    size = min(len(rows), max(1, BLOCK_VALUES // rows.shape[1]))
    starts = range(0, len(rows), size)
    mean = _mean_row(rows, weights, starts, size)
    errors, totals = np.zeros(2), np.zeros(2)
    for start in starts:
        # All blocks have one size, for which one program is compiled.
        places = np.arange(start, start + size) % len(rows)
        n = min(size, len(rows) - start)
        again = np.asarray(model.reconstruct(rows[places]), dtype=float)[:n]
        block, block_weights = rows[start : start + n].astype(float), weights[start : start + n, None]
        # Missing values are left out of every row that is compared.
        again, usual = (np.where(np.isnan(block), np.nan, values) for values in (again, mean))
        for number, centred in enumerate((lambda values: values, _without_row_means)):
            errors[number] += np.nansum(block_weights * (centred(block) - centred(again)) ** 2)
            totals[number] += np.nansum(block_weights * (centred(block) - centred(usual)) ** 2)
    least = (np.finfo(rows.dtype).eps * np.nanmax(np.abs(rows))) ** 2 * rows.shape[1] * weights.sum()
    r2 = np.where(totals > least, 1 - errors / np.where(totals > least, totals, 1), np.nan)
    return ReconstructionQuality(*(float(value) for value in r2))


def _mean_row(rows: np.ndarray, weights: np.ndarray, starts: range, size: int) -> np.ndarray:
    """Return the weighted mean of the observed values of each column: (D,)."""
    total, count = np.zeros(rows.shape[1]), np.zeros(rows.shape[1])
    for start in starts:
        block, block_weights = rows[start : start + size].astype(float), weights[start : start + size]
        observed = ~np.isnan(block)
        total, count = total + block_weights @ np.where(observed, block, 0), count + block_weights @ observed
    return total / np.where(count > 0, count, 1)


def _without_row_means(rows: np.ndarray) -> np.ndarray:
    observed = ~np.isnan(rows)
    count = observed.sum(axis=1, keepdims=True)
    return rows - np.nansum(rows, axis=1, keepdims=True) / np.where(count > 0, count, 1)
