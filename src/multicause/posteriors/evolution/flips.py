"""Log joints of binary states that differ in a few causes, if causes add up under noise that ignores the mean.

With standardized data y and components W, log p(s, y) = −½ ‖y − Σ_h s_h W_h‖² + s·logit(π) up to a constant. If the
causes in a set F flip, with signs σ = 1 − 2s, it changes by Σ_F (σ_i g_i − ½ W_i·W_i) − Σ_{i<j∈F} σ_i σ_j W_i·W_j with
the slopes g = W (y − Σ_h s_h W_h) + logit(π). States of a row are compared with one of them, its *reference*, from
which most differ in one or two causes: no sum over features is needed for each state.

Arrays have rows along the last axis; states are bits of words (:mod:`multicause.posteriors.evolution.bit_sets`).
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from multicause.arrays import Array, matmul, stored
from multicause.model import Block, Model, Parameters
from multicause.posteriors.evolution.bit_sets import lowest, unpacked
from multicause.posteriors.evolution.few_flips import FEW, all_moments, all_scores
from multicause.posteriors.expectations.expansion import relative, standardized
from multicause.posteriors.expectations.masked_sums import is_far


class FlipSums(NamedTuple):
    """Quantities from which the log joints of all rows of a block are computed."""

    data: Array  # (D, n) standardized, relative to the origin
    components: Array  # (H, D) standardized
    origin: Array  # (D,) standardized
    gram: Array  # (H, H) W_i·W_j, in double precision
    log_odds: Array  # (H,) logit(π)
    far: Array  # () whether products of components are so large that their differences lose precision


class Reference(NamedTuple):
    """A state of each row with which others are compared."""

    words: Array  # (words, n)
    on: Array  # (H, n) of bool
    slopes: Array  # (H, n)
    log_joint: Array  # (n,) −½ ‖y − Σ_h s_h W_h‖² + s·logit(π)


def sums_of(model: Model, parameters: Parameters, block: Block) -> FlipSums:
    """Return the sums of a block."""
    dtype = block.rows.dtype
    components, origin = standardized(model, parameters)
    singles = model.prior.log_probability_of_singles(parameters.prior)
    rows = relative(block.rows, model.noise.origin(parameters.noise))
    return FlipSums(
        model.noise.standardize(rows, parameters.noise).astype(dtype).T,
        components.astype(dtype),
        origin.astype(dtype),
        matmul(components, components.T),
        (singles[1:] - singles[0]).astype(dtype),
        is_far(model, parameters),
    )


def reference_of(sums: FlipSums, words: Array) -> Reference:
    """Return the reference with the given words (words, n)."""
    on = unpacked(words, len(sums.components))
    state = stored(on.astype(sums.data.dtype))
    residuals = _residuals(sums, state)
    log_joint = -0.5 * jnp.sum(residuals**2, axis=0) + matmul(sums.log_odds, state)
    return Reference(words, on, _slopes(sums, residuals), log_joint)


def _residuals(sums: FlipSums, states: Array) -> Array:
    """Return y − Σ_h s_h W_h of states (H, n): (D, n)."""
    return sums.data + sums.origin[:, None] - matmul(sums.components.T, states)


def _slopes(sums: FlipSums, residuals: Array) -> Array:
    return matmul(sums.components, residuals) + sums.log_odds[:, None]


def slopes_of(sums: FlipSums, reference: Reference, on: Array) -> Array:
    """Return the slopes of other states (H, P, n) of the same rows: (H, P, n)."""
    dtype, shape = sums.data.dtype, on.shape

    def by_products() -> Array:
        changes = on.astype(dtype) - reference.on.astype(dtype)[:, None]
        products = matmul(sums.gram.astype(dtype), changes.reshape(shape[0], -1))
        return reference.slopes[:, None] - products.reshape(shape)

    def by_residuals() -> Array:
        of_parents = [_slopes(sums, _residuals(sums, on[:, place].astype(dtype))) for place in range(shape[1])]
        return jnp.stack(of_parents, axis=1)

    return jax.lax.cond(sums.far, by_residuals, by_products)


def gains_of(sums: FlipSums, on: Array, slopes: Array) -> Array:
    """Return the change of the log joint if one cause of states (H, P, n) flips: (H, P, n)."""
    return jnp.where(on, -slopes, slopes) - 0.5 * jnp.diagonal(sums.gram).astype(slopes.dtype)[:, None, None]


def relative_scores(sums: FlipSums, reference: Reference, words: Array) -> Array:
    """Return log joints of states (words, S, n) relative to that of the reference, in double precision: (S, n)."""
    H, shape = len(sums.components), words.shape[1:]
    if H <= FEW:
        return all_scores(words, reference.words, reference.slopes, sums.gram)
    gram, lengths = sums.gram.reshape(-1), 0.5 * jnp.diagonal(sums.gram)
    columns = jnp.arange(shape[-1])

    def any_left(carry: tuple[Array, Array]) -> Array:
        return jnp.any(carry[0] != 0)

    def flip(carry: tuple[Array, Array]) -> tuple[Array, Array]:
        left, total = carry
        one = lowest(left, reference.words)
        slope = _at(reference.slopes, (one.cause, columns))
        total += jnp.where(one.exists, one.sign * slope.astype(jnp.float64) - _at(lengths, one.cause), 0)
        row = one.cause * H

        def pair(carry: tuple[Array, Array]) -> tuple[Array, Array]:
            left, total = carry
            other = lowest(left, reference.words)
            return stored((other.rest, total - one.sign * other.sign * _at(gram, row + other.cause)))

        # Sets that have no further cause are empty, and change nothing.
        total = jax.lax.while_loop(any_left, pair, (one.rest, total))[1]
        return stored((one.rest, total))

    apart = words ^ reference.words[:, None]
    return jax.lax.while_loop(any_left, flip, (apart, jnp.zeros(shape, jnp.float64)))[1]


class FlipMoments(NamedTuple):
    """Moments of the changes δ = s − s_r of states from the reference of each row."""

    mean: Array  # (H, n) ⟨δ⟩
    pairs: Array  # (H, H) Σ_n w_n ⟨δ δᵀ⟩, in double precision


def moments_of(reference: Array, words: Array, probabilities: Array, weights: Array, n_components: int) -> FlipMoments:
    """Return moments of states (words, S, n) with probabilities (S, n) in rows of some weights (n,)."""
    H, n = n_components, words.shape[-1]
    if H <= FEW:
        return FlipMoments(*all_moments(words, reference, probabilities, weights, H))
    columns, dtype = jnp.arange(n), probabilities.dtype

    def any_left(carry: tuple[Array, ...]) -> Array:
        return jnp.any(carry[0] != 0)

    def flip(carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        left, mean, pairs = carry
        one = lowest(left, reference)
        value = one.sign * probabilities
        mean = mean.at[one.cause, columns].add(value.astype(dtype), mode="promise_in_bounds")
        row, weighted = one.cause * H, (value * weights).astype(dtype)
        # Half of the diagonal, because the sum of the matrix and its transpose is returned.
        own = (0.5 * one.sign * weighted).astype(dtype)
        pairs = pairs.at[row + one.cause].add(own, mode="promise_in_bounds")

        def pair(carry: tuple[Array, Array]) -> tuple[Array, Array]:
            left, pairs = carry
            other = lowest(left, reference)
            value = (other.sign * weighted).astype(dtype)
            return stored((other.rest, pairs.at[row + other.cause].add(value, mode="promise_in_bounds")))

        pairs = jax.lax.while_loop(any_left, pair, (one.rest, pairs))[1]
        return stored((one.rest, mean, pairs))

    # States of probability zero are skipped.
    apart = jnp.where(probabilities > 0, words ^ reference[:, None], jnp.uint64(0))
    nothing = (jnp.zeros((H, n), dtype), jnp.zeros(H * H, dtype))
    _, mean, pairs = jax.lax.while_loop(any_left, flip, (apart, *nothing))
    pairs = pairs.astype(jnp.float64).reshape(H, H)
    return FlipMoments(mean, pairs + pairs.T)


def _at(values: Array, indices: Array | tuple[Array, Array]) -> Array:
    return values.at[indices].get(mode="promise_in_bounds")
