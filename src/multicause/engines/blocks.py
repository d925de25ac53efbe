"""Blocks of rows: how many rows they have, how the last one is filled up, and how their results are put together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from multicause.arrays import bytes_from, fastest_block, on_host
from multicause.engines.base import Engine

# Blocks are not made smaller than this many rows to fit into the cache: the fixed cost of a block would dominate.
SMALLEST_BLOCK = 1024
# For the same reason, the rows of a block take at least this many times the memory of the arrays shared by all rows,
# such as products of components with each other, which are computed once per block.
ROWS_OVER_SHARED = 4
# Row counts are rounded up to multiples of an eighth of a power of two, so that few programs serve all row counts and
# at most an eighth of the work is wasted.
STEPS_PER_DOUBLING = 8
# Where there are more blocks, their number is a multiple of this before sizes are rounded, so that 2, 4, 8 or 16 cores
# get equal shares.
BLOCKS_PER_ROUND = 16
# Smaller numbers of blocks are even, so that two cores get equal shares.
FEW_BLOCKS_PER_ROUND = 2


def block_shape(
    engine: Engine,
    n_rows: int,
    bytes_per_row: int,
    fixed_bytes: int,
    *,
    waiting_bytes_per_row: int = 0,
    for_threads: bool = False,
) -> tuple[int, int]:
    """Return the number of rows of a block and the number of blocks; see :meth:`Data.arranged`.

    Blocks that are read ahead take ``waiting_bytes_per_row`` of the memory budget, but not of the processor's cache.
    If threads compute blocks in parallel (``for_threads``), there are enough for 16 cores, unless these are too small.
    """
    size = rounded(_largest_block(engine, bytes_per_row, fixed_bytes, waiting_bytes_per_row), up=False)
    n_blocks = -(-n_rows // size)
    if n_blocks > 1:
        enough = n_rows >= BLOCKS_PER_ROUND * _smallest_block(bytes_per_row, fixed_bytes)
        many = n_blocks > BLOCKS_PER_ROUND or (for_threads and enough)
        multiple = BLOCKS_PER_ROUND if many else FEW_BLOCKS_PER_ROUND
        n_blocks = -(-n_blocks // multiple) * multiple
    size = rounded(-(-n_rows // n_blocks), up=True)
    return size, -(-n_rows // size)


def _largest_block(engine: Engine, bytes_per_row: int, fixed_bytes: int, waiting_bytes_per_row: int) -> int:
    """Return the largest number of rows of a block within the memory budget."""
    budget, needed = engine.memory_budget, bytes_per_row + waiting_bytes_per_row
    affordable = (bytes_from(budget) - fixed_bytes) // needed
    if affordable < 1:
        raise ValueError(
            f"This model needs at least {fixed_bytes + needed:,} bytes of temporary memory, more than the "
            f"budget of {budget!r}. Raise it with engine=Local(memory_budget=...), use float32 data, "
            "or lower n_components."
        )
    fastest = fastest_block()
    if fastest is None:
        return affordable
    return min(affordable, max(fastest // bytes_per_row, _smallest_block(bytes_per_row, fixed_bytes)))


def _smallest_block(bytes_per_row: int, fixed_bytes: int) -> int:
    """Return the number of rows below which the fixed cost of a block would dominate."""
    return max(SMALLEST_BLOCK, ROWS_OVER_SHARED * fixed_bytes // bytes_per_row)


def zero_summary(rows: Any) -> np.ndarray:
    """Return zeros, for blocks that need no number for each row (n, D): (n,). They are made without a program."""
    return np.zeros(len(rows), rows.dtype)


def filled_up(rows: np.ndarray, weights: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Pad rows to ``size`` with repetitions of the first one, whose weight is zero."""
    filling = size - len(rows)
    if filling == 0:
        return rows, weights
    rows = np.concatenate([rows, np.repeat(rows[:1], filling, axis=0)])
    return rows, np.concatenate([weights, np.zeros(filling, dtype=weights.dtype)])


def collect(mapped: Sequence[Any], n_rows: int) -> Any:
    """Concatenate results of blocks, with one entry per row, as NumPy arrays without the padding rows."""
    host = [on_host(result) for result in mapped]
    return jax.tree.map(lambda *parts: np.concatenate(parts)[:n_rows], *host)


def quantile_of(mapped: Sequence[Any], weights: np.ndarray, share: np.ndarray) -> np.ndarray:
    """Return :meth:`Data.quantile` of values (starts, n) of all blocks, whose rows have these weights (N,)."""
    values = np.concatenate([np.asarray(part) for part in mapped], axis=1)
    values, weights = values[:, weights > 0], weights[weights > 0]
    return np.array([weighted_quantile(v, weights, s) for v, s in zip(values, share, strict=True)])


def rounded(size: int, *, up: bool) -> int:
    """Round to a multiple, up or down, of an eighth of the largest power of two that is at most ``size``."""
    step = max(1, 2 ** (int(size).bit_length() - 1) // STEPS_PER_DOUBLING)
    return (-(-size // step) if up else size // step) * step


def weighted_quantile(
    values: np.ndarray, weights: np.ndarray, share: float, *, above: float = 0.0, total: float | None = None
) -> float:
    """Return the largest value that rows with this share of all weight reach or exceed.

    Rows that lie ``above`` all of these may be given by their weight alone, if ``total`` is the weight of all rows.
    """
    if not 0 < share <= 1:
        raise ValueError(f"A share of all weight must lie in (0, 1]; got {share!r}.")
    n = len(values)
    # Products such as 0.9 · 10 may end just above a whole number.
    slack = 1 - 4 * np.finfo(float).eps
    if total is None and (weights == weights[0]).all():
        k = min(n, max(1, int(np.ceil(share * n * slack))))
        return float(np.partition(values, n - k)[n - k])
    if total is not None:  # rows above and below the given ones count by their weight alone
        below = max(total - above - float(np.sum(weights)), 0.0)
        values, weights = np.array([*values, np.inf, -np.inf]), np.array([*weights, above, below])
    return -float(np.quantile(-values, share * slack, weights=weights, method="inverted_cdf"))


@jax.jit
def add(a: Any, b: Any) -> Any:
    """Add two trees of arrays."""
    return jax.tree.map(jnp.add, a, b)
