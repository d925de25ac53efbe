"""Replacement of all rows by few rows with the same first and second moments.

Gaussian models learn from Σ w, Σ w y and Σ w y yᵀ alone. For centred data with covariance C = L Lᵀ, the 2D rows
±√D L_j, each with the weight Σw / 2D, have the same three sums, so that EM learns the same from them, whatever the
number of rows was: the covariance is computed once instead of in every iteration.
"""

from __future__ import annotations

from functools import partial

import jax.numpy as jnp
import numpy as np

from multicause.arrays import Array, compiled, double_precision, matmul
from multicause.engines.base import Data
from multicause.engines.blocks import zero_summary
from multicause.noises.incomplete_clusters import completed_sums
from multicause.records import Block

# Arrays of the size of a block that its covariance needs at once.
ARRAYS = 4


def covariance_of(data: Data) -> tuple[float, np.ndarray, np.ndarray]:
    """Return the total weight, weighted mean (D,) and weighted covariance (D, D) of all rows, in double precision.

    Covariances take a second pass after that of the overview, in which an offset, or a mean that differs between the
    first rows and the others, would cancel digits.
    """
    with double_precision():
        overview, data = data.overview, _in_blocks(data)
        weight, mean = overview.weight, overview.mean
        if data.has_missing:
            covariance = _covariance_of_observed(data, mean)
        else:
            covariance = np.asarray(data.sum(_scatter, mean)) / weight
    if not (np.abs(covariance) <= np.finfo(data.dtype).max).all():
        largest = max(map(abs, overview.limits))
        raise ValueError(
            f"The largest value of X, {largest:.3g}, is too large to be squared in {data.dtype}. Scale X down."
        )
    return weight, mean, covariance


def _covariance_of_observed(data: Data, mean: np.ndarray) -> np.ndarray:
    """Return covariances of pairs of dimensions, each over the rows in which both were observed: (D, D).

    Together they may be no covariance of any data: negative eigenvalues become zero.
    """
    products, counts = (np.asarray(part) for part in data.sum(_observed_scatter, mean))
    values, vectors = np.linalg.eigh(products / np.where(counts > 0, counts, 1))
    return (vectors * np.maximum(values, 0)) @ vectors.T


def expected_moments(data: Data, mean: np.ndarray, covariance: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """Return the total weight, mean (D,) and covariance (D, D) that rows with missing values are expected to have.

    Missing values are normal, given the observed ones, under a mean and a covariance that are known so far.
    """
    with double_precision():
        sums = _in_blocks(data).sum(_completed, mean, covariance)
        weight, total, squares = (np.asarray(part) for part in sums)
    apart = total / weight
    return float(weight), mean + apart, squares / weight - np.outer(apart, apart)


def _in_blocks(data: Data) -> Data:
    return data.arranged(zero_summary, ARRAYS * np.dtype(float).itemsize * data.n_features)


@partial(compiled, static=())
def _scatter(block: Block, mean: Array) -> Array:
    """Return Σ w (y − μ)(y − μ)ᵀ of the rows of a block: (D, D)."""
    centred = block.rows.astype(jnp.float64) - mean
    return matmul((block.weights.astype(jnp.float64)[:, None] * centred).T, centred)


@partial(compiled, static=())
def _observed_scatter(block: Block, mean: Array) -> tuple[Array, Array]:
    """Return Σ w (y − μ)(y − μ)ᵀ and Σ w over the rows in which both dimensions of a pair were observed."""
    centred, weights = block.rows.astype(jnp.float64) - mean, block.weights.astype(jnp.float64)[:, None]
    observed = (~jnp.isnan(centred)).astype(jnp.float64)
    centred = jnp.where(observed > 0, centred, 0)
    return matmul((weights * centred).T, centred), matmul((weights * observed).T, observed)


@partial(compiled, static=())
def _completed(block: Block, mean: Array, covariance: Array) -> tuple[Array, Array, Array]:
    """Return Σ w, Σ w ⟨y − μ⟩ and Σ w ⟨(y − μ)(y − μ)ᵀ⟩, given the observed values."""
    centred, weights = block.rows.astype(jnp.float64) - mean, block.weights.astype(jnp.float64)
    observed = (~jnp.isnan(centred)).astype(jnp.float64)
    centred = jnp.where(observed > 0, centred, 0)
    sums = completed_sums(jnp.zeros_like(mean)[None], covariance[None], centred, observed, weights[None])
    return weights.sum(), sums[0][0], sums[1][0]


def check_variation(data: Data) -> None:
    """Raise ValueError if rows that count do not differ, or by so little that their squares vanish."""
    if data.n_weighted == data.n_rows:
        lowest, highest = data.overview.lowest, data.overview.highest
    else:
        limits = [found for found in data.each(_limits_of_columns) if found is not None]
        lowest = np.fmin.reduce([low for low, _ in limits])
        highest = np.fmax.reduce([high for _, high in limits])
    span = float(np.nanmax(highest - lowest))
    if span == 0:
        raise ValueError(
            f"All {data.n_weighted} rows of X that have a weight are equal, so nothing varies that causes could "
            "explain. X needs rows that differ."
        )
    if span < np.sqrt(float(np.finfo(data.dtype).tiny)):
        raise ValueError(
            f"Values of X differ by at most {span:.3g}, too little to be squared in {data.dtype}. Scale X."
        )


def _limits_of_columns(rows: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    rows = rows[weights > 0]
    # These leave NaN out, which marks missing values.
    return (np.fmin.reduce(rows), np.fmax.reduce(rows)) if len(rows) else None


def condensed(weight: float, covariance: np.ndarray, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
    """Return 2D rows of zero mean, and their weights, with this covariance (D, D) and total weight."""
    values, vectors = np.linalg.eigh(covariance)
    n_features = len(values)
    rows = (vectors * np.sqrt(n_features * np.maximum(values, 0))).T
    return np.concatenate([rows, -rows]).astype(dtype), np.full(2 * n_features, weight / (2 * n_features), dtype=dtype)
