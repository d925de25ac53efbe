"""Probabilities under the two networks of a Helmholtz machine: the generative and the recognition network.

A network is a tuple of layers from the data upwards. Generative layer k has weights (H_{k+1}, H_k) and biases (H_k,)
that predict layer k from the one above, the last has only biases; recognition layer k has weights (H_k, H_{k+1}) and
biases (H_{k+1},) that predict the layer above.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from multicause.arrays import Array, matmul

Layers = tuple[dict[str, Array], ...]


class Machine(NamedTuple):
    """Weights and biases of the generative and the recognition network."""

    generative: Layers
    recognition: Layers


class Mask(NamedTuple):
    """Record of the observed values of rows whose missing values were replaced by the probability of a one."""

    observed: Array  # (n, D) one for observed values and zero for missing ones
    empty: Array  # (n, 1) whether a row has no observed value, so that recognition must return the prior
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
    """Return Σ log P of binary values (..., H), or of the observed ones, given logits: (...)."""
    terms = values * logits - jax.nn.softplus(logits)
    return jnp.sum(terms if mask is None else terms * mask.observed, axis=-1)


def predicted(layer: dict[str, Array], above: Array | None, like: Array) -> Array:
    """Return logits of a layer given the one above it, or the biases of the top layer."""
    if above is None:
        return jnp.broadcast_to(layer["bias"], like.shape)
    return matmul(above, layer["weights"]) + layer["bias"]


def log_joint(generative: Layers, states: tuple[Array, ...], mask: Mask | None = None) -> Array:
    """Return log P(u, v; G) of the layers' states, data first, over values that are observed by the mask: (...)."""
    above, masks = (*states[1:], None), (mask, *(None for _ in states[1:]))
    layers = zip(generative, states, above, masks, strict=True)
    return sum((log_bernoulli(s, predicted(layer, a, s), mask) for layer, s, a, mask in layers), jnp.zeros(()))


def recognition_logits(layer: dict[str, Array], below: Array, mask: Mask | None = None) -> Array:
    """Return logits of the causes above some states, or those of the prior for rows without observed values."""
    logits = matmul(below, layer["weights"]) + layer["bias"]
    return logits if mask is None else jnp.where(mask.empty, mask.prior, logits)


def log_recognition(recognition: Layers, states: tuple[Array, ...], mask: Mask | None = None) -> Array:
    """Return log Q(v; u, W) of the layers' states, data first: (...)."""
    masks = (mask, *(None for _ in recognition[1:]))
    layers = zip(recognition, states[:-1], states[1:], masks, strict=True)
    return sum(
        (log_bernoulli(above, recognition_logits(layer, below, mask)) for layer, below, above, mask in layers),
        jnp.zeros(()),
    )


def recognized(recognition: Layers, data: Array, uniforms: Array, mask: Mask | None = None) -> tuple[Array, ...]:
    """Return states drawn from Q, data first, given uniform numbers (..., ΣH) for the causes of all layers."""
    states, used = [data], 0
    for number, layer in enumerate(recognition):
        chance = jax.nn.sigmoid(recognition_logits(layer, states[-1], mask if number == 0 else None))
        size = chance.shape[-1]
        states.append((uniforms[..., used : used + size] < chance).astype(chance.dtype))
        used += size
    return tuple(states)


def n_causes(recognition: Layers) -> int:
    """Return the number of causes in all layers."""
    return sum(layer["bias"].shape[-1] for layer in recognition)


def fantasies(generative: Layers, key: Array, n_samples: int) -> tuple[Array, ...]:
    """Draw states from P, from the top layer downwards, and return them with data first."""
    sizes, dtype = [layer["bias"].shape[-1] for layer in generative], generative[0]["bias"].dtype
    # All numbers are drawn in one call, because each call of the generator takes a second to compile.
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
    """Return several states of each row drawn from Q (K, n, ·), and log p(v, u) − log q(v | u) of each (K, n)."""
    repeated = jnp.broadcast_to(data, (uniforms.shape[0], *data.shape))
    states = recognized(machine.recognition, repeated, uniforms, mask)
    ratio = log_joint(machine.generative, states, mask) - log_recognition(machine.recognition, states, mask)
    return states, ratio


def log_joint_of_lowest(
    machine: Machine, data: Array, lowest: Array, uniforms: Array, mask: Mask | None = None
) -> Array:
    """Return log p(v, u) of states v (..., n, H) of the causes next to the data (n, D): (..., n).

    It is exact for one layer of causes. With higher causes, the sum over their states has no closed form, and p(v) is
    estimated by importance sampling with uniform numbers (K, n, ΣH) for the higher causes. All states of a row share
    these numbers, so that random differences between their estimates are as small as possible.
    """
    explained = log_bernoulli(data, predicted(machine.generative[0], lowest, data), mask)
    return explained + log_prior_of_lowest(machine, lowest, uniforms)


def log_prior_of_lowest(machine: Machine, lowest: Array, uniforms: Array) -> Array:
    """Return log p(v) of states v (..., n, H) of the lowest causes: (..., n). See :func:`log_joint_of_lowest`."""
    if len(machine.recognition) == 1:
        return log_joint(machine.generative[1:], (lowest,))
    higher = Machine(machine.generative[1:], machine.recognition[1:])

    def add(total: Array, numbers: Array) -> tuple[Array, None]:
        states = recognized(higher.recognition, lowest, numbers)
        ratio = log_joint(higher.generative, states) - log_recognition(higher.recognition, states)
        return jnp.logaddexp(total, ratio), None

    start = jnp.full(lowest.shape[:-1], -jnp.inf, lowest.dtype)
    # Samples are processed in a loop, so that memory does not grow with their number.
    return jax.lax.scan(add, start, uniforms)[0] - jnp.log(len(uniforms)).astype(lowest.dtype)
