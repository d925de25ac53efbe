"""Amari distance between two matrices, up to permutation and scaling: EBM01 footnote 4."""

import numpy as np
from numpy.typing import ArrayLike


def amari_distance(A: ArrayLike, B: ArrayLike) -> float:
    """Compute the Amari distance of the product A·B⁻¹ from a scaled permutation matrix.

    With P = A B⁻¹, Σ_ij |P_ij|/max_k |P_ik| + |P_ij|/max_k |P_kj| − 2N, which is zero if and only if the rows
    of A are those of B in another order and scale. (The footnote prints −2N², with which the distance of equal matrices
    would be 2N − 2N².)
    """
    first, second = np.asarray(A, dtype=float), np.asarray(B, dtype=float)
    if first.ndim != 2 or first.shape[0] != first.shape[1] or first.shape != second.shape:
        raise ValueError(
            f"amari_distance needs two square matrices of the same size; got shapes {first.shape} and {second.shape}."
        )
    if not (np.isfinite(first).all() and np.isfinite(second).all()):
        raise ValueError("amari_distance needs finite matrices; got NaN or infinity.")
    if np.linalg.matrix_rank(second) < len(second) or np.linalg.matrix_rank(first) < len(first):
        raise ValueError("amari_distance needs invertible matrices; at least one of these is singular.")
    product = np.abs(np.linalg.solve(second.T, first.T).T)
    rows = product / product.max(axis=1, keepdims=True)
    columns = product / product.max(axis=0, keepdims=True)
    return float(rows.sum() + columns.sum() - 2 * len(product))
