"""Rows of a block in pieces that one program processes in turn, so that arrays over many causes fit a CPU's cache.

A block itself cannot be as small, because results that all its rows share, such as products of components with each
other, are recomputed for each block. With 1600 causes and 100 features, an iteration over 10000 rows takes 221 instead
of 376 ms.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from multicause.arrays import Array, fastest_block


class Pieces(NamedTuple):
    """Division of rows into pieces of equal size, the last one padded. Split arrays have a leading axis of pieces."""

    n_rows: int
    number: int = 1

    @classmethod
    def for_cache(cls, n_rows: int, bytes_per_row: int) -> Pieces:
        """Return as many pieces as needed for each to fit the cache; one piece on devices without such a limit."""
        fastest = fastest_block()
        if fastest is None:
            return cls(n_rows)
        whole = cls(n_rows, min(n_rows, max(1, round(n_rows * bytes_per_row / fastest))))
        # Rows of a piece are rounded up, so fewer pieces may be enough: none consists of padding only.
        return cls(n_rows, -(-n_rows // whole.size))

    @property
    def size(self) -> int:
        """Number of rows of a piece."""
        return -(-self.n_rows // self.number)

    def split_rows(self, rows: Array) -> Array:
        """Return (n, D) as (pieces, m, D), padded with the last row: a user's selection may fail on rows of zeros."""
        filled = jnp.pad(rows, ((0, self.number * self.size - self.n_rows), (0, 0)), mode="edge")
        return filled.reshape(self.number, self.size, rows.shape[1])

    def split(self, array: Array) -> Array:
        """Return (..., n) as (pieces, ..., m), padded with zeros, as is needed for weights."""
        filled = jnp.pad(array, [(0, 0)] * (array.ndim - 1) + [(0, self.number * self.size - self.n_rows)])
        return jnp.moveaxis(filled.reshape(*array.shape[:-1], self.number, self.size), -2, 0)

    def join(self, array: Array) -> Array:
        """Return (pieces, ..., m) as (..., n), without padding."""
        joined = jnp.moveaxis(array, 0, -2)
        return joined.reshape(*joined.shape[:-2], self.number * self.size)[..., : self.n_rows]

    def scan(self, function: Callable[..., tuple[Any, Any]], *split: Array) -> tuple[Any, Any]:
        """Apply a function with two results to each piece; return the sum of the first and a stack of the second."""
        first = tuple(array[0] for array in split)
        if self.number == 1:
            summed, kept = function(*first)
            return summed, jax.tree.map(lambda leaf: leaf[None], kept)
        nothing = jax.tree.map(
            lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), jax.eval_shape(lambda *piece: function(*piece)[0], *first)
        )

        def add(total: Any, piece: tuple[Array, ...]) -> tuple[Any, Any]:
            summed, kept = function(*piece)
            return jax.tree.map(jnp.add, total, summed), kept

        return jax.lax.scan(add, nothing, split)

    def map(self, function: Callable[..., Any], *split: Array) -> Any:
        """Return a function's arrays for each piece, stacked."""
        return self.scan(lambda *piece: (None, function(*piece)), *split)[1]

    def sum(self, function: Callable[..., Any], *split: Array) -> Any:
        """Return the sum of a function's arrays over all pieces."""
        return self.scan(lambda *piece: (function(*piece), None), *split)[0]
