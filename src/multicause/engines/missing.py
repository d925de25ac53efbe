"""Which values of a data set are missing: NaN marks values that were not observed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

# Columns that an error names.
MOST_COLUMNS = 10


class MissingValues(NamedTuple):
    """How many values of some rows are NaN, and which columns (D,) have a value in any row that has a weight."""

    n_missing: int
    columns: np.ndarray


def missing_values_of(rows: np.ndarray, weights: np.ndarray) -> MissingValues:
    """Return the missing values of rows (n, D)."""
    # A sum is NaN if any value is, which takes no array of the size of the rows.
    with np.errstate(over="ignore", invalid="ignore"):
        complete = not np.isnan(np.sum(rows))
    absent = np.zeros((0, rows.shape[1]), dtype=bool) if complete else np.isnan(rows)
    if not absent.any():
        return MissingValues(0, np.full(rows.shape[1], bool((weights > 0).any())))
    return MissingValues(int(absent.sum()), np.logical_not(absent[weights > 0]).any(axis=0))


def combined(parts: Sequence[MissingValues], n_features: int) -> MissingValues:
    """Return the missing values of several parts of the rows together."""
    columns = np.zeros(n_features, dtype=bool)
    for part in parts:
        columns |= part.columns
    return MissingValues(sum(part.n_missing for part in parts), columns)


def check_columns(missing: MissingValues, names: Sequence[str] | None) -> None:
    """Raise ValueError if a column has no observed value, so that nothing could be learned of it."""
    empty = np.flatnonzero(~missing.columns)
    if not len(empty):
        return
    listed = ", ".join(str(column) if names is None else repr(names[column]) for column in empty[:MOST_COLUMNS])
    more = f" and {len(empty) - MOST_COLUMNS} more" if len(empty) > MOST_COLUMNS else ""
    raise ValueError(
        f"X has columns without any observed value: {listed}{more}, of {len(missing.columns)} columns. All of "
        "their values are NaN, or those of all rows with a positive weight. Leave these columns out."
    )


def check_finite(
    rows: np.ndarray,
    start: int,
    where: str | Callable[[int], str],
    names: Sequence[str] | None = None,
    refusal: str | None = None,
) -> None:
    """Raise ValueError if a value is infinite, or NaN where a ``refusal`` says why no value may be missing.

    ``where`` names the origin of the rows, from number ``start`` on, for the error; it may depend on the row at fault.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(np.sum(rows)):
            return
    bad = np.isinf(rows) if refusal is None else ~np.isfinite(rows)
    if not bad.any():
        return
    row, column = np.argwhere(bad)[0]
    which = f"column {column}" if names is None else f"column {column} ({names[column]!r})"
    value = rows[row, column]
    what = "NaN" if np.isnan(value) else "infinity"
    where = where if isinstance(where, str) else where(int(row))
    reason = "Infinite values are never allowed." if refusal is None or np.isinf(value) else refusal
    raise ValueError(f"Input X contains {what}: row {start + row:,}, {which}{where}. {reason}")


def without_mask(X: Any) -> Any:
    """Return a masked array as an array of floats whose masked values are NaN, and everything else as it is."""
    if not isinstance(X, np.ma.MaskedArray):
        return X
    return np.ma.filled(X.astype(X.dtype if X.dtype.kind == "f" else np.float64), np.nan)


def with_any_value(rows: np.ndarray) -> np.ndarray:
    """Return rows (n, D) in which an observed value stands in place of missing ones, for checks of values alone."""
    absent = np.isnan(rows)
    if not absent.any() or absent.all():
        return np.zeros((0, rows.shape[1]), rows.dtype) if absent.all() else rows
    return np.where(absent, rows[~absent][0], rows)


def filled(rows: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return rows with other values (n, D) in place of missing ones, and in their own dtype."""
    rows = np.asarray(rows, dtype=np.result_type(rows, np.float32) if rows.dtype.kind != "f" else rows.dtype)
    return np.where(np.isnan(rows), values.astype(rows.dtype, copy=False), rows)


def filled_with_means(rows: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """Return rows (n, D) with the weighted mean of the observed values of a column in place of missing ones.

    They serve to find starting values; learning itself leaves missing values out. Columns without any value get zeros.
    """
    absent = np.isnan(rows)
    if not absent.any():
        return rows
    observed = (~absent).astype(float) * (1.0 if weights is None else np.asarray(weights, dtype=float)[:, None])
    total = observed.sum(axis=0)
    means = (observed * np.where(absent, 0, rows)).sum(axis=0) / np.where(total > 0, total, 1)
    return np.where(absent, means.astype(rows.dtype), rows)
