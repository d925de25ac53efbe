"""Data in the memory of this process, worked through in blocks on one device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from multicause.arrays import bytes_from, fastest_block
from multicause.engines.base import Blocks, Engine
from multicause.model import Block

# Rows below which a block is not made smaller for the sake of the cache: what a block costs in any case would prevail.
SMALLEST_BLOCK = 1024
# For the same reason, a block's rows take at least this many times the memory of what all rows share, such as the
# products of components with each other: these are made anew for each block.
ROWS_OVER_SHARED = 4


class Local(Engine):
    """Blocks in memory, one after the other.

    Parameters
    ----------
    memory_budget : str or int, default="2GiB"
        Most memory that the temporary arrays of one block may take, as a number of bytes or text such as "512MiB". On a
        CPU, blocks are smaller if that is faster.
    """

    def __init__(self, *, memory_budget: str | int = "2GiB") -> None:
        self.memory_budget = memory_budget

    def load(
        self,
        X: np.ndarray,
        weights: np.ndarray,
        summarize: Callable[[Any], Any],
        bytes_per_row: int,
        fixed_bytes: int = 0,
    ) -> Blocks:
        """Blocks of equal size, the last one filled up with rows of weight zero: one shape, one compilation."""
        n_rows = len(X)
        affordable = (bytes_from(self.memory_budget) - fixed_bytes) // bytes_per_row
        if affordable < 1:
            raise ValueError(
                f"This model needs at least {fixed_bytes + bytes_per_row:,} bytes of temporary memory, more than the "
                f"budget of {self.memory_budget!r}. Raise it with engine=Local(memory_budget=...), use float32 data, "
                "or lower n_components."
            )
        fastest = fastest_block()
        if fastest is not None:
            worth_it = max(fastest // bytes_per_row, SMALLEST_BLOCK, ROWS_OVER_SHARED * fixed_bytes // bytes_per_row)
            affordable = min(affordable, worth_it)
        n_blocks = -(-n_rows // affordable)
        size = -(-n_rows // n_blocks)
        blocks = []
        for start in range(0, n_rows, size):
            rows, block_weights = X[start : start + size], weights[start : start + size]
            filling = size - len(rows)
            if filling:
                rows = np.concatenate([rows, np.repeat(X[:1], filling, axis=0)])
                block_weights = np.concatenate([block_weights, np.zeros(filling, dtype=weights.dtype)])
            position = np.arange(start, start + size, dtype=np.uint32)
            on_device = jnp.asarray(rows)
            blocks.append(Block(on_device, jnp.asarray(block_weights), summarize(on_device), jnp.asarray(position)))
        return Blocks(blocks, n_rows, int((weights > 0).sum()))

    def sum(self, function: Callable[..., Any], blocks: Blocks, *arguments: Any, aligned: Sequence[Any] = ()) -> Any:
        """From the first block to the last."""
        total = None
        for number, block in enumerate(blocks):
            extra = (aligned[number],) if aligned else ()
            term = function(block, *arguments, *extra)
            total = term if total is None else _add(total, term)
        return total

    def map(self, function: Callable[..., Any], blocks: Blocks, *arguments: Any) -> Sequence[Any]:
        """A list with one entry per block."""
        return [function(block, *arguments) for block in blocks]

    def collect(self, mapped: Sequence[Any], blocks: Blocks) -> Any:
        """NumPy arrays, without the rows that filled up the last block."""
        host = [jax.device_get(result) for result in mapped]
        return jax.tree.map(lambda *parts: np.concatenate(parts)[: blocks.n_rows], *host)

    def can_keep(self, n_bytes: int) -> bool:
        """The budget of one block's temporary arrays, once more."""
        return n_bytes <= bytes_from(self.memory_budget)

    def quantile(self, mapped: Sequence[Any], blocks: Blocks, share: np.ndarray) -> np.ndarray:
        """By partial sorting where all weights are equal, else by sorting."""
        values = np.concatenate([np.asarray(part) for part in mapped], axis=1)
        weights = np.concatenate([np.asarray(block.weights, dtype=float) for block in blocks])
        values, weights = values[:, weights > 0], weights[weights > 0]
        return np.array([_weighted_quantile(v, weights, s) for v, s in zip(values, share, strict=True)])


def _weighted_quantile(values: np.ndarray, weights: np.ndarray, share: float) -> float:
    if not 0 < share <= 1:
        raise ValueError(f"A share of all weight must lie in (0, 1]; got {share!r}.")
    n = len(values)
    # Products such as 0.9 · 10 may end just above a whole number.
    slack = 1 - 4 * np.finfo(float).eps
    if (weights == weights[0]).all():
        k = min(n, max(1, int(np.ceil(share * n * slack))))
        return float(np.partition(values, n - k)[n - k])
    order = np.argsort(values)[::-1]
    reached = np.cumsum(weights[order])
    return float(values[order[min(n - 1, np.searchsorted(reached, share * reached[-1] * slack))]])


@jax.jit
def _add(a: Any, b: Any) -> Any:
    return jax.tree.map(jnp.add, a, b)
