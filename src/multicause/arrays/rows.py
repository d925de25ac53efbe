"""Rows of data relative to an origin, and with zeros in place of missing values."""

import jax.numpy as jnp

from multicause.arrays.precision import Array


def relative(values: Array, origin: Array | None) -> Array:
    """Return data or means (..., D) relative to the origin, if there is one."""
    return values if origin is None else values - origin


def observed_data(rows: Array, origin: Array | None, observed: Array | None) -> Array:
    """Return rows (n, D) relative to an origin, if there is one, and zero for missing values."""
    data = relative(rows, origin)
    return data if observed is None else jnp.where(observed > 0, data, 0)
