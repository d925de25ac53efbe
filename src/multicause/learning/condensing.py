"""Few rows that stand for many, where only first and second moments matter.

Gaussian models learn from Σ w, Σ w y and Σ w y yᵀ alone. For centred data with covariance C = L Lᵀ, the 2D rows
±√D L_j, each with the weight Σw / 2D, have the same three sums, so that EM learns the same from them, whatever the
number of rows was: the covariance is computed once instead of in every iteration.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from multicause.arrays import Array, double_precision, matmul
from multicause.engines.base import Engine
from multicause.model import Block

# Arrays of the size of a block that its covariance needs at once.
ARRAYS = 4


def covariance_of(engine: Engine, X: np.ndarray, weights: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """Total weight, weighted mean (D,) and weighted covariance (D, D) of all rows, in double precision.

    Two passes: an offset, or a mean that differs between the first rows and the others, would cancel digits in one.
    """
    with double_precision():
        # Nothing needs to be known of a row beforehand; any number of its own may stand for its summary.
        data = engine.load(X, weights).arranged(lambda rows: rows[:, 0], ARRAYS * np.dtype(float).itemsize * X.shape[1])
        origin = data.rows(np.array([0]))[0].astype(float)
        weight, total = (np.asarray(part) for part in data.sum(_sums, origin))
        mean = np.asarray(origin) + total / weight
        covariance = np.asarray(data.sum(_scatter, jnp.asarray(mean))) / weight
    if not (np.abs(covariance) <= np.finfo(X.dtype).max).all():
        raise ValueError(
            f"The largest value of X, {np.abs(X).max():.3g}, is too large to be squared in {X.dtype}. Scale X down."
        )
    return float(weight), mean, covariance


@jax.jit
def _sums(block: Block, origin: Array) -> tuple[Array, Array]:
    """Σ w and Σ w (y − origin)."""
    weights = block.weights.astype(jnp.float64)
    return weights.sum(), weights @ (block.rows.astype(jnp.float64) - origin)


@jax.jit
def _scatter(block: Block, mean: Array) -> Array:
    """Σ w (y − μ)(y − μ)ᵀ."""
    centred = block.rows.astype(jnp.float64) - mean
    return matmul((block.weights.astype(jnp.float64)[:, None] * centred).T, centred)


def check_variation(X: np.ndarray, weights: np.ndarray) -> None:
    """Raise ValueError if rows that count do not differ, or by so little that their squares vanish."""
    rows = X[weights > 0]
    span = float(np.max(np.ptp(rows, axis=0)))
    if span == 0:
        raise ValueError(
            f"All {len(rows)} rows of X that have a weight are equal, so nothing varies that causes could explain. "
            "X needs rows that differ."
        )
    if span < np.sqrt(float(np.finfo(X.dtype).tiny)):
        raise ValueError(f"Values of X differ by at most {span:.3g}, too little to be squared in {X.dtype}. Scale X.")


def condensed(weight: float, covariance: np.ndarray, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
    """2D rows of zero mean, and their weights, with this covariance (D, D) and total weight."""
    values, vectors = np.linalg.eigh(covariance)
    n_features = len(values)
    rows = (vectors * np.sqrt(n_features * np.maximum(values, 0))).T
    return np.concatenate([rows, -rows]).astype(dtype), np.full(2 * n_features, weight / (2 * n_features), dtype=dtype)
