"""Annealed importance sampling: the partition function of any energy, and samples from it (Neal 2001).

Chains start at independent draws of a density that is known, p₀ ∝ exp(−E₀), and follow densities
p_β ∝ exp(−(1 − β) E₀ − β E) from β = 0 to 1. The products of the ratios on their way are unbiased estimates of Z/Z₀.
E₀ belongs to independent logistic variables, whose tails are as long as those of most energies.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from multicause.arrays import Array, sum_in_double
from multicause.energies.logistic import Logistic
from multicause.energies.network import Energy, EnergyParameters
from multicause.samplers.base import MarkovChain, folded, run_chain, split

# Steps before the path begins, in which the step size finds its place.
WARM_UP = 50
# Chains that find the step sizes; those that are used for the estimate then take them as given.
PILOTS = 64
UNIT_VARIANCE = np.sqrt(3) / np.pi  # scale of a logistic variable of variance one


class LogPartition(NamedTuple):
    """An estimate of log ∫ exp(−E)."""

    value: float
    standard_error: float  # zero where the value is exact
    n_chains: int
    n_rejected: int  # proposals without a finite energy


class Annealed(NamedTuple):
    """Where chains ended, and the logarithms of their importance weights."""

    positions: Array  # (n, R)
    log_weights: Array  # (n,)
    n_rejected: Array  # ()


def temperatures(n: int, dtype: Any) -> np.ndarray:
    """β from 0 to 1, densest near 0, where the density changes most."""
    return (np.linspace(0, 1, n + 1) ** 2).astype(dtype)


@partial(jax.jit, static_argnums=(0, 1))
def find_step_sizes(
    energy: Energy, sampler: MarkovChain, parameters: EnergyParameters, spread: Array, betas: Array, key: Array
) -> Array:
    """A step size for every β, from chains that are used for nothing else: (K + 1,)."""
    dtype, dimensions = parameters.filters.dtype, parameters.filters.shape[1]
    base = Logistic()
    position = base.draw(key, {}, PILOTS, dimensions, dtype) * spread

    def at(beta: Array, position: Array, step_size: Array, key: Array) -> tuple[Array, Array]:
        position, acceptance, _ = run_chain(
            sampler, key, position, step_size, _path(energy, parameters, spread, beta), 1
        )
        return position, sampler.adapted(step_size, acceptance)

    def follow(carry: tuple[Array, Array], beta_and_number: Any) -> Any:
        beta, number = beta_and_number
        carry = at(beta, *carry, jax.random.fold_in(key, number))
        return carry, carry[1]

    path = jnp.concatenate([jnp.full(WARM_UP, betas[0]), betas])
    start = (position, jnp.asarray(sampler.step_size, dtype) * spread)
    return jax.lax.scan(follow, start, (path, jnp.arange(len(path))))[1][WARM_UP:]


@partial(jax.jit, static_argnums=(0, 1, 7))
def anneal(
    energy: Energy,
    sampler: MarkovChain,
    parameters: EnergyParameters,
    spread: Array,
    betas: Array,
    step_sizes: Array,
    keys: Array,
    n_more: int = 0,
) -> Annealed:
    """Follow the path with one chain for each key, and then the model's own chain for ``n_more`` steps."""
    dtype, dimensions = parameters.filters.dtype, parameters.filters.shape[1]
    for_draw, for_steps = split(keys)
    base = Logistic()
    position = jax.vmap(lambda key: base.draw(key, {}, 1, dimensions, dtype)[0])(for_draw) * spread

    def follow(carry: Any, entry: Any) -> Any:
        position, log_weights, bad = carry
        before, beta, step_size, number = entry
        value = energy.value(parameters, position)
        log_weights = log_weights - (beta - before).astype(jnp.float64) * (value - _base(position, spread))
        key = folded(for_steps, number)
        target = _path(energy, parameters, spread, beta)
        position, _, more = run_chain(sampler, key, position, step_size, target, 1)
        return (position, log_weights, bad + more), None

    # Steps after the path are at its last density, where the weights do not change.
    before = jnp.concatenate([betas[:-1], jnp.full(n_more, betas[-1])])
    after = jnp.concatenate([betas[1:], jnp.full(n_more, betas[-1])])
    sizes = jnp.concatenate([step_sizes[1:], jnp.full(n_more, step_sizes[-1])])
    start = (position, jnp.zeros(len(position), jnp.float64), jnp.zeros((), int))
    (position, log_weights, bad), _ = jax.lax.scan(follow, start, (before, after, sizes, jnp.arange(len(after))))
    return Annealed(position, log_weights, bad)


def log_partition(log_weights: np.ndarray, spread: float, dimensions: int, n_rejected: int) -> LogPartition:
    """log of the mean weight times Z₀ = spread^R, and its standard error."""
    largest = log_weights.max()
    weights = np.exp(log_weights - largest)
    mean = weights.mean()
    error = weights.std(ddof=1) / (mean * np.sqrt(len(weights))) if len(weights) > 1 else np.inf
    value = largest + np.log(mean) + dimensions * np.log(spread)
    return LogPartition(float(value), float(error), len(weights), int(n_rejected))


def _base(position: Array, spread: Array) -> Array:
    return sum_in_double(Logistic().energy(position / spread, {}), axis=1).astype(position.dtype)


def _path(energy: Energy, parameters: EnergyParameters, spread: Array, beta: Array) -> Any:
    def target(position: Array) -> tuple[Array, Array]:
        def mixed(rows: Array) -> Array:
            return (1 - beta) * _base(rows, spread) + beta * energy.value(parameters, rows)

        value, back = jax.vjp(mixed, position)
        return value, back(jnp.ones_like(value))[0]

    return target
