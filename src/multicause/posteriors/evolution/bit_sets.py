"""Binary states of rows as bits of 64-bit words, with rows along the last axis: (words, ..., n).

A row keeps many states from one iteration to the next, and most causes are off. Words take 64 times less memory than
numbers, and states that differ in a few causes are compared, changed and enumerated by operations on whole words.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from multicause.arrays import Array

BITS = 64


def n_words(n_components: int) -> int:
    """Return the number of words of a state."""
    return -(-n_components // BITS)


def packed(states: Array) -> Array:
    """Return the words (words, ..., n) of states (H, ..., n), which are zero for causes that are off."""
    H, number = len(states), n_words(len(states))
    filled = jnp.pad(states != 0, ((0, number * BITS - H), *((0, 0) for _ in states.shape[1:])))
    places = jnp.arange(BITS, dtype=jnp.uint64).reshape(1, BITS, *(1 for _ in states.shape[1:]))
    bits = filled.reshape(number, BITS, *states.shape[1:]).astype(jnp.uint64) << places
    return jnp.sum(bits, axis=1, dtype=jnp.uint64)


def unpacked(words: Array, n_components: int) -> Array:
    """Return which causes are on: (H, ..., n) of bool, given words (words, ..., n)."""
    places = jnp.arange(BITS, dtype=jnp.uint64).reshape(BITS, *(1 for _ in words.shape[1:]))
    return jnp.concatenate([((word >> places) & 1) != 0 for word in words])[:n_components]


def one_bit(cause: Array, number: int) -> Array:
    """Return words (number, ..., n) in which only the bit of the given cause (..., n) is set."""
    bit = jnp.uint64(1) << (cause % BITS).astype(jnp.uint64)
    return jnp.stack([jnp.where(cause // BITS == place, bit, jnp.uint64(0)) for place in range(number)])


def size_of(words: Array) -> Array:
    """Return the number of bits that are set: (..., n)."""
    return jnp.sum(jax.lax.population_count(words), axis=0, dtype=jnp.int32)


def is_single(words: Array) -> Array:
    """Return which sets have exactly one cause, without counting bits, which processors do one word at a time."""
    filled = jnp.sum(words != 0, axis=0, dtype=jnp.int32)
    return (filled == 1) & jnp.all(words & (words - 1) == 0, axis=0)


def single_changes(words: Array, valid: Array, origin: Array) -> Array:
    """Return the causes whose change alone leads from a state (words, n) to a valid one of others: (words, n).

    ``words`` (words, S, n) are the other states; ``valid`` (S, n) says which of them count.
    """
    apart = words ^ origin[:, None]
    singles = jnp.where(is_single(apart) & valid, apart, np.uint64(0))
    return jax.lax.reduce(singles, np.uint64(0), jax.lax.bitwise_or, (1,))


class Lowest(NamedTuple):
    """The first cause of each set: whether there is any, its number, its sign and the set without it."""

    exists: Array  # (..., n)
    cause: Array  # (..., n), 0 if there is none
    sign: Array  # (..., n) −1 if the cause is in the reference, 1 if not, 0 if there is none
    rest: Array  # (words, ..., n)


def lowest(words: Array, reference: Array) -> Lowest:
    """Return the first cause of each set (words, ..., n); ``reference`` (words, n) has the causes of sign −1."""
    number = len(words)
    low, own = words[-1], jnp.broadcast_to(reference[-1], words.shape[1:])
    which = jnp.full(low.shape, number - 1, jnp.int32)
    for place in reversed(range(number - 1)):
        here = words[place] != 0
        low, own = jnp.where(here, words[place], low), jnp.where(here, reference[place], own)
        which = jnp.where(here, place, which)
    bit = low & (~low + 1)
    exists = low != 0
    # Below the lowest bit, there are as many bits as its place says.
    cause = jnp.where(exists, which * BITS + jax.lax.population_count(bit - 1).astype(jnp.int32), 0)
    sign = jnp.where(exists, jnp.where((own & bit) != 0, -1, 1), 0)
    rest = jnp.stack([jnp.where(which == place, word ^ bit, word) for place, word in enumerate(words)])
    return Lowest(exists, cause, sign, rest)
