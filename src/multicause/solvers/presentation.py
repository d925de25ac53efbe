"""Mini-batches of weighted rows: which rows one pass over the data shows, and in which batches.

A weight of k counts like k repetitions of a row. Where rows are learned one by one or in small batches, weights within
a batch cannot express that: a batch of one row would make the same step whatever its weight. Steps in proportion to the
weights would be as long as the largest weight, and overshoot. Instead, rows are *shown* as often as their weights say,
and all shown rows count alike. A step then has the same length as without weights and the same mean as for repeated
rows, for any batch size and any learning rule; with integer weights a pass shows exactly the repeated rows.
"""

from __future__ import annotations

from copy import deepcopy
from typing import NamedTuple

import numpy as np

from multicause.engines import blocks
from multicause.engines.base import Data

# Largest ratio of the rows that a pass shows to the rows with a weight. It keeps a pass finite in practice when weights
# are in the thousands.
MOST_REPETITIONS = 16
# Decimals to which sums of repetitions are rounded; further digits differ by rounding errors alone.
DECIMALS = 6


class Batches(NamedTuple):
    """Mini-batches of one block.

    Entries beyond ``n_batches`` are padding, so that all passes, and data sets of similar sizes, share one program.
    """

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
    return weights * _scale(*_total_and_number(weights))


def rows_to_show(expected: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Draw the indices of the rows to show, in ascending order, given their expected repetitions (N,).

    Each expected number is randomly rounded up or down such that its mean is kept (systematic sampling).
    """
    return _rounded(expected, 0.0, random.random())


class BlockDraw(NamedTuple):
    """Numbers from which the batches of one block are drawn in a pass."""

    number: int  # index of the block
    before: float  # expected number of rows that the blocks before it show
    offset: float  # random number in [0, 1) of the pass, by which all expected numbers are rounded
    random: np.random.Generator  # shuffles the rows of the block


class Presentation(NamedTuple):
    """Rule by which passes over blocks of weighted rows are divided into mini-batches.

    If one batch holds all rows, it is the block itself, with its weights unchanged. Otherwise each pass draws which
    rows are shown, the order of the blocks, and the order of the rows within each block. A record is small, whatever
    the number of rows: batches are drawn where a block is, from its weights.
    """

    scale: float  # expected repetitions of a row of weight one
    expected: np.ndarray  # (blocks,) expected number of rows that a pass shows of each block
    full: int  # rows of a full batch
    size: int  # places of a batch: rows of a full one, or a rounded number above that where it follows from the data
    whole: bool  # whether one batch holds all rows

    @classmethod
    def of(cls, data: Data, batch_size: int) -> Presentation:
        """Return the rule for batches of at most ``batch_size`` rows of some data."""
        totals, numbers = np.array(data.of_weights(_total_and_number), dtype=float).T
        scale = _scale(totals.sum(), numbers.sum())
        n_shown, n_blocks = int(np.rint(scale * totals.sum())), len(totals)
        of_block = -(-n_shown // n_blocks)
        full, size = min(batch_size, of_block), min(batch_size, blocks.rounded(of_block, up=True))
        return cls(scale, scale * totals, full, size, n_blocks == 1 and n_shown <= batch_size)

    def draw(self, random: np.random.Generator) -> tuple[list[int], list[BlockDraw]]:
        """Draw the order of the blocks in one pass, and what :meth:`batches` needs for each block."""
        n_blocks, offset = len(self.expected), random.random()
        before = np.cumsum([0.0, *self.expected[:-1]])
        order = random.permutation(n_blocks).tolist() if n_blocks > 1 else [0]
        own = random.spawn(n_blocks) if n_blocks > 1 else [random]
        return order, [BlockDraw(number, before[number], offset, own[number]) for number in range(n_blocks)]

    def batches(self, weights: np.ndarray, draw: BlockDraw) -> Batches:
        """Return the batches of one block, whose rows have these weights (n,)."""
        if self.whole:
            return _as_one(weights)
        shown = _rounded(self.scale * weights.astype(float), draw.before, draw.offset)
        # A copy, because a task that is repeated on a cluster must draw the same numbers.
        return self._cut(deepcopy(draw.random).permutation(shown), weights.dtype)

    def _cut(self, rows: np.ndarray, dtype: np.dtype) -> Batches:
        """Split shuffled row indices into full batches and a rest, filled up to the same number of places."""
        # Expected numbers are rounded up or down at random.
        most = blocks.rounded(int(np.ceil(self.expected.max())), up=True) + 1
        shape = (-(-most // self.full), self.size)
        places, weights = np.zeros(shape, np.int32), np.zeros(shape, dtype)
        own = np.divmod(np.arange(len(rows)), self.full)
        places[own], weights[own] = rows, 1
        n_batches = -(-len(rows) // self.full)
        return Batches(places, weights, weights.sum(axis=1) / self.full, np.asarray(n_batches))


def _total_and_number(weights: np.ndarray) -> tuple[float, int]:
    """Return the sum of some weights, and the number of positive ones."""
    return float(weights.sum(dtype=float)), int(np.count_nonzero(weights))


def _scale(total: float, n_weighted: int) -> float:
    """Return the expected repetitions of a row of weight one, given the sum of all weights."""
    return float(np.clip(np.rint(total), n_weighted, MOST_REPETITIONS * n_weighted) / total)


def _rounded(expected: np.ndarray, before: float, offset: float) -> np.ndarray:
    """Return indices of rows, each repeated as its expected number says, rounded up or down by a random offset."""
    reached = np.floor(np.round(before + np.cumsum(expected), DECIMALS) + offset)
    first = np.floor(np.round(before, DECIMALS) + offset)
    return np.repeat(np.arange(len(expected)), np.diff(reached, prepend=first).astype(int))


def _as_one(weights: np.ndarray) -> Batches:
    """Return one batch that holds the whole block."""
    return Batches(np.arange(len(weights))[None], weights[None], np.ones(1, weights.dtype), np.asarray(1))
