"""Random numbers of rows, which do not depend on the block, device or worker of a row.

Each row has a seed, drawn once. A number follows from the seed, the generation and its purpose, by a hash function
whose output has the statistics of random numbers (the finalizer of MurmurHash3 by A. Appleby, in the public domain).
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from multicause.arrays import Array

# Odd numbers that spread successive generations and purposes over all words.
OF_GENERATION, OF_PURPOSE, OF_PLACE = 0x9E3779B9, 0x85EBCA77, 0xC2B2AE3D


def mixed(words: Array) -> Array:
    """Return words of uint32 in which every bit depends on all bits of the given ones."""
    words = (words ^ (words >> 16)) * jnp.uint32(0x85EBCA6B)
    words = (words ^ (words >> 13)) * jnp.uint32(0xC2B2AE35)
    return words ^ (words >> 16)


def seeds_of_rows(key: Array, numbers: Array) -> Array:
    """Return the seeds of rows, given a random key and the numbers (n,) of the rows in the data: (n,) of uint32."""
    words = jax.random.bits(key, (2,), jnp.uint32)
    return mixed(mixed(numbers.astype(jnp.uint32) + words[0]) + words[1])


def words_of(seeds: Array, generation: Array, purpose: int, shape: tuple[int, ...] = ()) -> Array:
    """Return random words of rows (n,): (*shape, n) of uint32."""
    seeds = mixed(seeds + generation.astype(jnp.uint32) * jnp.uint32(OF_GENERATION))
    size = 1
    for length in shape:
        size *= length
    places = jnp.arange(size, dtype=jnp.uint32).reshape(*shape, 1) * jnp.uint32(OF_PLACE)
    return mixed(seeds + jnp.uint32(OF_PURPOSE * (purpose + 1) % 2**32) + places).reshape(*shape, len(seeds))


def uniform(words: Array) -> Array:
    """Return numbers in [0, 1), of single precision, given random words."""
    return (words >> 8).astype(jnp.float32) * jnp.float32(2.0**-24)


def below(words: Array, bound: int | Array, preference: float = 1.0) -> Array:
    """Return whole numbers ⌊bound · u^preference⌋ with u uniform in [0, 1), given random words."""
    draws = uniform(words)
    draws = draws if preference == 1.0 else draws**preference
    return jnp.minimum((draws * bound).astype(jnp.int32), bound - 1)
