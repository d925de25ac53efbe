"""Evolved binary states of sums, whose log joints follow from flips; see :class:`multicause.posteriors.Evolved`.

What is kept of a row is ``"states"`` (words, S, n), the best one first, ``"has"`` (S, n), in which places there is one,
``"seeds"`` (n,), from which its random numbers follow, and ``"generation"`` (n,), the number of the next generation.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from multicause.arrays import Array
from multicause.generative import GenerativeModel
from multicause.posteriors.evolution.bit_sets import n_words, packed
from multicause.posteriors.evolution.flip_states import FlipStates
from multicause.posteriors.evolution.flips import FlipSums, Reference, reference_of, relative_scores, sums_of
from multicause.posteriors.evolution.greedy_breeding import next_generation
from multicause.records import Block, Parameters

StatesOfRows = dict[str, Array]


def every_state(n_components: int, n: int, seeds: Array) -> StatesOfRows:
    """Return what is kept of rows that have all states, which are not bred."""
    H = n_components
    states = packed(jnp.asarray(np.arange(2**H) >> np.arange(H)[:, None] & 1))
    return _states_of_rows(jnp.broadcast_to(states[..., None], (*states.shape, n)), jnp.ones((2**H, n), bool), seeds)


def first_states(
    model: GenerativeModel,
    parameters: Parameters,
    block: Block,
    seeds: Array,
    size: int,
    n_children: int,
    n_generations: int,
) -> StatesOfRows:
    """Return what is kept of rows that have no states yet: descendants of the empty one."""
    n, H = len(block.rows), len(parameters.components)
    sums = sums_of(model, parameters, block)
    scores = jnp.where(jnp.arange(size)[:, None] == 0, jnp.zeros((size, n)), -jnp.inf)

    def generation(number: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
        words, scores = carry
        reference = reference_of(sums, words[:, 0])
        numbers = jnp.full(n, number, jnp.uint32)
        offspring = next_generation(sums, reference, words, scores, seeds, numbers, n_children)
        return offspring.words, offspring.scores - offspring.scores[0]

    begin = (jnp.zeros((n_words(H), size, n), jnp.uint64), scores)
    words, scores = jax.lax.fori_loop(0, n_generations, generation, begin)
    return _states_of_rows(words, scores > -jnp.inf, seeds, n_generations)


def _states_of_rows(words: Array, has: Array, seeds: Array, generation: int = 0) -> StatesOfRows:
    return {
        "states": words,
        "has": has,
        "seeds": seeds,
        "generation": jnp.full(seeds.shape, generation, jnp.uint32),
    }


def _scored(
    model: GenerativeModel, parameters: Parameters, block: Block, kept: StatesOfRows
) -> tuple[FlipSums, Reference, Array]:
    """Return the sums of a block, the first state of each row, and scores relative to it: (S, n)."""
    words = kept["states"]
    sums = sums_of(model, parameters, block)
    reference = reference_of(sums, words[:, 0])
    # Places without a state have the first one, from which nothing differs.
    words = jnp.where(kept["has"], words, words[:, :1])
    return sums, reference, jnp.where(kept["has"], relative_scores(sums, reference, words), -jnp.inf)


def bred(
    model: GenerativeModel,
    parameters: Parameters,
    block: Block,
    temperature: Array,
    kept: StatesOfRows,
    n_children: int,
) -> tuple[FlipStates, StatesOfRows]:
    """Return expectations over the states of the next generation, and what is kept of it."""
    sums, reference, scores = _scored(model, parameters, block, kept)
    offspring = next_generation(sums, reference, kept["states"], scores, kept["seeds"], kept["generation"], n_children)
    inference = FlipStates(model, parameters, block, temperature, sums, reference, offspring.words, offspring.scores)
    after = {"states": offspring.words, "has": offspring.scores > -jnp.inf, "generation": kept["generation"] + 1}
    return inference, kept | after


def kept(
    model: GenerativeModel, parameters: Parameters, block: Block, temperature: Array, kept: StatesOfRows
) -> FlipStates:
    """Return expectations over the states that were kept."""
    sums, reference, scores = _scored(model, parameters, block, kept)
    return FlipStates(model, parameters, block, temperature, sums, reference, kept["states"], scores)
