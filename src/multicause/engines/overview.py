"""Overview of a data set, computed in one pass over its rows: missing values, limits and moments.

Learning begins with checks and starting values, all of which follow from these numbers. Data that are read from files
are therefore read once before the first iteration.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from multicause.engines.missing import MissingValues, combined, missing_values_of, with_any_value

# Number of rows that are converted to double precision at a time, so that temporary arrays stay in the cache.
ROWS_AT_ONCE = 4096


class Overview(NamedTuple):
    """Summary of all rows, from which checks and initial parameters follow."""

    missing: MissingValues
    lowest: np.ndarray  # (D,) smallest observed value of each column, NaN if there is none
    highest: np.ndarray  # (D,)
    unusual: np.ndarray  # (2,) a value that is neither zero nor one, and one that is not a whole number; NaN if none
    weight: float  # Σw
    observed: np.ndarray  # (D,) Σw over the rows in which a column was observed
    origin: np.ndarray  # (D,) subtracted from all values, which avoids cancellation
    total: np.ndarray  # (D,) Σw(y − origin) over observed values
    squares: np.ndarray  # (D,) Σw(y − origin)²

    @property
    def mean(self) -> np.ndarray:
        """Return the weighted mean of the observed values of each column (D,)."""
        return self.origin + self.total / np.where(self.observed > 0, self.observed, 1)

    @property
    def spread(self) -> float:
        """Return the weighted variance within columns, averaged over columns."""
        observed = np.where(self.observed > 0, self.observed, 1)
        with np.errstate(over="ignore", invalid="ignore"):
            return float(np.mean(np.maximum(self.squares / observed - (self.total / observed) ** 2, 0)))

    @property
    def limits(self) -> tuple[float, float]:
        """Return the smallest and the largest observed value."""
        return float(np.fmin.reduce(self.lowest)), float(np.fmax.reduce(self.highest))

    @property
    def extreme_rows(self) -> np.ndarray:
        """Return few rows (n, D) that have the limits of each column and unusual values, if there are any."""
        examples = [np.full_like(self.lowest, value) for value in self.unusual if not np.isnan(value)]
        return with_any_value(np.stack([self.lowest, self.highest, *examples]))


def overview_of(rows: np.ndarray, weights: np.ndarray, origin: np.ndarray) -> Overview:
    """Return the overview of some rows (n, D)."""
    pieces = [
        _of_piece(rows[start : start + ROWS_AT_ONCE], weights[start : start + ROWS_AT_ONCE], origin)
        for start in range(0, len(rows), ROWS_AT_ONCE)
    ]
    return joined(pieces)


def joined(parts: Sequence[Overview]) -> Overview:
    """Return the overview of several parts of the rows, with one origin."""
    first = parts[0]
    return Overview(
        combined([part.missing for part in parts], len(first.origin)),
        np.fmin.reduce([part.lowest for part in parts]),
        np.fmax.reduce([part.highest for part in parts]),
        np.fmax.reduce([part.unusual for part in parts]),
        float(sum(part.weight for part in parts)),
        np.sum([part.observed for part in parts], axis=0),
        first.origin,
        np.sum([part.total for part in parts], axis=0),
        np.sum([part.squares for part in parts], axis=0),
    )


def _of_piece(rows: np.ndarray, weights: np.ndarray, origin: np.ndarray) -> Overview:
    missing, weights = missing_values_of(rows, weights), weights.astype(float)
    with np.errstate(over="ignore", invalid="ignore"):
        centred = rows - origin
        observed = np.full(rows.shape[1], weights.sum())
        if missing.n_missing:
            absent = np.isnan(centred)
            observed, centred = weights @ ~absent, np.where(absent, 0.0, centred)
        total = weights @ centred
        squares = weights @ np.square(centred, out=centred)
    unusual = np.array([_example(rows, _neither_zero_nor_one), _example(rows, _no_whole_number)])
    lowest, highest = np.fmin.reduce(rows), np.fmax.reduce(rows)
    return Overview(missing, lowest, highest, unusual, float(weights.sum()), observed, origin, total, squares)


def _example(rows: np.ndarray, condition: Callable[[np.ndarray], np.ndarray]) -> float:
    """Return an observed value that meets a condition; NaN if there is none."""
    for some in (rows[:1], rows):  # one row is enough for most data
        found = some[condition(some) & ~np.isnan(some)]
        if found.size:
            return float(found[0])
    return float("nan")


def _neither_zero_nor_one(values: np.ndarray) -> np.ndarray:
    return (values != 0) & (values != 1)


def _no_whole_number(values: np.ndarray) -> np.ndarray:
    return values != np.rint(values)
