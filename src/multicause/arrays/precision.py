"""Precision of numbers and of matrix products, whatever the user's settings of JAX are."""

from contextlib import AbstractContextManager
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

Array = jax.Array


def double_precision() -> AbstractContextManager[Any]:
    """Enable 64-bit numbers inside a ``with`` block, whatever the user's own JAX settings are.

    Arrays keep the dtype of the data; the switch only allows sums such as the bound to be accumulated in
    double precision while the arrays are in single precision.
    """
    return jax.enable_x64(True)


def matmul(a: Array, b: Array) -> Array:
    """Compute the matrix product in the full precision of its operands.

    GPUs would otherwise round single-precision operands to 10 bits (TF32), which changed log-likelihoods by 4e-5.
    """
    return jnp.matmul(a, b, precision=jax.lax.Precision.HIGHEST)


def sum_in_double(values: Array, axis: int | None = None) -> Array:
    """Sum in double precision: near convergence a bound summed in single precision stops changing."""
    return jnp.sum(values, axis=axis, dtype=jnp.float64)


def namespace(array: Any) -> Any:
    """Return ``jax.numpy`` for traced arrays and arrays on a device, else NumPy, for code that serves both."""
    return jnp if isinstance(array, jax.Array) else np
