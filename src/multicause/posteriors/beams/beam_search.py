"""Beam search for the states of a row: states grow by one cause at a time, and the best of each size are kept.

Causes have a strength z_h ~ N(μ_h, ψ_h); binary causes are those with μ = 1 and ψ = 0. With components W in units of
the noise, and the strengths of active causes integrated out, adding cause h to a state changes log p(s, y) by::

    log π_h/(1 − π_h) + ½ (ψ_h e_h² + 2 μ_h e_h − μ_h² g_h) / (1 + ψ_h g_h) − ½ log(1 + ψ_h g_h)

where e_h = W_h·(y − ⟨w̄⟩) is the scalar product with the residual of the state, and g_h the Schur complement of ‖W_h‖²
with respect to the precision of the active strengths. Both are known for all causes of a state, and are computed for
the larger state by a rank-one update with v = W·p, where p = W_j − Σ_i a_i W_i is the part of the added component j
that active causes i do not explain. Products of p with all components are one matrix product for all states of all
rows. This takes as long as reading the rows of the Gram matrix that belong to active causes, and it also works for rows
with missing values, each of which has its own Gram matrix. Where causes are few and states many, the Gram matrices of
such rows are computed once, and products are read from them.

The shares a_i are products of the posterior covariance of strengths, which is large for nearly dependent components,
with scalar products that almost cancel. They are computed in double precision; in single precision their errors would
become strengths of any size. The arrays involved are small.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import comb
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from multicause.arrays import Array, matmul

# Rounding errors of a Schur complement, in units of the last digit of ‖W_h‖². That of a component which active causes
# explain up to such errors is not known; zero in its place would turn rounding errors of the product with the residual
# into strengths beyond all bounds.
ROUNDINGS = 16


class Strengths(NamedTuple):
    """Prior of the causes: log odds of being active, and mean and variance of the strength, (H,) each."""

    log_odds: Array
    mean: Array
    variance: Array


class States(NamedTuple):
    """B states of equal size k for each of m rows, and the posterior of the strengths of their active causes."""

    score: Array  # (m, B) log p(s, y) − log p(0, y); −∞ if a row has fewer states
    active: Array  # (m, B, k) indices of the active causes
    mean: Array  # (m, B, k) posterior mean of their strengths
    covariance: Array  # (m, B, k, k)


def numbers_of_states(n_components: int, max_active: int, width: int) -> list[int]:
    """Return the number of states that are kept for a row, for each number of active causes from one on."""
    return [min(width, comb(n_components, size)) for size in range(1, min(max_active, n_components) + 1)]


def search_states(
    components: Array, data: Array, strengths: Strengths, kept: Sequence[int], observed: Array | None = None
) -> list[States]:
    """Return the states of rows (m, D) for each size; ``kept`` has the number of states of each size.

    Components (H, D) and data are in units of the noise. ``observed`` (m, D) is one for observed values and zero for
    missing ones, or a weight in between, and ``data`` must be multiplied by it. None means that all were observed.
    """
    m, H = len(data), len(components)
    gram = matmul(components, components.T)  # Gram matrix of complete rows
    exact = components.astype(jnp.float64)
    exact_gram = matmul(exact, exact.T)
    row_grams = None if observed is None or not _reads_grams(kept, H) else _grams_of_rows(exact, observed)
    row_numbers = jnp.arange(m)[:, None]
    # e and g of all causes, for each state: (m, states, H).
    products = matmul(data, components.T)[:, None]
    if observed is not None:
        lengths = matmul(observed, components.T**2)[:, None]
    else:
        lengths = jnp.broadcast_to(jnp.sum(components**2, axis=1), products.shape)
    states = States(
        jnp.zeros((m, 1), data.dtype),
        jnp.zeros((m, 1, 0), jnp.int32),
        jnp.zeros((m, 1, 0), jnp.float64),
        jnp.zeros((m, 1, 0, 0), jnp.float64),
    )
    least = ROUNDINGS * jnp.finfo(data.dtype).eps * lengths
    levels, complete = [], True
    for size, n_states in enumerate(kept, 1):
        scores = states.score[..., None] + gains(strengths, products, lengths)
        if complete := complete and n_states == comb(H, size):
            score, parent, added = all_children(scores, size)
        else:
            score, parent, added = best_children(without_repetitions(scores, states.active), n_states)
        states = States(*(_of_parent(values, parent) for values in states))
        mean, variance = _strength_of_added(strengths, products, lengths, parent, added)
        if size == 1:
            between = states.mean  # empty: no cause was active before
        elif observed is None:
            between = exact_gram[states.active, added[..., None]]
        elif row_grams is not None:
            between = row_grams[row_numbers[..., None], states.active, added[..., None]]
        else:
            own = exact[added] * observed[:, None]
            between = jnp.stack([_dot(exact[states.active[..., i]], own) for i in range(size - 1)], axis=-1)
        shares = jnp.sum(states.covariance * between[..., None, :], axis=-1)
        before, states = states, _grown(states, score, added, mean, variance, shares)
        mean_and_covariance = (each.astype(data.dtype) for each in (states.mean, states.covariance))
        levels.append(States(states.score, states.active, *mean_and_covariance))
        if size == len(kept):
            break
        if observed is None and size == 1:
            shared = gram[added]
        elif row_grams is not None:
            shared = row_grams[row_numbers, added]
            for i in range(size - 1):
                shared = shared - shares[..., i, None] * row_grams[row_numbers, before.active[..., i]]
            shared = shared.astype(data.dtype)
        else:
            left, factors = components[added], shares.astype(data.dtype)
            for i in range(size - 1):
                left = left - factors[..., i, None] * components[before.active[..., i]]
            left = left if observed is None else left * observed[:, None]
            shared = matmul(left.reshape(m * n_states, -1), components.T).reshape(m, n_states, H)
        products = _of_parent(products, parent) - mean[..., None] * shared
        lengths = jnp.maximum(_of_parent(lengths, parent) - variance[..., None] * shared**2, least)
    return levels


def _reads_grams(kept: Sequence[int], n_components: int) -> bool:
    """Return whether Gram matrices of rows need fewer products over dimensions than all pairs of causes in states."""
    return n_components**2 <= sum(size * n_states for size, n_states in enumerate(kept))


def _grams_of_rows(components: Array, observed: Array) -> Array:
    """Return the products of all pairs of components (H, D) over the observed values of each row: (m, H, H)."""
    H, D = components.shape
    pairs = (components[:, None] * components).reshape(H * H, D)
    return matmul(observed.astype(pairs.dtype), pairs.T).reshape(-1, H, H)


def gains(strengths: Strengths, products: Array, lengths: Array) -> Array:
    """Return the change of log p(s, y) when a cause is added: (m, states, H)."""
    log_odds, mean, variance = strengths
    ratio = 1 + variance * lengths
    explained = (variance * products + 2 * mean) * products - mean**2 * lengths
    return log_odds + 0.5 * explained / ratio - 0.5 * jnp.log(ratio)


def without_repetitions(scores: Array, active: Array) -> Array:
    """Return scores of children (m, B, H) with −∞ for causes that are active and for states of an earlier parent.

    A state that two parents can reach, which then differ by one cause each, is kept for the first parent only.
    """
    m, n_parents, size = active.shape
    if size == 0:
        return scores
    common = jnp.any(active[:, :, None, :, None] == active[:, None, :, None, :], axis=-2)  # (m, B, B′, k) of B′
    number = jnp.sum(~common, axis=-1)
    other = jnp.sum(jnp.where(common, 0, active[:, None]), axis=-1)
    earlier = np.tri(n_parents, k=-1, dtype=bool)
    nowhere = scores.shape[-1]
    repeated = jnp.where((number == 1) & earlier, other, nowhere)
    causes = jnp.concatenate([active, repeated], axis=-1)
    rows, parents = jnp.arange(m)[:, None, None], jnp.arange(n_parents)[:, None]
    return scores.at[rows, parents, causes].set(-jnp.inf, mode="drop")


def all_children(scores: Array, size: int) -> tuple[Array, Array, Array]:
    """Return scores of all states of one size, their parents and added causes, given (m, B, H) of all parents."""
    m, _, n_components = scores.shape
    parents = {active: number for number, active in enumerate(combinations(range(n_components), size - 1))}
    pairs = [(parents[active[:-1]], active[-1]) for active in combinations(range(n_components), size)]
    parent, added = np.array(pairs).T
    return scores[:, parent, added], *(jnp.broadcast_to(each, (m, len(pairs))) for each in (parent, added))  # type: ignore[return-value]


def best_children(scores: Array, n_best: int) -> tuple[Array, Array, Array]:
    """Return the largest of all scores (m, B, H) of each row, best first, with their parents and causes: (m, n_best).

    They are in the columns with the largest maxima over parents, so that only these have to be compared.
    """
    m, n_parents, n_components = scores.shape
    if n_parents == 1:
        _, added = jax.lax.top_k(ranked(scores[:, 0]), n_best)
        parent = jnp.zeros_like(added)
    else:
        _, columns = jax.lax.top_k(ranked(jnp.max(scores, axis=1)), min(n_best, n_components))
        few = jnp.take_along_axis(scores, columns[:, None, :], axis=2).reshape(m, -1)
        _, places = jax.lax.top_k(ranked(few), n_best)
        parent, place = jnp.divmod(places, columns.shape[1])
        added = jnp.take_along_axis(columns, place, axis=1)
    return scores[jnp.arange(m)[:, None], parent, added], parent, added


def ranked(scores: Array) -> Array:
    """Return scores (m, K) in single precision, relative to the largest of each row: ``top_k`` is slow in double."""
    if scores.dtype == jnp.float32:
        return scores
    largest = jnp.max(scores, axis=1, keepdims=True)
    return (scores - jnp.where(jnp.isfinite(largest), largest, 0)).astype(jnp.float32)


def _of_parent(values: Array, parent: Array) -> Array:
    """Return values (m, B, ...) of the parents (m, B′) of new states: (m, B′, ...)."""
    return values[jnp.arange(len(values))[:, None], parent]


def _strength_of_added(
    strengths: Strengths, products: Array, lengths: Array, parent: Array, added: Array
) -> tuple[Array, Array]:
    """Return posterior mean and variance of the strengths of the added causes: (m, B) each."""
    place = (jnp.arange(len(products))[:, None], parent, added)
    product, length = products[place], lengths[place]
    mean, variance = strengths.mean[added], strengths.variance[added]
    ratio = 1 + variance * length
    return (mean + variance * product) / ratio, variance / ratio


def _grown(before: States, score: Array, added: Array, mean: Array, variance: Array, shares: Array) -> States:
    """Return states with one more cause, whose strength changes those of the others by their ``shares`` (m, B, k)."""
    cross = -variance[..., None] * shares
    corner = before.covariance - cross[..., None] * shares[..., None, :]
    upper = jnp.concatenate([corner, cross[..., None]], axis=-1)
    lower = jnp.concatenate([cross, variance[..., None]], axis=-1)
    return States(
        score,
        jnp.concatenate([before.active, added[..., None].astype(jnp.int32)], axis=-1),
        jnp.concatenate([before.mean - shares * mean[..., None], mean[..., None]], axis=-1),
        jnp.concatenate([upper, lower[..., None, :]], axis=-2),
    )


def _dot(a: Array, b: Array) -> Array:
    return jnp.sum(a * b, axis=-1)
