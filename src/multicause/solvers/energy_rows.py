"""Rows from which an energy-based model learns: all rows in memory, or a sample of rows that are not."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from multicause.arrays import bytes_from
from multicause.engines.base import Data
from multicause.solvers.contrastive_divergence import EnergyBatches

#: Largest number of rows that are drawn from data that are not in memory, and the part of the memory budget that they
#: may take. The default 5000 updates with 100 rows each draw 500,000 rows, with replacement.
MOST_ROWS = 100_000
PART_OF_BUDGET = 4


def rows_to_keep(data: Data, memory_budget: str | int) -> int:
    """Return how many rows of data that are not in memory are kept there for learning."""
    fitting = bytes_from(memory_budget) // (PART_OF_BUDGET * data.n_features * data.dtype.itemsize)
    return int(max(2, min(MOST_ROWS, fitting)))


def sample_of(data: Data, n_rows: int, random: np.random.RandomState) -> tuple[np.ndarray, np.ndarray]:
    """Return a random sample of the rows, or all if there are not more, and their weights, in this process's memory."""
    # Data in memory are one part, which is not copied.
    parts = data.sample(n_rows, random).each(lambda rows, weights: (np.asarray(rows), np.asarray(weights)))
    if len(parts) == 1:
        return parts[0]
    rows, weights = (np.concatenate(own) for own in zip(*parts, strict=True))
    return rows, weights


def mini_batches(
    X: np.ndarray, weights: np.ndarray, batch_size: int | None, random: np.random.RandomState
) -> Callable[[int], EnergyBatches]:
    """Return a function that draws mini-batches with replacement, in proportion to the weights.

    Without a ``batch_size`` there is one batch of all rows, whose means are weighted.
    """
    if batch_size is None:
        everything = EnergyBatches(X[None], (weights / weights.sum()).astype(X.dtype))
        return lambda length: everything
    reached = np.cumsum(weights, dtype=float)
    shares = np.full(batch_size, 1 / batch_size, X.dtype)

    def draw(length: int) -> EnergyBatches:
        places = np.searchsorted(reached, random.random_sample((length, batch_size)) * reached[-1], side="right")
        return EnergyBatches(X[np.minimum(places, len(X) - 1)], shares)

    return draw
