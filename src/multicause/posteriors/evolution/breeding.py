"""Children of states by mutation and crossover, and the test which states of a row are equal."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from multicause.arrays import Array
from multicause.posteriors.evolution.row_draws import below, uniform, words_of

# Of eight children, so many exchange an active cause for another one, and so many are crossed; the others differ from
# their parent in one cause.
EXCHANGED, CROSSED, ALL = 2, 2, 8
# Preference for good parents: of S states, best first, the parent is state S·u^PREFERENCE with u uniform in [0, 1).
PREFERENCE = 2.0


def children_of(key: Array, states: Array, n_children: int, n_levels: int) -> Array:
    """Return children of states (n, S, H), best first, with level numbers below ``n_levels``: (n, n_children, H)."""
    seeds = jax.random.bits(key, (len(states),), jnp.uint32)
    return children_of_rows(seeds, jnp.zeros_like(seeds), states, n_children, n_levels)


def children_of_rows(seeds: Array, generation: Array, states: Array, n_children: int, n_levels: int) -> Array:
    """Return children whose random numbers follow from seeds and generations (n,) of the rows; see children_of."""
    _, S, H = states.shape

    def draws(purpose: int, *shape: int) -> Array:
        return jnp.moveaxis(words_of(seeds, generation, purpose, shape), -1, 0)

    def parents(purpose: int, number: int) -> Array:
        chosen = below(draws(purpose, number), S, PREFERENCE)
        return jnp.take_along_axis(states, chosen[..., None], axis=1)

    mutants = parents(0, n_children)
    n_crossed, n_exchanged = n_children * CROSSED // ALL, n_children * EXCHANGED // ALL
    if n_crossed:
        others = parents(1, n_crossed)
        chosen = draws(2, n_crossed, H) >> 31 == 1
        crossed = jnp.where(chosen, others, mutants[:, :n_crossed])
        mutants = jnp.concatenate([crossed, mutants[:, n_crossed:]], axis=1)
    # One cause of each child changes its level.
    place, shift = below(draws(3, n_children), H), 1 + below(draws(4, n_children), n_levels - 1)
    here = place[..., None] == jnp.arange(H)
    changed = jnp.where(here, (mutants + shift[..., None].astype(jnp.int8)) % n_levels, mutants)
    # In some, one of the causes that were active is switched off in addition.
    weights = uniform(draws(5, n_exchanged, H))
    last = changed[:, n_children - n_exchanged :]
    active = (last > 0) & ~here[:, n_children - n_exchanged :]
    victim = jnp.argmax(jnp.where(active, weights, -1), axis=-1)
    off = (victim[..., None] == jnp.arange(H)) & active
    return jnp.concatenate([changed[:, : n_children - n_exchanged], jnp.where(off, 0, last)], axis=1).astype(jnp.int8)


def is_first(states: Array) -> Array:
    """Return which states (n, S, H) are different from all earlier ones of their row: (n, S).

    They are compared by hash codes of 64 bits. Equal states have equal codes, so that none is counted twice; two
    different states have the same code with a probability of 10⁻¹⁹, and one of them would then be left out.
    """
    random = np.random.RandomState(0)
    words = random.randint(0, 2**32, (2, states.shape[-1]), dtype=np.uint64).astype(np.uint32) | 1
    numbers = states.astype(jnp.uint32)
    codes = [jnp.sum(numbers * jnp.asarray(word), axis=-1, dtype=jnp.uint32) for word in words]
    same = (codes[0][:, :, None] == codes[0][:, None, :]) & (codes[1][:, :, None] == codes[1][:, None, :])
    earlier = np.tril(np.ones((states.shape[1], states.shape[1]), dtype=bool), k=-1)
    return ~jnp.any(same & earlier, axis=2)
