"""Search for probable states of a layered network that has too many to enumerate: samples and local search."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from multicause.arrays import Array, matmul
from multicause.priors.layered_networks import (
    Machine,
    Mask,
    log_bernoulli,
    log_joint_of_lowest,
    log_prior_of_lowest,
)

# Maximum number of sweeps over all causes, starting at the best state. On bars, three were enough for every row.
MAX_SWEEPS = 20
# Seed of the random numbers by which equal states are detected.
SEED = 0


class SearchInputs(NamedTuple):
    """Data and random numbers for which states are evaluated."""

    data: Array  # (n, D)
    uniforms: Array  # (K, n, ΣH) uniform random numbers from which higher causes are drawn
    mask: Mask | None  # which values were observed; None for all


def search(
    machine: Machine, data: Array, sampled: Array, uniforms: Array, mask: Mask | None = None
) -> tuple[Array, Array]:
    """Return probable states (n, S, H) of int8 and their log p(v, u) (n, S), given samples (K, n, H); some may repeat.

    One sweep of coordinate ascent starts at each sample, at the state without active causes and at that with all of
    them: if recognition misses the best state in all samples, it often does so for the same causes. The best state is
    then improved until no change of a single cause raises p(v, u). The result contains the samples, the states after
    one sweep, the best one, and all that differ from it in one cause: S = 2K + 3 + H.
    """
    starts = jnp.concatenate([sampled, jnp.zeros_like(sampled[:1]), jnp.ones_like(sampled[:1])])
    inputs = SearchInputs(data, uniforms, mask)
    before = jax.lax.map(lambda states: log_joint_of_lowest(machine, data, states, uniforms, mask), starts)
    swept, after = jax.lax.map(lambda start: _sweep(machine, inputs, start[0], start[1])[:2], (starts, before))
    first = jnp.argmax(after, axis=0)[None]
    best = _climb(machine, inputs, _take(swept, first[..., None])[0], _take(after, first)[0])
    # Recompute the log joint, because sums that were updated many times have lost precision.
    of_best = log_joint_of_lowest(machine, data, best, uniforms, mask)
    around, of_around = _neighbours(machine, inputs, best)
    by_rows = [jnp.swapaxes(states, 0, 1).astype(jnp.int8) for states in (sampled, swept, best[None])]
    log_joint = jnp.concatenate([before[: len(sampled)], after, of_best[None]]).T
    return jnp.concatenate([*by_rows, around], axis=1), jnp.concatenate([log_joint, of_around], axis=1)


def n_found(n_samples: int, n_components: int) -> int:
    """Return the number of states that :func:`search` returns for each row."""
    return 2 * n_samples + 3 + n_components


def best_distinct(states: Array, log_joint: Array, top: int) -> tuple[Array, Array]:
    """Return distinct states among (n, K, H), best first: (n, top, H), and their shares of Σ p(v, u) over all of them.

    If a row has fewer distinct states, its list is padded with zeros of probability zero.
    """
    # Sums of random 64-bit numbers serve as hashes: those of two different states agree with a probability of 2⁻⁶⁴.
    numbers = np.random.default_rng(SEED).integers(0, 2**64, states.shape[-1], dtype=np.uint64)
    codes = jnp.sum(jnp.where(states > 0, jnp.asarray(numbers), 0), axis=-1, dtype=jnp.uint64)
    order = jnp.argsort(codes, axis=1)
    codes, log_joint = (jnp.take_along_axis(a, order, axis=1) for a in (codes, log_joint))
    first = jnp.concatenate([jnp.ones((len(codes), 1), bool), codes[:, 1:] != codes[:, :-1]], axis=1)
    log_joint = jnp.where(first, log_joint, -jnp.inf)
    largest, best = jax.lax.top_k(log_joint, top)
    best_states = jnp.take_along_axis(states, jnp.take_along_axis(order, best, axis=1)[..., None], axis=1)
    probabilities = jnp.exp(largest - jax.nn.logsumexp(log_joint, axis=1, keepdims=True))
    return jnp.where(jnp.isneginf(largest)[..., None], 0, best_states), probabilities


def _take(values: Array, indices: Array) -> Array:
    return jnp.take_along_axis(values, indices, axis=0)


def _climb(machine: Machine, inputs: SearchInputs, states: Array, values: Array) -> Array:
    """Sweep over all causes until no state (n, H) changes any more, and return the states."""

    def unfinished(carry: tuple[Array, Array, Array, Array]) -> Array:
        return carry[2] & (carry[3] < MAX_SWEEPS)

    def sweep(carry: tuple[Array, Array, Array, Array]) -> tuple[Array, Array, Array, Array]:
        return (*_sweep(machine, inputs, *carry[:2]), carry[3] + 1)

    return jax.lax.while_loop(unfinished, sweep, (states, values, jnp.asarray(True), jnp.asarray(0)))[0]


def _sweep(machine: Machine, inputs: SearchInputs, states: Array, values: Array) -> tuple[Array, Array, Array]:
    """Visit the causes of states (n, H) in turn, and flip each that raises log p(v, u), ``values`` (n,).

    Return the states, their values, and whether any state has changed.
    """

    def visit(carry: tuple[Array, Array, Array], cause: Array) -> tuple[tuple[Array, Array, Array], Array]:
        states, values, logits = carry
        new, new_logits, found = _switched(machine, inputs, states, logits, cause)
        better = found > values
        states, logits = (jnp.where(better[:, None], a, b) for a, b in ((new, states), (new_logits, logits)))
        return (states, jnp.where(better, found, values), logits), jnp.any(better)

    carry = (states, values, _logits(machine, states))
    (states, values, _), changed = jax.lax.scan(visit, carry, jnp.arange(states.shape[1]))
    return states, values, jnp.any(changed)


def _neighbours(machine: Machine, inputs: SearchInputs, states: Array) -> tuple[Array, Array]:
    """Return the states that differ from (n, H) in one cause, (n, H, H) of int8, and their log p(v, u), (n, H)."""
    logits = _logits(machine, states)

    def one(cause: Array) -> Array:
        return _switched(machine, inputs, states, logits, cause)[2]

    causes = jnp.arange(states.shape[1])
    switched = states.astype(jnp.int8)[:, None, :] ^ jnp.eye(len(causes), dtype=jnp.int8)
    return switched, jax.lax.map(one, causes).T


def _logits(machine: Machine, states: Array) -> Array:
    lowest = machine.generative[0]
    return matmul(states, lowest["weights"]) + lowest["bias"]


def _switched(
    machine: Machine, inputs: SearchInputs, states: Array, logits: Array, cause: Array
) -> tuple[Array, Array, Array]:
    """Return states with one cause flipped, logits of the data and log p(v, u), by an update of the logits."""
    change = 1 - 2 * states[:, cause]
    new = states.at[:, cause].add(change)
    new_logits = logits + change[:, None] * machine.generative[0]["weights"][cause]
    explained = log_bernoulli(inputs.data, new_logits, inputs.mask)
    return new, new_logits, explained + log_prior_of_lowest(machine, new, inputs.uniforms)
