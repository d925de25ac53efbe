"""Orthonormal basis whose first vectors span the filters, and the coordinates of the filters in it.

It is computed by plain array operations instead of LAPACK. For matrices of this size, LAPACK's threads take longer to
start than the arithmetic takes; an update of contrastive divergence with them took three times as long.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from multicause.arrays import Array, matmul


class Frame(NamedTuple):
    """QR decomposition Wᵀ = Q [T; 0] of filters W (H, R) with H < R."""

    basis: Array  # (R, R) Q, orthonormal; its first H columns span the filters
    triangle: Array  # (H, H) T, upper triangular: the filters have the coordinates Tᵀ
    inverse: Array  # (H, H) T⁻¹


def frame_of(filters: Array) -> Frame:
    """Compute the frame of filters (H, R), a constant for derivatives; not finite for linearly dependent filters."""
    filters = jax.lax.stop_gradient(filters)
    units, dimensions = filters.shape
    places = jnp.arange(dimensions)

    def reflect(number: Array, rows: Array) -> Array:
        """Reflect all columns so that this one has only zeros below the diagonal (Householder)."""
        column = jnp.where(places >= number, rows[:, number], 0)
        length = jnp.sqrt((column**2).sum())
        # This sign avoids cancellation.
        target = jnp.where(rows[number, number] > 0, -length, length)
        normal = jnp.where(places == number, column - target, column)
        return rows - jnp.outer(2 / (normal**2).sum() * normal, normal @ rows)

    both = jnp.concatenate([filters.T, jnp.eye(dimensions, dtype=filters.dtype)], axis=1)
    both = jax.lax.fori_loop(0, units, reflect, both)
    triangle = jnp.triu(both[:units, :units])
    return Frame(both[:, units:].T, triangle, _inverse(triangle))


def unseen(frame: Frame, filters: Array, Z: Array) -> Array:
    """Return z_⊥ = z − Wᵀa (n, R), the part of rows z that is orthogonal to the filters, where a minimizes ‖z_⊥‖.

    Because a is a minimizer, the first derivatives of ‖z_⊥‖² do not change if a is treated as a constant.
    """
    coordinates = matmul(Z, frame.basis[:, : len(filters)])
    return Z - matmul(jax.lax.stop_gradient(matmul(coordinates, frame.inverse.T)), filters)


def _inverse(triangle: Array) -> Array:
    """Invert an upper triangular matrix, row by row from the last one."""
    size = len(triangle)
    places = jnp.arange(size)

    def substitute(number: Array, inverse: Array) -> Array:
        row = size - 1 - number
        unit = (places == row).astype(triangle.dtype)
        return inverse.at[row].set((unit - triangle[row] @ inverse) / triangle[row, row])

    return jax.lax.fori_loop(0, size, substitute, jnp.zeros_like(triangle))
