"""Learning of a Helmholtz machine by wake and sleep: TN10 eq. 10.39–10.44 and the table of its appendix.

A machine is a tuple of layers from the data upwards. Generative layer k has weights (H_{k+1}, H_k) and biases (H_k,)
that predict layer k from the one above, the last has biases alone; recognition layer k has weights (H_k, H_{k+1}) and
biases (H_{k+1},) that predict the layer above.

Plain wake–sleep learns the generative weights from one recognised state of each row, and the recognition weights from
fantasies alone. Fantasies of an untrained model are unlike data, so recognition may never learn what data need: on
bars, several causes then share one cause's work. With more *particles* each row has several recognised states, weighted
by p(v, u)/q(v | u), from which both sets of weights learn (reweighted wake–sleep, J. Bornschein and Y. Bengio 2015).
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from multicause.arrays import Array, matmul, over_starts
from multicause.learning.presentation import Batches

Layers = tuple[dict[str, Array], ...]


class Machine(NamedTuple):
    """Weights and biases of both networks."""

    generative: Layers
    recognition: Layers


class Mask(NamedTuple):
    """What is known of rows with missing values, which have the probabilities of their dimensions in place of these."""

    observed: Array  # (n, D) ones, and zeros where a value was not observed
    empty: Array  # (n, 1) whether a row has no value at all, so that recognition must give the prior
    prior: Array  # (H,) logits of the lowest causes without any data


def masked(machine: Machine, rows: Array) -> tuple[Array, Mask]:
    """Return rows (n, D) with probabilities in place of NaN, and their mask."""
    above: Array | None = None
    logits: list[Array] = []
    for layer in reversed(machine.generative):
        logits.append(predicted(layer, above, layer["bias"]))
        above = jax.nn.sigmoid(logits[-1])
    assert above is not None
    observed = ~jnp.isnan(rows)
    data = jnp.where(observed, rows, jax.lax.stop_gradient(above))
    empty = ~jnp.any(observed, axis=1, keepdims=True)
    return data, Mask(observed.astype(rows.dtype), empty, jax.lax.stop_gradient(logits[-2]))


def log_bernoulli(values: Array, logits: Array, mask: Mask | None = None) -> Array:
    """Σ log P of binary values (..., H), or of the observed ones, given logits: (...)."""
    terms = values * logits - jax.nn.softplus(logits)
    return jnp.sum(terms if mask is None else terms * mask.observed, axis=-1)


def predicted(layer: dict[str, Array], above: Array | None, like: Array) -> Array:
    """Logits of a layer from the one above it, or from the biases of the top."""
    if above is None:
        return jnp.broadcast_to(layer["bias"], like.shape)
    return matmul(above, layer["weights"]) + layer["bias"]


def log_joint(generative: Layers, states: tuple[Array, ...], mask: Mask | None = None) -> Array:
    """log P(u, v; G) of the layers' states, data first, of which the mask says what was observed: (...)."""
    above, masks = (*states[1:], None), (mask, *(None for _ in states[1:]))
    layers = zip(generative, states, above, masks, strict=True)
    return sum((log_bernoulli(s, predicted(layer, a, s), mask) for layer, s, a, mask in layers), jnp.zeros(()))


def recognition_logits(layer: dict[str, Array], below: Array, mask: Mask | None = None) -> Array:
    """Logits of the causes above some states, or those of the prior for rows of which nothing was observed."""
    logits = matmul(below, layer["weights"]) + layer["bias"]
    return logits if mask is None else jnp.where(mask.empty, mask.prior, logits)


def log_recognition(recognition: Layers, states: tuple[Array, ...], mask: Mask | None = None) -> Array:
    """log Q(v; u, W) of the layers' states, data first: (...)."""
    masks = (mask, *(None for _ in recognition[1:]))
    layers = zip(recognition, states[:-1], states[1:], masks, strict=True)
    return sum(
        (log_bernoulli(above, recognition_logits(layer, below, mask)) for layer, below, above, mask in layers),
        jnp.zeros(()),
    )


def recognized(recognition: Layers, data: Array, uniforms: Array, mask: Mask | None = None) -> tuple[Array, ...]:
    """States drawn from Q, data first, by uniform numbers (..., ΣH) for the causes of all layers."""
    states, used = [data], 0
    for number, layer in enumerate(recognition):
        chance = jax.nn.sigmoid(recognition_logits(layer, states[-1], mask if number == 0 else None))
        size = chance.shape[-1]
        states.append((uniforms[..., used : used + size] < chance).astype(chance.dtype))
        used += size
    return tuple(states)


def n_causes(recognition: Layers) -> int:
    """Number of causes in all layers."""
    return sum(layer["bias"].shape[-1] for layer in recognition)


def fantasies(generative: Layers, key: Array, n_samples: int) -> tuple[Array, ...]:
    """States drawn from P from the top down, data first."""
    sizes, dtype = [layer["bias"].shape[-1] for layer in generative], generative[0]["bias"].dtype
    # One call draws all numbers: each call of the generator takes a second to compile.
    uniforms = jax.random.uniform(key, (n_samples, sum(sizes)), dtype)
    states: list[Array] = []
    above: Array | None = None
    used = 0
    for layer, size in zip(reversed(generative), reversed(sizes), strict=True):
        chance = jax.nn.sigmoid(predicted(layer, above, jnp.zeros((n_samples, size), dtype)))
        above = (uniforms[:, used : used + size] < chance).astype(dtype)
        states.append(above)
        used += size
    return tuple(reversed(states))


def importance(
    machine: Machine, data: Array, uniforms: Array, mask: Mask | None = None
) -> tuple[tuple[Array, ...], Array]:
    """Several recognised states of each row (K, n, ·), and log p(v, u) − log q(v | u) of each (K, n)."""
    repeated = jnp.broadcast_to(data, (uniforms.shape[0], *data.shape))
    states = recognized(machine.recognition, repeated, uniforms, mask)
    ratio = log_joint(machine.generative, states, mask) - log_recognition(machine.recognition, states, mask)
    return states, ratio


def log_joint_of_lowest(
    machine: Machine, data: Array, lowest: Array, uniforms: Array, mask: Mask | None = None
) -> Array:
    """log p(v, u) of states v (..., n, H) of the causes next to the data (n, D): (..., n).

    It is exact for one layer of causes. Under higher causes the sum over their states has no closed form, and p(v) is
    estimated by importance sampling with uniform numbers (K, n, ΣH) for the higher causes. All states of a row share
    these numbers, so that their estimates differ as little as possible by chance.
    """
    explained = log_bernoulli(data, predicted(machine.generative[0], lowest, data), mask)
    return explained + log_prior_of_lowest(machine, lowest, uniforms)


def log_prior_of_lowest(machine: Machine, lowest: Array, uniforms: Array) -> Array:
    """log p(v) of states v (..., n, H) of the causes next to the data: (..., n). See :func:`log_joint_of_lowest`."""
    if len(machine.recognition) == 1:
        return log_joint(machine.generative[1:], (lowest,))
    higher = Machine(machine.generative[1:], machine.recognition[1:])

    def add(total: Array, numbers: Array) -> tuple[Array, None]:
        states = recognized(higher.recognition, lowest, numbers)
        ratio = log_joint(higher.generative, states) - log_recognition(higher.recognition, states)
        return jnp.logaddexp(total, ratio), None

    start = jnp.full(lowest.shape[:-1], -jnp.inf, lowest.dtype)
    # One sample after the other, so that memory does not grow with their number.
    return jax.lax.scan(add, start, uniforms)[0] - jnp.log(len(uniforms)).astype(lowest.dtype)


class Recipe(NamedTuple):
    """How a machine learns; hashable."""

    n_particles: int  # recognised states of each row
    nonnegative: bool  # whether causes may only switch data on
    missing: bool = False  # whether rows may hold NaN for values that were not observed


def step(
    recipe: Recipe, machine: Machine, data: Array, weights: Array, key: Array, rate: Array
) -> tuple[Machine, Array]:
    """One wake and one sleep phase on a batch; returns the machine and Σ_n w_n F_n before.

    Gradients of log P and log Q are the delta rules of the appendix: (u − f(h + G·v)) v, and so on.
    """
    key_wake, key_sleep = jax.random.split(key)
    data, mask = masked(machine, data) if recipe.missing else (data, None)
    shape = (recipe.n_particles, len(data), n_causes(machine.recognition))
    states, log_ratio = importance(machine, data, jax.random.uniform(key_wake, shape, data.dtype), mask)
    total = jnp.maximum(jnp.sum(weights), jnp.finfo(weights.dtype).tiny)
    credit = jax.nn.softmax(log_ratio, axis=0) * (weights / total)
    wake = jax.grad(lambda layers: jnp.sum(credit * log_joint(layers, states, mask)))(machine.generative)
    dreamt = fantasies(machine.generative, key_sleep, len(data))
    if mask is not None:
        # Recognition learns from fantasies in which the same values are missing as in the data.
        dreamt = (jnp.where(mask.observed > 0, dreamt[0], data), *dreamt[1:])
    asleep = jax.grad(lambda layers: jnp.mean(log_recognition(layers, dreamt, mask)))(machine.recognition)
    if recipe.n_particles > 1:
        awake = jax.grad(lambda layers: jnp.sum(credit * log_recognition(layers, states, mask)))(machine.recognition)
        asleep = jax.tree.map(lambda a, b: 0.5 * (a + b), asleep, awake)

    def moved(layers: Any, gradient: Any) -> Any:
        return jax.tree.map(lambda old, slope: old + rate.astype(old.dtype) * slope, layers, gradient)

    generative = moved(machine.generative, wake)
    if recipe.nonnegative:
        lowest = {**generative[0], "weights": jnp.maximum(generative[0]["weights"], 0)}
        generative = (lowest, *generative[1:])
    new = Machine(generative, moved(machine.recognition, asleep))
    return new, jnp.sum(weights * jnp.mean(log_ratio, axis=0))


@partial(jax.jit, static_argnums=0)
def one_pass(
    recipe: Recipe, machines: Machine, rows: Array, batches: Batches, keys: Array, rate: Array
) -> tuple[Machine, Array]:
    """Learn from batches of the rows of a block (n, D), for each of some machines with its key.

    Returns the machines and Σ_n w_n F_n before each step, summed: (starts,).
    """

    def one(machine: Machine, key: Array) -> tuple[Machine, Array]:
        def learn(number: Array, state: tuple[Machine, Array]) -> tuple[Machine, Array]:
            machine, total = state
            own, length = jax.random.fold_in(key, number), rate * batches.lengths[number]
            data, weights = rows[batches.rows[number]], batches.weights[number]
            machine, bound = step(recipe, machine, data, weights, own, length)
            return machine, total + bound.astype(jnp.float64)

        return jax.lax.fori_loop(0, batches.n_batches, learn, (machine, jnp.zeros((), jnp.float64)))

    return over_starts(one)(machines, keys)
