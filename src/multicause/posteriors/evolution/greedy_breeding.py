"""A generation of binary states whose log joints follow from flips: all changes of one cause of two parents.

The parents of a row are its best state and a random one, in every second generation without one of its causes, so that
a cause can be exchanged for another. The causes are divided into groups, and the best change of each group is a child:
all changes are compared, and none is drawn at random. Children that the row has already are left out before the best
are chosen, by sets of causes whose change leads to a state that is kept.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from multicause.arrays import Array, stored
from multicause.posteriors.evolution.bit_sets import one_bit, single_changes, size_of, unpacked
from multicause.posteriors.evolution.flips import FlipSums, Reference, gains_of, slopes_of
from multicause.posteriors.evolution.row_draws import below, words_of
from multicause.posteriors.evolution.survival import survivors

N_PARENTS = 2
# The empty set of causes.
NOBODY = np.uint64(0)


class Generation(NamedTuple):
    """States of each row, of which the first is the best."""

    words: Array  # (words, S, n)
    scores: Array  # (S, n) log joints relative to the reference, −∞ for places without a state


def next_generation(
    sums: FlipSums, reference: Reference, words: Array, scores: Array, seeds: Array, number: Array, n_children: int
) -> Generation:
    """Return the best of the states (words, S, n) with these scores (S, n) and of their children.

    Places with a score of −∞ have no state; ``reference`` must be the first state of each row, ``seeds``
    and ``number`` (n,) are random numbers of the rows and the numbers of their generations.
    """
    n, H, per_parent = words.shape[-1], len(sums.components), max(1, n_children // N_PARENTS)
    draws = words_of(seeds, number, 0, (3,))
    chosen = _chosen((draws[0], draws[1]), scores)
    other, removed = _without_one(stored(_taken(words, chosen)), draws[2], H, number % 2 == 1)
    on = stored(unpacked(other[:, None], H))
    slopes = slopes_of(sums, reference, on)
    # A parent without one of its causes is not among the states, but one flip away from one of them.
    own = jnp.take_along_axis(scores, chosen[None], axis=0)[0]
    own -= jnp.where(removed < 0, 0, _gains(sums, on, slopes, jnp.maximum(removed, 0)[None, None])[0, 0])
    own = jnp.stack([jnp.zeros_like(own), own])
    parents = jnp.stack([reference.words, other], axis=1)
    on = jnp.concatenate([reference.on[:, None], on], axis=1)
    slopes = stored(jnp.concatenate([reference.slopes[:, None], slopes], axis=1))
    known = unpacked(_known(words, scores > -jnp.inf, parents), H)
    children, gains = _children(sums, parents, on, slopes, known, per_parent)
    everything = jnp.concatenate([words, children.reshape(len(words), -1, n)], axis=1)
    scores, places = survivors(scores, (own + gains).reshape(-1, n))
    words = jnp.stack([each.at[places, jnp.arange(n)].get(mode="promise_in_bounds") for each in everything])
    return Generation(words, scores)


def _chosen(draws: tuple[Array, Array], scores: Array) -> Array:
    """Return the place of a parent in the list of states, the better one of two that are drawn: (n,)."""
    places = [below(each, len(scores)) for each in draws]
    compared = [jnp.take_along_axis(scores, place[None], axis=0)[0] for place in places]
    place = jnp.where(compared[0] >= compared[1], places[0], places[1])
    # The first place always has a state.
    return jnp.where(jnp.maximum(compared[0], compared[1]) > -jnp.inf, place, 0)


def _taken(words: Array, place: Array) -> Array:
    return jnp.stack([jnp.take_along_axis(each, place[None], axis=0)[0] for each in words])


def _without_one(words: Array, draws: Array, n_components: int, which: Array) -> tuple[Array, Array]:
    """Return states (words, n), in some rows without one of their causes, a random one.

    Also return the number of that cause (n,), −1 where none was removed.
    """
    on = unpacked(words, n_components) & which
    factors = jnp.arange(n_components, dtype=jnp.uint32)[:, None] * 2 + 1
    keys = jnp.where(on, ((draws * factors) >> 8).astype(jnp.int32), -1)
    largest, numbers = jnp.max(keys, axis=0), jnp.arange(n_components, dtype=jnp.int32)[:, None]
    cause = jnp.max(jnp.where(on & (keys == largest), numbers, -1), axis=0)
    return jnp.where(cause < 0, words, words ^ one_bit(jnp.maximum(cause, 0), len(words))), cause


def _known(words: Array, valid: Array, parents: Array) -> Array:
    """Return which changes of parents (words, 2, n) lead to known states: (words, 2, n).

    These are states that are kept and, for the second parent, those that may be children of the first.
    """
    known = jnp.stack([single_changes(words, valid, parents[:, place]) for place in range(N_PARENTS)], axis=1)
    between = parents[:, 0] ^ parents[:, 1]
    distance = size_of(between)
    # States at a distance of two have two children in common; equal parents have all.
    shared = jnp.where(distance == 2, between, jnp.where(distance == 0, ~NOBODY, NOBODY))
    return known | jnp.stack([jnp.zeros_like(shared), shared], axis=1)


def _children(
    sums: FlipSums, parents: Array, on: Array, slopes: Array, known: Array, number: int
) -> tuple[Array, Array]:
    """Return the best child of each group of causes: words (words, C, P, n), and gains (C, P, n).

    Gains are in double precision, and −∞ where all children of a group are known.
    """
    H, P, n = slopes.shape
    n_groups = min(number, H)
    length = -(-H // n_groups)
    gains = jnp.where(known, -jnp.inf, gains_of(sums, on, slopes))
    gains = jnp.pad(gains, ((0, length * n_groups - H), (0, 0), (0, 0)), constant_values=-jnp.inf)
    by_group = stored(gains.reshape(length, n_groups, P, n))
    best = stored(jnp.max(by_group, axis=0))
    turns = jnp.arange(length, dtype=jnp.int32)[:, None, None, None]
    turn = jnp.min(jnp.where(by_group == best, turns, length), axis=0)
    cause = jnp.minimum(turn * n_groups + jnp.arange(n_groups, dtype=jnp.int32)[:, None, None], H - 1)
    words = parents[:, None] ^ one_bit(cause, len(parents))
    return words, jnp.where(best > -jnp.inf, _gains(sums, on, slopes, cause), -jnp.inf)


def _gains(sums: FlipSums, on: Array, slopes: Array, cause: Array) -> Array:
    """Return the gains of flipping some causes (C, P, n) of states (H, P, n), in double precision: (C, P, n)."""
    places = (cause, jnp.arange(cause.shape[1])[:, None], jnp.arange(cause.shape[2]))
    slope = slopes.at[places].get(mode="promise_in_bounds").astype(jnp.float64)
    slope = jnp.where(on.at[places].get(mode="promise_in_bounds"), -slope, slope)
    return slope - 0.5 * jnp.diagonal(sums.gram).at[cause].get(mode="promise_in_bounds")
