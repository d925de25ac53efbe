"""Rows of arrays by index, in the way that is fastest on the device."""

import jax
import jax.numpy as jnp
import numpy as np

from multicause.arrays.hardware import one_by_one
from multicause.arrays.precision import Array, matmul


def indices_of_largest(scores: Array, k: int) -> Array:
    """Return the indices (k, n) of the k largest entries of each column of (H, n), best first.

    The lower index wins a tie. Ranks need no double precision: ``top_k`` takes twenty times as long in it. On an
    accelerator, each pass finds the largest key below the last one, where a key is a score and, in its lower half, an
    index; this is faster than the sorting of ``top_k``.
    """
    scores = _in_single_precision(scores)
    if one_by_one():
        return jax.lax.top_k(scores.T, k)[1].T
    n = len(scores)
    bits = jax.lax.bitcast_convert_type(scores, jnp.int32)
    ordered = jnp.where(bits < 0, bits ^ jnp.int32(0x7FFFFFFF), bits).astype(jnp.int64)
    keys = (ordered << 32) | jnp.arange(n - 1, -1, -1, dtype=jnp.int64)[:, None]
    least, found = jnp.iinfo(jnp.int64).min, []
    last = jnp.full(scores.shape[1], jnp.iinfo(jnp.int64).max)
    for _ in range(k):
        last = jnp.max(jnp.where(keys < last, keys, least), axis=0)
        found.append((n - 1 - (last & 0xFFFFFFFF)).astype(jnp.int32))
    return jnp.stack(found)


def _in_single_precision(scores: Array) -> Array:
    """Scale scores (H, n) to the range of single precision, keeping the order within each column.

    Each column becomes its distance from its largest score, as a fraction of the largest distance: scores near the
    largest, where ranks matter, keep most digits.
    """
    if scores.dtype == jnp.float32:
        return scores
    largest = jnp.max(scores, axis=0)
    below = scores - jnp.where(jnp.isfinite(largest), largest, 0)
    distance = -jnp.min(jnp.where(below > -jnp.inf, below, 0), axis=0)
    return (below / jnp.maximum(distance, jnp.finfo(scores.dtype).tiny)).astype(jnp.float32)


def rows_at(values: Array, indices: np.ndarray) -> Array:
    """Return the rows of (H, n) at constant, valid indices: (indices, n).

    A CPU gathers them by index; an accelerator slices each one, fused with the code that uses it.
    """
    if one_by_one():
        return values.at[indices].get(mode="promise_in_bounds")
    return jnp.stack([values[int(index)] for index in indices])


def sum_rows_at(values: Array, indices: np.ndarray, size: int) -> Array:
    """Sum the rows of (..., k, n) that have the same constant index (k,): (..., size, n).

    On a CPU a matrix product is fastest, on an accelerator sums that are fused with the computation of the values.
    """
    if one_by_one():
        return matmul(jnp.asarray(np.arange(size)[:, None] == indices, dtype=values.dtype), values)
    nothing = jnp.zeros_like(values[..., 0, :])
    sums = [sum((values[..., k, :] for k in np.flatnonzero(indices == place)), nothing) for place in range(size)]
    return jnp.stack(sums, axis=-2)


def sum_by_index(values: Array, indices: Array, size: int) -> Array:
    """Sum values (..., k, n) over k and n by their indices (k, n), which are below ``size``: (..., size)."""
    return jnp.zeros((*values.shape[:-2], size), values.dtype).at[..., indices].add(values)


def add_by_index(values: Array, indices: Array, more: Array) -> Array:
    """Add ``more`` (k, n) to the rows of values (H, n) given by ``indices`` (k, n), distinct within a column.

    On a CPU comparisons are used (four times as fast as scattered writes), on an accelerator scattered writes (twice as
    fast).
    """
    if one_by_one():
        places = jnp.arange(len(values))[:, None]
        for index, value in zip(indices, more, strict=True):
            values = values + jnp.where(index == places, value, 0)
        return values
    return values.at[indices, jnp.arange(values.shape[1])].add(more, unique_indices=True)
