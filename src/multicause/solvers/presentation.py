"""Which rows one pass over weighted data shows, and in which batches.

A weight of k counts like k repetitions of a row. Where rows are learned from one by one or in small batches, weights
within a batch cannot say that: a batch of one row would make the same step whatever its weight. Steps in proportion to
weights would be as long as the largest weight, and overshoot. Instead, rows are *shown* as often as their weights say,
and count alike. Then a step has the same length as without weights, and the same mean as for repeated rows, for any
batch size and any learning rule; and with whole weights a pass shows exactly the repeated rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import jax
import numpy as np

from multicause.model import Block

# A pass shows at most so many times as many rows as have a weight: weights of thousands must not make it endless.
MOST_REPETITIONS = 16
# Decimals of sums of repetitions, beyond which they differ by rounding alone.
DECIMALS = 6


class Batches(NamedTuple):
    """Batches of rows of one block. Those beyond ``n_batches`` only fill up, so that passes share one program."""

    rows: np.ndarray  # (n, size) places in the block
    weights: np.ndarray  # (n, size) how rows count, zero where they only fill a batch up
    lengths: np.ndarray  # (n,) length of the step as part of a full one: that of a smaller batch is shorter
    n_batches: np.ndarray  # ()


def repetitions(weights: np.ndarray) -> np.ndarray:
    """How often one pass is to show each row, on average, given its weight: (N,).

    Weights themselves, where they add up to at least the number of rows that have a weight. Smaller ones, such as
    shares of one, are scaled up to that number, and larger ones down to ``MOST_REPETITIONS`` times as many.
    """
    weights = np.asarray(weights, dtype=float)
    total, n_weighted = weights.sum(), np.count_nonzero(weights)
    return weights * (np.clip(np.rint(total), n_weighted, MOST_REPETITIONS * n_weighted) / total)


def rows_to_show(expected: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Numbers of the rows that are shown, in ascending order, given how often each is expected to be (N,).

    Each is shown so often, rounded up or down by chance such that the mean is right (systematic sampling).
    """
    reached = np.floor(np.round(np.cumsum(expected), DECIMALS) + random.random())
    return np.repeat(np.arange(len(expected)), np.diff(reached, prepend=0).astype(int))


class Presentation:
    """How blocks of rows are shown in batches, pass after pass.

    Where one batch holds everything, it is the block itself, with the weights as they are. Otherwise each pass draws
    which rows are shown, and their order within each block.
    """

    def __init__(self, blocks: Sequence[Block], batch_size: int) -> None:
        if isinstance(blocks[0].rows, jax.ShapeDtypeStruct):
            raise TypeError(
                "This model learns from small batches in one process, and these rows are on other ones. Give it a "
                "sample in memory, such as X[:100_000].compute(), and engine=None."
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
        """Those of one pass, for each block."""
        if self._whole is not None:
            return [self._whole]
        shown = rows_to_show(self._expected, random)
        parts = np.split(shown, np.searchsorted(shown, self._edges[1:-1]))
        return [self._cut(random.permutation(part - edge)) for part, edge in zip(parts, self._edges, strict=False)]

    def _cut(self, rows: np.ndarray) -> Batches:
        shape = (self._capacity, self._size)
        places, weights = np.zeros(shape, np.int32), np.zeros(shape, self._dtype)
        places.flat[: len(rows)], weights.flat[: len(rows)] = rows, 1
        n_batches = -(-len(rows) // self._size)
        return Batches(places, weights, weights.sum(axis=1) / self._size, np.asarray(n_batches))


def _as_one(weights: np.ndarray) -> Batches:
    return Batches(np.arange(len(weights))[None], weights[None], np.ones(1, weights.dtype), np.asarray(1))
