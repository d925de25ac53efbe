"""Numerical functions that XLA does not offer, or not in the fastest way."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from multicause.arrays.hardware import one_by_one
from multicause.arrays.precision import Array, matmul, sum_in_double


def largest_with_share(
    values: Array, weights: Array, share: Array, total: Callable[[Array], Array] = lambda own: own
) -> Array:
    """Return the weighted upper quantile: the largest value such that values of at least it have this share of weight.

    With equal weights this is the k-th largest of N values, k = ⌈share · N⌉. The value is found from its highest bits
    to its lowest, which takes sums over all values and no sorting: on a CPU bit by bit, on an accelerator, where
    starting a sum takes longer than computing it, four bits at a time. If values are distributed over devices,
    ``total`` sums a number over all of them.
    """
    signed, unsigned = (jnp.int32, jnp.uint32) if values.dtype == jnp.float32 else (jnp.int64, jnp.uint64)
    n_bits = jnp.iinfo(unsigned).bits
    top = jnp.asarray(1, unsigned) << (n_bits - 1)
    bits = jax.lax.bitcast_convert_type(values, unsigned)
    # Keys have the order of the values: the bits of negative numbers are inverted, so that they lie below the others.
    keys = jnp.where(jax.lax.bitcast_convert_type(values, signed) < 0, ~bits, bits | top)
    # Products such as 0.9 · 10 may end just above a whole number.
    target = share * total(sum_in_double(weights)) * (1 - 4 * np.finfo(float).eps)

    at_once = 1 if one_by_one() else 4
    digits = jnp.arange(1, 2**at_once, dtype=unsigned)

    def add_digit(number: Array, found: Array) -> Array:
        more = found | (digits << (n_bits - at_once * (number + 1)).astype(unsigned))
        reached = [total(sum_in_double(jnp.where(keys >= one, weights, 0))) >= target for one in more]
        # The larger the digit, the smaller the weight that reaches it.
        return jnp.max(jnp.where(jnp.stack(reached), more, found))

    found = jax.lax.fori_loop(0, n_bits // at_once, add_digit, jnp.zeros((), unsigned))
    found = jnp.where(found >= top, found & ~top, ~found)
    return jax.lax.bitcast_convert_type(found, values.dtype)


# Number of squarings in :func:`largest_eigenvalue`.
SQUARINGS = 8


def largest_eigenvalue(matrix: Array) -> Array:
    """Return a tight upper bound of the largest eigenvalue of a positive semidefinite matrix (H, H).

    λ ≤ (tr Aᵏ)^(1/k) ≤ H^(1/k) λ, here with k = 256: exact to rounding unless the next eigenvalue is nearly as large,
    and at most 2 % too large for H = 100. It takes a few matrix products; LAPACK would start threads, which in a loop
    over small batches took ten times as long as all other work.
    """

    def normalized(matrix: Array) -> tuple[Array, Array]:
        trace = jnp.trace(matrix)
        # A matrix of zeros stays unchanged.
        divisor = jnp.where(trace > 0, trace, 1)
        return matrix / divisor, divisor

    def square(number: Array, state: tuple[Array, Array]) -> tuple[Array, Array]:
        matrix, logarithm = state
        matrix, divisor = normalized(matmul(matrix, matrix))
        return matrix, logarithm + jnp.log(divisor) / 2.0 ** (number + 1)

    first, divisor = normalized(matrix)
    _, logarithm = jax.lax.fori_loop(0, SQUARINGS, square, (first, jnp.log(divisor)))
    return jnp.where(jnp.trace(matrix) > 0, jnp.exp(logarithm), 0)


def sum_over_features(function: Callable[..., Array], zero: Array, *arrays: Any) -> Array:
    """Compute Σ_d ``function(array_d, ...)`` over the first axis of arrays or trees; ``zero`` has a term's shape."""
    if one_by_one():
        return jax.lax.scan(lambda total, one: (total + function(*one), None), zero, arrays)[0]
    return jnp.sum(jax.vmap(function)(*arrays), axis=0)


def stored(values: Any) -> Any:
    """Return the values unchanged; on a CPU they are computed once, where XLA would recompute them for each use."""
    return jax.lax.optimization_barrier(values) if one_by_one() else values
