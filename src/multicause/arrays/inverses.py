"""Inverses of many small matrices, one for each row of the data."""

import jax
import jax.numpy as jnp

from multicause.arrays.precision import Array


def inverse_and_log_det(matrices: Array) -> tuple[Array, Array]:
    """Return the inverses (..., H, H) and log determinants (...) of symmetric positive definite matrices.

    Each step sweeps one row and column of all matrices at once (Beaton's sweep operator). LAPACK would factorize them
    one by one in threads of XLA's pool, and programs that wait for these threads while they occupy them never end.
    """
    H = matrices.shape[-1]
    places = jnp.arange(H)

    def sweep(k: Array, state: tuple[Array, Array]) -> tuple[Array, Array]:
        swept, log_det = state
        row = jax.lax.dynamic_index_in_dim(swept, k, axis=-2, keepdims=False)
        pivot = jax.lax.dynamic_index_in_dim(row, k, axis=-1, keepdims=True)
        scaled = row / pivot
        is_row, is_column = (places == k)[:, None], (places == k)[None, :]
        others = swept - row[..., :, None] * scaled[..., None, :]
        others = jnp.where(is_row, scaled[..., None, :], jnp.where(is_column, scaled[..., :, None], others))
        corner = -1 / pivot[..., None]
        return jnp.where(is_row & is_column, corner, others), log_det + jnp.log(pivot[..., 0])

    log_det = jnp.zeros(matrices.shape[:-2], matrices.dtype)
    swept, log_det = jax.lax.fori_loop(0, H, sweep, (matrices, log_det))
    return -swept, log_det
