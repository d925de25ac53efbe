"""Log joints and moments of states that differ in some of a few causes, for all causes in turn.

Loops over the causes in which states differ (:mod:`multicause.posteriors.evolution.flips`) end with the state that
differs in most of them. For few causes it takes less time to visit every cause of every state: there are no indices, so
that everything is one loop over states and one matrix product. Arrays have rows along the last axis.
"""

from __future__ import annotations

import jax.numpy as jnp

from multicause.arrays import Array, matmul, stored
from multicause.posteriors.evolution.bit_sets import BITS

# Number of causes up to which all of them are visited.
FEW = 16


def all_scores(words: Array, reference: Array, slopes: Array, gram: Array) -> Array:
    """Return log joints of states (words, S, n) relative to a reference (words, n), in double precision: (S, n).

    ``slopes`` (H, n) are those of the reference, and ``gram`` (H, H) are products of components in double precision.
    """
    total = jnp.zeros(words.shape[1:], jnp.float64)
    changes: list[Array] = []
    for cause, slope in enumerate(slopes.astype(jnp.float64)):
        change = _change(words, reference, cause).astype(jnp.float64)
        others = sum((gram[cause, place] * other for place, other in enumerate(changes)), jnp.zeros_like(total))
        total += change * (slope - others - 0.5 * gram[cause, cause] * change)
        changes.append(change)
    return total


def all_moments(
    words: Array, reference: Array, probabilities: Array, weights: Array, n_components: int
) -> tuple[Array, Array]:
    """Return ⟨δ⟩ (H, n) and Σ_n w_n ⟨δ δᵀ⟩ (H, H) in double precision of the changes δ from the reference."""
    dtype = probabilities.dtype
    changes = [_change(words, reference, cause).astype(dtype) for cause in range(n_components)]
    mean = jnp.stack([jnp.sum(change * probabilities, axis=0) for change in changes])
    # One array and its transpose take less time than two arrays.
    roots = jnp.sqrt(probabilities * weights)
    halves = stored(jnp.stack([change * roots for change in changes]).reshape(n_components, -1))
    return mean, matmul(halves, halves.T).astype(jnp.float64)


def _change(words: Array, reference: Array, cause: int) -> Array:
    """Return s_h − r_h of one cause of states (words, S, n): −1, 0 or 1, (S, n)."""
    word, place = divmod(cause, BITS)
    state, own = ((each[word] >> jnp.uint64(place)) & 1 for each in (words, reference))
    return state.astype(jnp.int32) - own.astype(jnp.int32)
