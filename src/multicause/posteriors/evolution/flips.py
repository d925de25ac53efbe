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

from multicause.arrays import Array, matmul, relative, stored
from multicause.generative import GenerativeModel
from multicause.posteriors.evolution.bit_sets import Lowest, is_single, lowest, unpacked
from multicause.posteriors.evolution.few_flips import FEW, all_moments, all_scores
from multicause.posteriors.expectations.expansion import standardized
from multicause.posteriors.expectations.masked_sums import is_far
from multicause.records import Block, Parameters


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
    gains: Array  # (H, n) change of the log joint if one cause flips, in double precision
    log_joint: Array  # (n,) −½ ‖y − Σ_h s_h W_h‖² + s·logit(π)


def sums_of(model: GenerativeModel, parameters: Parameters, block: Block) -> FlipSums:
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
    slopes = _slopes(sums, residuals)
    gains = gains_of(sums, on[:, None], slopes[:, None].astype(jnp.float64))[:, 0]
    return Reference(words, on, slopes, stored(gains), log_joint)


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
    gram, columns = sums.gram.reshape(-1), jnp.arange(shape[-1])

    def flip_two(left: Array, total: Array) -> tuple[Lowest, Lowest, Array]:
        one = lowest(left, reference.words)
        two = lowest(one.rest, reference.words)
        for each in (one, two):
            total += jnp.where(each.exists, _at(reference.gains, (each.cause, columns)), 0)
        return one, two, total - one.sign * two.sign * _at(gram, one.cause * H + two.cause)

    def pair_with_others(one: Lowest, two: Lowest, total: Array) -> tuple[Array, Array]:
        def pair(carry: tuple[Array, Array]) -> tuple[Array, Array]:
            left, total = carry
            other = lowest(left, reference.words)
            products = (each.sign * _at(gram, each.cause * H + other.cause) for each in (one, two))
            return stored((other.rest, total - other.sign * sum(products)))

        # Sets that have no further cause are empty, and change nothing.
        return stored((two.rest, jax.lax.while_loop(_any_left, pair, (two.rest, total))[1]))

    def flip_others() -> Array:
        carry = pair_with_others(*first)
        return jax.lax.while_loop(_any_left, lambda carry: pair_with_others(*flip_two(*carry)), carry)[1]

    # Few states differ from the reference in more than two causes. Loops copy all words, even if they take no step.
    first = flip_two(words ^ reference.words[:, None], jnp.zeros(shape, jnp.float64))
    return jax.lax.cond(jnp.any(first[1].rest != 0), flip_others, lambda: first[2])


class FlipMoments(NamedTuple):
    """Moments of the changes δ = s − s_r of states from the reference of each row."""

    mean: Array  # (H, n) ⟨δ⟩
    pairs: Array  # (H, H) Σ_n w_n ⟨δ δᵀ⟩, in double precision


def moments_of(reference: Reference, words: Array, probabilities: Array, singles: Array, weights: Array) -> FlipMoments:
    """Return moments of states (words, S, n) with probabilities (S, n) in rows of some weights (n,).

    ``singles`` (H, n) are the probabilities of the states that differ from the reference in one cause.
    """
    (S, n), H = words.shape[1:], len(singles)
    if H <= FEW:
        return FlipMoments(*all_moments(words, reference.words, probabilities, weights, H))
    columns, dtype = jnp.arange(n), probabilities.dtype
    apart = words ^ reference.words[:, None]
    # Few states have other causes and a probability above zero. They are added one for each row at a time.
    others = ~is_single(apart) & jnp.any(apart != 0, axis=0) & (probabilities > 0)
    slots = jnp.arange(S, dtype=jnp.int32)[:, None]

    def next_slot(last: Array) -> Array:
        return jnp.min(jnp.where(others & (slots > last), slots, S), axis=0)

    def add_state(carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        slot, mean, pairs = carry
        exists, place = slot < S, (jnp.minimum(slot, S - 1), columns)
        left = jnp.where(exists, jnp.stack([_at(each, place) for each in apart]), jnp.uint64(0))
        probability = _at(probabilities, place).astype(jnp.float64)

        def flip(carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
            left, mean, pairs = carry
            one = lowest(left, reference.words)
            mean = mean.at[one.cause, columns].add(one.sign * probability, mode="promise_in_bounds")
            weighted = one.sign * probability * weights

            def pair(carry: tuple[Array, Array]) -> tuple[Array, Array]:
                left, pairs = carry
                other = lowest(left, reference.words)
                places = one.cause * H + other.cause
                return other.rest, pairs.at[places].add(other.sign * weighted, mode="promise_in_bounds")

            return one.rest, mean, jax.lax.while_loop(_any_left, pair, (one.rest, pairs))[1]

        return next_slot(slot), *jax.lax.while_loop(_any_left, flip, (left, mean, pairs))[1:]

    # Where components have a large part in common, moments cancel, so that they are added in double precision.
    mean = jnp.where(reference.on, -singles, singles).astype(jnp.float64)
    begin = (next_slot(jnp.full(n, -1)), mean, jnp.zeros(H * H, jnp.float64))
    _, mean, pairs = jax.lax.while_loop(lambda carry: jnp.any(carry[0] < S), add_state, begin)
    pairs = pairs.reshape(H, H)
    # All flips of a cause in a row have the same sign, so that their squares add up like their absolute values.
    squares = jnp.sum(jnp.abs(mean) * weights, axis=1)
    return FlipMoments(mean.astype(dtype), pairs + pairs.T + jnp.diag(squares))


def _any_left(carry: tuple[Array, ...]) -> Array:
    return jnp.any(carry[0] != 0)


def _at(values: Array, indices: Array | tuple[Array, Array]) -> Array:
    return values.at[indices].get(mode="promise_in_bounds")
