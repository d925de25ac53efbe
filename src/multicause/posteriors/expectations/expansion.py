"""Squares ‖y − w̄‖² expanded into products, without loss of precision if the data are far from zero.

Data and means are taken relative to the origin of the noise, a point near the data: y′ = y − o and w̄′ = w̄ − o. All
terms of ‖y′‖² − 2 y′·w̄′ + ‖w̄′‖² then have the order of the data's variance. If causes add up, w̄′ = Σ_h s_h W_h − o
is a small difference of large vectors. There are two ways to compute it without cancellation:

* for states that all rows share, in coordinates of the space that components and origin span (:func:`coordinates`);
* for states of a row's own candidates, from scalar products of components in two parts, of which the sums over large
  ones are exact (:func:`split_products`).
"""

from __future__ import annotations

from math import ceil, log2
from typing import NamedTuple

import jax.numpy as jnp

from multicause.arrays import Array, matmul
from multicause.generative import GenerativeModel
from multicause.records import Parameters

# Integers up to two to this power, and their halves, are exact in double precision.
EXACT_BITS = 52
# Accepted rounding error of ‖w̄‖² in the log-likelihood of states; if it would be larger, products are split.
ROUNDING = 1e-3


def absolute(products: Array, weights: Array, origin: Array | None) -> Array:
    """Return Σ_n w_n y_n (k, D), given Σ_n w_n (y_n − o) and Σ_n w_n (k,), in double precision."""
    products = products.astype(jnp.float64)
    return products if origin is None else products + weights[:, None] * origin


class SpanCoordinates(NamedTuple):
    """Standardized components and origin in an orthonormal basis of the r = min(D, H) dimensions that states span.

    Orthogonal to them, all states have the same distance from a row: ``misfit`` times a further vector ``beyond`` is
    the part of the origin that no sum of components reaches.
    """

    basis: Array  # (D, r)
    components: Array  # (H, r), in double precision
    origin: Array  # (r,), in double precision
    beyond: Array  # (D,)
    misfit: Array  # ()

    def means(self, states: Array) -> Array:
        """Return Σ_h s_h W_h − o of states or expected states (S, H), in double precision: (S, r)."""
        return matmul(states.astype(jnp.float64), self.components) - self.origin


def coordinates(model: GenerativeModel, parameters: Parameters) -> SpanCoordinates:
    """Return coordinates for causes that add up under noise that does not depend on the mean."""
    components, origin = standardized(model, parameters)
    H, dtype = len(components), parameters.components.dtype
    basis, coefficients = jnp.linalg.qr(jnp.concatenate([components, origin[None]]).T)
    if len(coefficients) > H:
        beyond, misfit = basis[:, H], coefficients[H, H]
    else:
        beyond, misfit = jnp.zeros_like(origin), jnp.zeros((), origin.dtype)
    return SpanCoordinates(
        basis[:, :H].astype(dtype),
        coefficients[:H, :H].T,
        coefficients[:H, H],
        beyond.astype(dtype),
        misfit.astype(dtype),
    )


def standardized(model: GenerativeModel, parameters: Parameters) -> tuple[Array, Array]:
    """Return components (H, D) and origin (D,), divided by the noise's standard deviation, in double precision."""
    components = parameters.components.astype(jnp.float64)
    origin = model.noise.origin(parameters.noise)
    origin = jnp.zeros_like(components[0]) if origin is None else origin.astype(jnp.float64)
    return model.noise.standardize(components, parameters.noise), model.noise.standardize(origin, parameters.noise)


def split_products(vectors: Array, n_summands: int) -> Array:
    """Return scalar products of all pairs of vectors (k, D) as the sum of two matrices: (2, k, k).

    Products in the first matrix are integer multiples of one power of two, small enough that sums of ``n_summands`` of
    them, or of their halves, are exact in double precision. The second matrix has the remainders.
    """
    bits = (EXACT_BITS - ceil(log2(vectors.shape[1] * n_summands))) // 2
    _, exponent = jnp.frexp(jnp.max(jnp.abs(vectors)))
    unit = jnp.ldexp(jnp.ones((), vectors.dtype), exponent - bits)
    whole = jnp.round(vectors / unit)
    rest = vectors - whole * unit
    mixed = matmul(whole, rest.T) * unit
    return jnp.stack([matmul(whole, whole.T) * unit**2, mixed + mixed.T + matmul(rest, rest.T)])
