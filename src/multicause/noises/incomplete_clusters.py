"""Gaussian clusters with full covariances, for rows with missing values.

The observed values o of a row have the density N(y_o; W_o, Σ_oo), with a different submatrix for each row. A matrix
that is Σ in observed rows and columns, and the identity elsewhere, has the same determinant and the same products with
vectors that are zero for missing values, so that one batch of factorizations can be used for all rows. Given y_o,
missing values are normal with the mean W + Σ a, a = Σ_oo⁻¹ (y_o − W_o), and the covariance Σ − Σ_{:o} Σ_oo⁻¹ Σ_{o:}.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp

from multicause.arrays import Array, inverse_and_log_det, matmul

# Number of matrix elements that are factorized at the same time.
AT_ONCE = 2**20


def log_densities(means: Array, covariances: Array, data: Array, observed: Array) -> Array:
    """Return −½ (y − W)_oᵀ Σ_oo⁻¹ (y − W)_o − ½ log |Σ_oo| of every cluster and row: (H, n).

    Data (n, D) are zero for missing values.
    """

    def one(apart: Array, mask: Array, covariance: Array) -> Array:
        inverse, log_det = inverse_and_log_det(_of_observed(covariance, mask))
        product = jnp.matmul(inverse, apart, precision=jax.lax.Precision.HIGHEST)
        return -0.5 * (jnp.sum(apart * product) + log_det)

    def of_cluster(cluster: tuple[Array, Array]) -> Array:
        mean, covariance = cluster
        return _over_rows(lambda apart, mask: one(apart, mask, covariance), (data - mean) * observed, observed)

    return jax.lax.map(of_cluster, (means, covariances))


def conditional_means(means: Array, covariances: Array, data: Array, observed: Array, weights: Array) -> Array:
    """Return Σ_h q_n(h) ⟨y⟩ given the observed values and cluster h, with the weights q (H, n): (n, D)."""

    def add(total: Array, cluster: tuple[Array, Array, Array]) -> tuple[Array, None]:
        mean, covariance, own = cluster
        return total + own[:, None] * _completed(mean, covariance, data, observed)[0], None

    return jax.lax.scan(add, jnp.zeros_like(data), (means, covariances, weights))[0]


def completed_sums(
    means: Array, covariances: Array, data: Array, observed: Array, weighted: Array
) -> tuple[Array, Array]:
    """Return Σ_n w_n q_n(h) of ⟨y⟩ (H, D) and of ⟨y yᵀ⟩ (H, D, D), with missing values as latent variables."""

    def of_cluster(cluster: tuple[Array, Array, Array]) -> tuple[Array, Array]:
        mean, covariance, own = cluster
        whole, inverses = _completed(mean, covariance, data, observed)
        explained = jnp.tensordot(own, inverses, axes=1)  # Σ_n w_n q_n Σ_oo⁻¹, with zeros elsewhere
        doubt = jnp.sum(own) * covariance - matmul(matmul(covariance, explained), covariance)
        return matmul(own, whole), matmul((whole * own[:, None]).T, whole) + doubt

    return jax.lax.map(of_cluster, (means, covariances, weighted))


def _completed(mean: Array, covariance: Array, data: Array, observed: Array) -> tuple[Array, Array]:
    """Return rows with their conditional means under one cluster (n, D), and Σ_oo⁻¹ with zeros elsewhere (n, D, D)."""

    def one(mask: Array) -> Array:
        return inverse_and_log_det(_of_observed(covariance, mask))[0] * mask * mask[:, None]

    inverses = _over_rows(one, observed)
    coefficients = jnp.einsum("nij,nj->ni", inverses, (data - mean) * observed, precision=jax.lax.Precision.HIGHEST)
    expected = mean + matmul(coefficients, covariance)
    return jnp.where(observed > 0, data, expected), inverses


def _of_observed(covariance: Array, mask: Array) -> Array:
    """Return a covariance (D, D) with the identity for missing values (D,)."""
    return covariance * mask * mask[:, None] + jnp.diag(1 - mask)


def _over_rows(function: Callable[..., Array], *of_rows: Array) -> Array:
    n_rows, n_features = of_rows[0].shape
    at_once = min(n_rows, max(1, AT_ONCE // n_features**2))
    return jax.lax.map(lambda row: function(*row), of_rows, batch_size=at_once)
