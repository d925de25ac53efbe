"""Centring and whitening: the space in which an energy model sees the data, and the way back.

z = K (x − μ). With PCA, K = Λ^{−½} Vᵀ, and directions of small variance can be left out; with ZCA, K = V Λ^{−½} Vᵀ,
which is as near to the identity as a whitening can be, so that images stay images (EBM01 §5 and §6).
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from multicause.arrays import Array
from multicause.engines.base import Blocks, Engine
from multicause.model import Block

KINDS = ("pca", "zca")
# Columns that an error message names before it says "…".
NAMED = 8


class Whitening(NamedTuple):
    """An affine map to R dimensions, on the host and in double precision."""

    mean: np.ndarray  # (D,)
    matrix: np.ndarray  # (R, D), K
    inverse: np.ndarray  # (D, R), its pseudo-inverse
    log_volume: float  # Σ log of the singular values of K; log |det K| where K is square
    variance: float  # mean variance of a whitened dimension

    def cast(self, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
        """μ and K in the dtype of the data."""
        return self.mean.astype(dtype), self.matrix.astype(dtype)


def whiten(rows: Array, mean: Array, matrix: Array) -> Array:
    """K (x − μ) of rows (n, D): (n, R)."""
    return jnp.matmul(rows - mean, matrix.T, precision=jax.lax.Precision.HIGHEST)


def find_whitening(engine: Engine, blocks: Blocks, kind: str | None, n_dimensions: int | None) -> Whitening:
    """The whitening of a data set; ``None`` centres only."""
    rows = next(iter(blocks)).rows
    weight, total = (np.asarray(part) for part in engine.sum(_sums, blocks, rows[0].astype(jnp.float64)))
    mean = np.asarray(rows[0], dtype=float) + total / weight
    covariance = np.asarray(engine.sum(_scatter, blocks, jnp.asarray(mean))) / weight
    D = len(mean)
    if not np.isfinite(covariance).all():
        raise ValueError(
            "The values of X are too large to be squared in double precision, which its covariance needs. Scale X down."
        )
    if n_dimensions is not None and (kind != "pca" or n_dimensions > D):
        raise ValueError(
            f"n_whitened={n_dimensions} keeps the largest principal components of at most {D}, which needs "
            f"whiten='pca' and no more than that; got whiten={kind!r}."
        )
    if kind is None:
        return Whitening(mean, np.eye(D), np.eye(D), 0.0, max(float(np.trace(covariance)) / D, np.finfo(float).tiny))
    values, vectors = np.linalg.eigh(covariance)
    values, vectors = values[::-1], vectors[:, ::-1]
    kept = D if n_dimensions is None else n_dimensions
    _check_rank(covariance, values, kept, blocks.n_rows, float(jnp.finfo(rows.dtype).eps))
    values, vectors = values[:kept], vectors[:, :kept]
    # Signs as scikit-learn's PCA has them: the largest entry of each direction is positive.
    vectors = vectors * np.sign(vectors[np.abs(vectors).argmax(axis=0), np.arange(kept)])
    matrix, inverse = (vectors / np.sqrt(values)).T, vectors * np.sqrt(values)
    if kind == "zca":
        matrix, inverse = vectors @ matrix, inverse @ vectors.T
    return Whitening(mean, matrix, inverse, float(-0.5 * np.log(values).sum()), 1.0)


def _check_rank(covariance: np.ndarray, values: np.ndarray, kept: int, n_rows: int, epsilon: float) -> None:
    """Raise an error that says which columns are constant, or how many directions have no variance."""
    D = len(values)
    # Rounding of the data (which is squared here) and of the sums.
    least = values[0] * D * max(4 * np.finfo(float).eps, (10 * epsilon) ** 2)
    rank = int((values > max(least, 0)).sum())
    if rank >= kept:
        return
    constant = np.flatnonzero(np.diag(covariance) <= max(least, 0))
    if len(constant):
        named = ", ".join(map(str, constant[:NAMED])) + (", …" if len(constant) > NAMED else "")
        raise ValueError(
            f"{len(constant)} of the {D} columns of X do not vary (columns {named}), so they cannot be whitened. Leave "
            f"these columns out, keep the {rank} directions that vary with whiten='pca' and n_whitened={rank}, or use "
            "whiten=None."
            if rank
            else f"All {D} columns of X are constant, so there is nothing to learn. X needs rows that differ."
        )
    raise ValueError(
        f"X varies in {rank} directions only, and {kept} are to be whitened ({n_rows} rows, {D} columns): some columns "
        f"are linear combinations of others, or there are too few rows. Keep what varies with whiten='pca' and "
        f"n_whitened={rank}, leave columns out, or give more rows."
    )


@jax.jit
def _sums(block: Block, origin: Array) -> tuple[Array, Array]:
    """Σw and Σw(x − origin): without the origin, an offset would cancel all digits."""
    weights = block.weights.astype(jnp.float64)
    return weights.sum(), weights @ (block.rows.astype(jnp.float64) - origin)


@jax.jit
def _scatter(block: Block, mean: Array) -> Array:
    """Σ w (x − μ)(x − μ)ᵀ."""
    centred = block.rows.astype(jnp.float64) - mean
    return (block.weights.astype(jnp.float64)[:, None] * centred).T @ centred
