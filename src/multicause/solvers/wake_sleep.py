"""Wake-sleep learning of a Helmholtz machine: TN10 eq. 10.39–10.44 and the table of its appendix.

Plain wake-sleep learns the generative weights from one recognised state of each row, and the recognition weights from
fantasies (samples of the model) alone. Fantasies of an untrained model are unlike the data, so the recognition network
may never learn the states that the data need: on bars, several causes then share the work of one. With more
*particles*, each row has several recognised states, weighted by p(v, u)/q(v | u), and both sets of weights are learned
from them (reweighted wake-sleep, J. Bornschein and Y. Bengio 2015).
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from multicause.arrays import Array, over_starts
from multicause.model import Block
from multicause.priors.layered_networks import (
    Machine,
    fantasies,
    importance,
    log_joint,
    log_recognition,
    masked,
    n_causes,
)
from multicause.solvers.presentation import Batches, BlockDraw, Presentation
from multicause.updates.wake_sleep import WakeSleepSettings


def step(
    recipe: WakeSleepSettings, machine: Machine, data: Array, weights: Array, key: Array, rate: Array
) -> tuple[Machine, Array]:
    """Run one wake and one sleep phase on a batch; return the new machine and Σ_n w_n F_n before the step.

    The gradients of log P and log Q are the delta rules of the appendix: (u − f(h + G·v)) v, and so on.
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
    recipe: WakeSleepSettings, machines: Machine, rows: Array, batches: Batches, keys: Array, rate: Array
) -> tuple[Machine, Array]:
    """Run wake-sleep steps on batches of a block's rows (n, D), for several machines, each with its own key.

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


def learn_block(
    block: Block,
    carry: tuple[Machine, np.ndarray, float],
    recipe: WakeSleepSettings,
    presentation: Presentation,
    rate: Array,
    key_data: Array,
    draw: BlockDraw,
) -> tuple[Machine, np.ndarray, float]:
    """Return machines, Σ_n w_n F_n of each (starts,) and Σ_n w_n after the batches of one more block of a pass.

    ``key_data`` are the numbers of the key of the pass.
    """
    machines, total, shown = carry
    batches = presentation.batches(np.asarray(block.weights), draw)
    keys = jax.random.split(jax.random.fold_in(jax.random.wrap_key_data(key_data), draw.number), len(total))
    machines, bounds = one_pass(recipe, machines, block.rows, batches, keys, rate)
    return machines, total + np.asarray(bounds), shown + batches.weights.sum(dtype=float)
