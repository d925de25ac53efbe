"""Mini-batches of weighted rows: which rows one pass over the data shows, and in which batches.

A weight of k counts like k repetitions of a row. Where rows are learned one by one or in small batches, weights within
a batch cannot express that: a batch of one row would make the same step whatever its weight. Steps in proportion to the
weights would be as long as the largest weight, and overshoot. Instead, rows are *shown* as often as their weights say,
and all shown rows count alike. A step then has the same length as without weights and the same mean as for repeated
rows, for any batch size and any learning rule; with integer weights a pass shows exactly the repeated rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import jax
import numpy as np

from multicause.model import Block

# Largest ratio of the rows that a pass shows to the rows with a weight. It keeps a pass finite in practice when weights
# are in the thousands.
MOST_REPETITIONS = 16
# Decimals to which sums of repetitions are rounded; further digits differ by rounding errors alone.
DECIMALS = 6


class Batches(NamedTuple):
    """Mini-batches of one block; entries beyond ``n_batches`` are padding, so that all passes share one program."""

    rows: np.ndarray  # (n, size) indices of rows in the block
    weights: np.ndarray  # (n, size) weights of the rows, zero where they pad a batch
    lengths: np.ndarray  # (n,) step size relative to that of a full batch; smaller batches make shorter steps
    n_batches: np.ndarray  # () number of batches that are not padding


def repetitions(weights: np.ndarray) -> np.ndarray:
    """Return how often one pass shows each row, on average, given its weight: (N,).

    These are the weights themselves where their sum is at least the number of rows with a weight. Smaller weights, such
    as shares of one, are scaled up to that number, and larger ones down to ``MOST_REPETITIONS`` times that number.
    """
    weights = np.asarray(weights, dtype=float)
    total, n_weighted = weights.sum(), np.count_nonzero(weights)
    return weights * (np.clip(np.rint(total), n_weighted, MOST_REPETITIONS * n_weighted) / total)


def rows_to_show(expected: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Draw the indices of the rows to show, in ascending order, given their expected repetitions (N,).

    Each expected number is randomly rounded up or down such that its mean is kept (systematic sampling).
    """
    reached = np.floor(np.round(np.cumsum(expected), DECIMALS) + random.random())
    return np.repeat(np.arange(len(expected)), np.diff(reached, prepend=0).astype(int))


class Presentation:
    """Iterator-like source of the mini-batches of each pass over some blocks of rows.

    If one batch holds all rows, it is the block itself, with its weights unchanged. Otherwise each pass draws which
    rows are shown, and their order within each block.
    """

    def __init__(self, blocks: Sequence[Block], batch_size: int) -> None:
        if isinstance(blocks[0].rows, jax.ShapeDtypeStruct):
            raise TypeError(
                "This model learns from mini-batches in one process, but the rows are in other processes. Fit it to a "
                "sample in memory, such as X[:100_000].compute(), with engine=None."
            )
        weights = [np.asarray(block.weights) for block in blocks]
        self._dtype, self._expected = weights[0].dtype, repetitions(np.concatenate(weights))
        self._edges = np.cumsum([0, *(len(own) for own in weights)])
        n_shown = int(np.rint(self._expected.sum()))
        self._size = min(batch_size, -(-n_shown // len(weights)))
        most = max(part.sum() for part in np.split(self._expected, self._edges[1:-1]))
        self._capacity = int(most + 1) // self._size + 1
        whole = len(weights) == 1 and n_shown <= batch_size
        self._whole = _as_one(weights[0]) if whole else None

    def batches(self, random: np.random.Generator) -> list[Batches]:
        """Draw the batches of one pass, one record for each block."""
        if self._whole is not None:
            return [self._whole]
        shown = rows_to_show(self._expected, random)
        parts = np.split(shown, np.searchsorted(shown, self._edges[1:-1]))
        return [self._cut(random.permutation(part - edge)) for part, edge in zip(parts, self._edges, strict=False)]

    def _cut(self, rows: np.ndarray) -> Batches:
        """Split shuffled row indices into padded batches of equal size."""
        shape = (self._capacity, self._size)
        places, weights = np.zeros(shape, np.int32), np.zeros(shape, self._dtype)
        places.flat[: len(rows)], weights.flat[: len(rows)] = rows, 1
        n_batches = -(-len(rows) // self._size)
        return Batches(places, weights, weights.sum(axis=1) / self._size, np.asarray(n_batches))


def _as_one(weights: np.ndarray) -> Batches:
    """Return one batch that holds the whole block."""
    return Batches(np.arange(len(weights))[None], weights[None], np.ones(1, weights.dtype), np.asarray(1))
