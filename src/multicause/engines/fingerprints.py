"""Hash of rows that does not depend on how they are divided into parts, or on the order of the parts.

Every row and its weight are hashed together with the row's position, and the hashes are summed modulo 2⁶⁴. A fit can
therefore resume on another engine, or on a cluster with another number of workers.
"""

from __future__ import annotations

import numpy as np

# Number of rows hashed at a time, so that temporary arrays stay in the cache.
ROWS_AT_ONCE = 512
# Odd multipliers with well-mixed bits, as in the generator SplitMix64.
GOLDEN, FIRST, SECOND = (
    np.uint64(0x9E3779B97F4A7C15),
    np.uint64(0xBF58476D1CE4E5B9),
    np.uint64(0x94D049BB133111EB),
)


def hash_of_rows(rows: np.ndarray, weights: np.ndarray, start: int) -> np.ndarray:
    """Return two sums (2,) of 64-bit hashes of rows (n, D) and weights (n,); the first row has index ``start``."""
    total = np.zeros(2, dtype=np.uint64)
    unsigned = np.uint32 if rows.dtype == np.float32 else np.uint64
    columns = np.arange(1, rows.shape[1] + 2, dtype=np.uint64) * GOLDEN
    for first in range(0, len(rows), ROWS_AT_ONCE):
        rows_at_once = slice(first, first + ROWS_AT_ONCE)
        values = np.column_stack([rows[rows_at_once], weights[rows_at_once].astype(rows.dtype)])
        mixed = _mixed(values.view(unsigned).astype(np.uint64) + columns)
        positions = np.arange(start + first, start + first + len(values), dtype=np.uint64) * GOLDEN
        sums = np.stack([mixed.sum(axis=1), (mixed * (columns | np.uint64(1))).sum(axis=1)])
        total = total + _mixed(sums + positions).sum(axis=1)
    return total


def _mixed(bits: np.ndarray) -> np.ndarray:
    """Mix the bits of each number, so that each bit depends on all bits."""
    bits = (bits ^ (bits >> np.uint64(30))) * FIRST
    bits = (bits ^ (bits >> np.uint64(27))) * SECOND
    return bits ^ (bits >> np.uint64(31))
