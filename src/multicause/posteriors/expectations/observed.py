"""Likelihoods of rows with missing values, which are marked by NaN.

With a mask m of ones and zeros, log p of the observed values is Σ_d m_d (η(w̄_d)·y_d − A(w̄_d) + b(y_d)). Inference
replaces missing values by zeros, so that they do not contribute to products with η(w̄), and multiplies A(w̄) by the
mask. Models without missing values (``missing`` is False) have no mask in their compiled programs.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from multicause.arrays import Array, matmul
from multicause.generative import GenerativeModel
from multicause.noises.base import Noise


def mask_of(model: GenerativeModel, rows: Array) -> Array | None:
    """Return one for observed values of the rows (n, D) and zero for missing ones; None if all are observed."""
    return (~jnp.isnan(rows)).astype(rows.dtype) if model.missing else None


def log_base(
    noise: Noise, data: Array, summary: Array, parameters: dict[str, Array], observed: Array | None = None
) -> Array:
    """Return Σ_d b(y_d) over the observed values of rows (n, D), in which missing values are zero: (n,)."""
    of_all = noise.log_base(data, summary, parameters)
    if observed is None:
        return of_all
    return of_all - matmul(1 - observed, _base_of_zero(noise, parameters, data)).astype(of_all.dtype)


def _base_of_zero(noise: Noise, parameters: dict[str, Array], data: Array) -> Array:
    """Return b(0) of each dimension, the contribution of a zero in place of a missing value: (D,)."""
    of_features, shared = noise.split_parameters(parameters)
    zero = jnp.zeros((1, 1), data.dtype)

    def one(_: Array, own: dict[str, Array]) -> Array:
        own = {name: value[None] for name, value in own.items()}
        return noise.log_base(zero, noise.summarize(zero), shared | own)[0]

    return jax.vmap(one)(jnp.arange(data.shape[1]), of_features)


def one(mean: Array, overlap: Array, noise: dict[str, Array]) -> Array:
    """Return one everywhere, as a function for :attr:`multicause.expectations.Inference.pull`."""
    return jnp.ones_like(mean)


def minus_mean(mean: Array, overlap: Array, noise: dict[str, Array]) -> Array:
    """Return −w̄, as a function for :attr:`multicause.expectations.Inference.pull`."""
    return -mean


def cause_data_of(pairs: Array, components: Array, slope: Array) -> Array:
    """Return Σ_n w_n ⟨s y_nᵀ⟩, where missing values are latent, with their means under the old components: (H, D).

    ``slope`` is Σ_n w_n ⟨s (y_n − w̄)ᵀ⟩ over observed values. Means in place of missing values do not change it, so
    that sums over complete rows are Σ⟨ssᵀ⟩ W plus the slope. An M-step with them never lowers the likelihood of the
    observed values, and their shapes do not depend on which values are missing.
    """
    return matmul(pairs.astype(jnp.float64), components.astype(jnp.float64)) + slope.astype(jnp.float64)
