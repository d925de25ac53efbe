"""Centring and whitening: a linear map after which data have unit variance in every direction, and the way back.

z = K (x − μ). With PCA, K = Λ^{−½} Vᵀ, and directions of small variance can be left out; with ZCA, K = V Λ^{−½} Vᵀ,
which is as near to the identity as a whitening can be, so that images stay images (TN10 §10.3, EBM01 §5 and §6).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from multicause.arrays import Array, matmul
from multicause.engines.base import Data
from multicause.preparation.moments import covariance_of

KINDS = ("pca", "zca")
# Columns that an error message names before it says "…".
NAMED = 8


class WhiteningMap(NamedTuple):
    """An affine map from D to R dimensions, on the host and in double precision."""

    mean: np.ndarray  # (D,)
    matrix: np.ndarray  # (R, D), K
    inverse: np.ndarray  # (D, R), its pseudo-inverse
    log_volume: float  # Σ log of the singular values of K; log |det K| where K is square
    variance: float  # mean variance of a whitened dimension

    def cast(self, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
        """Return the mean μ and the matrix K in the dtype of the data."""
        return self.mean.astype(dtype), self.matrix.astype(dtype)


def whiten(rows: Array, mean: Array, matrix: Array) -> Array:
    """Return K (x − μ) of rows (n, D): (n, R)."""
    return matmul(rows - mean, matrix.T)


def find_whitening(data: Data, kind: str | None, n_directions: int | None) -> WhiteningMap:
    """Return the whitening of a data set for an energy model; ``None`` centres it and divides it by one number.

    That number is the root of the mean variance, so that learning rates and step sizes need not follow the units of the
    data.
    """
    D = data.n_features
    if n_directions is not None and (kind != "pca" or n_directions > D):
        raise ValueError(
            f"n_whitened={n_directions} keeps the largest principal components of at most {D}, which needs "
            f"whiten='pca' and no more than that; got whiten={kind!r}."
        )
    _, mean, covariance = covariance_of(data)
    if kind is None:
        check_covariance(covariance)
        scale = float(np.sqrt(np.trace(covariance) / D))
        return WhiteningMap(mean, np.eye(D) / scale, np.eye(D) * scale, -D * float(np.log(scale)), 1.0)
    matrix, inverse = whitening_matrices(
        covariance,
        kind,
        n_directions,
        remedy="keep the {rank} directions that vary with whiten='pca' and n_whitened={rank}, or use whiten=None",
        precision=float(np.finfo(data.dtype).eps),
    )
    return WhiteningMap(mean, matrix, inverse, float(np.log(np.linalg.svd(matrix, compute_uv=False)).sum()), 1.0)


def whitening_matrices(
    covariance: np.ndarray, kind: str, n_directions: int | None, *, remedy: str, precision: float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """Return K (R, D) with K·C·Kᵀ = 1 along the R largest principal axes of a covariance, and its inverse (D, R).

    The error for data that vary in too few directions ends with ``remedy``, where {rank} stands for their number.
    ``precision`` is the relative rounding of the data.
    """
    check_covariance(covariance)
    values, vectors = np.linalg.eigh(covariance)
    values, vectors = values[::-1], vectors[:, ::-1]
    kept = len(values) if n_directions is None else n_directions
    _check_rank(covariance, values, kept, remedy, precision)
    values, vectors = values[:kept], vectors[:, :kept]
    # Signs as scikit-learn's PCA has them: the largest entry of each direction is positive.
    vectors = vectors * np.sign(vectors[np.abs(vectors).argmax(axis=0), np.arange(kept)])
    matrix, inverse = (vectors / np.sqrt(values)).T, vectors * np.sqrt(values)
    return (vectors @ matrix, inverse @ vectors.T) if kind == "zca" else (matrix, inverse)


def check_covariance(covariance: np.ndarray) -> None:
    """Raise an error for data that do not vary at all, or so much that their squares are infinite."""
    if not np.isfinite(covariance).all():
        raise ValueError(
            "The values of X are too large to be squared in double precision, which its covariance needs. Scale X down."
        )
    if not np.diag(covariance).any():
        raise ValueError(
            f"All {len(covariance)} columns of X are constant, or vary too little to be squared in double precision, "
            "so there is nothing to learn. X needs rows that differ; if they do, scale X up."
        )


def _check_rank(covariance: np.ndarray, values: np.ndarray, kept: int, remedy: str, precision: float) -> None:
    """Raise an error that says which columns are constant, or how many directions have no variance."""
    D = len(values)
    # Rounding of the data (which is squared here) and of the sums.
    least = values[0] * D * max(8 * np.finfo(float).eps, (10 * precision) ** 2)
    rank = int((values > least).sum())
    if rank >= kept:
        return
    constant = np.flatnonzero(np.diag(covariance) <= least)
    if len(constant):
        named = ", ".join(map(str, constant[:NAMED])) + (", …" if len(constant) > NAMED else "")
        raise ValueError(
            f"{len(constant)} of the {D} columns of X do not vary (columns {named}), so they cannot be whitened. Leave "
            f"these columns out, or {remedy.format(rank=rank)}."
        )
    raise ValueError(
        f"X varies in {rank} of {D} directions only, and {kept} are to be whitened: some columns are linear "
        f"combinations of others, or there are too few rows. Leave columns out, give more rows, or "
        f"{remedy.format(rank=rank)}."
    )
