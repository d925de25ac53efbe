"""Few rows that stand for many, where only first and second moments matter.

Gaussian models learn from Σ w, Σ w y and Σ w y yᵀ alone. For centred data with covariance C = L Lᵀ, the 2D rows
±√D L_j, each with the weight Σw / 2D, have the same three sums, so that EM learns the same from them, whatever the
number of rows was: the covariance is computed once instead of in every iteration.
"""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from multicause.arrays import Array, double_precision, matmul
from multicause.engines.base import Engine
from multicause.model import Block


@partial(jax.jit)
def _moments(block: Block, origin: Array) -> tuple[Array, Array, Array]:
    """Σ w, Σ w (y − origin) and Σ w (y − origin)(y − origin)ᵀ, added up in double precision."""
    centred = block.rows - origin
    weighted = centred * block.weights[:, None]
    return (
        jnp.sum(block.weights, dtype=jnp.float64),
        jnp.sum(weighted, axis=0, dtype=jnp.float64),
        matmul(weighted.T, centred).astype(jnp.float64),
    )


def covariance_of(engine: Engine, X: np.ndarray, weights: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """Total weight, weighted mean (D,) and weighted covariance (D, D) of all rows, in double precision."""
    with double_precision():
        # Nothing needs to be known of a row beforehand; any number of its own may stand for its summary.
        blocks = engine.load(X, weights, lambda rows: rows[:, 0], 4 * X.itemsize * X.shape[1])
        origin = jnp.asarray(np.asarray(next(iter(blocks)).rows).mean(axis=0))
        weight, total, products = (np.asarray(part) for part in engine.sum(_moments, blocks, origin))
    mean = total / weight
    covariance = products / weight - np.outer(mean, mean)
    return float(weight), np.asarray(origin, dtype=float) + mean, covariance


def condensed(weight: float, covariance: np.ndarray, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
    """2D rows of zero mean, and their weights, with this covariance (D, D) and total weight."""
    values, vectors = np.linalg.eigh(covariance)
    n_features = len(values)
    rows = (vectors * np.sqrt(n_features * np.maximum(values, 0))).T
    return np.concatenate([rows, -rows]).astype(dtype), np.full(2 * n_features, weight / (2 * n_features), dtype=dtype)
