"""Annealed importance sampling (AIS): estimate the partition function of an energy and sample from it (Neal 2001).

Chains start at independent draws of a known density p₀ ∝ exp(−E₀), and follow the densities p_β ∝ exp(−(1 − β) E₀ − β
E) from β = 0 to 1. The products of the density ratios along the path are unbiased estimates of Z/Z₀. E₀ belongs to
independent variables whose tails are as heavy as those of the energy: logistic ones, or Student-t ones where the energy
grows more slowly than linearly. With logistic tails the importance weights would then have infinite variance, and their
mean would miss the probability far from the centre (0.16 of log Z in two dimensions with γ = 0.8, at an apparent
standard error of 0.02).
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from multicause.arrays import Array, double_precision, sum_in_double
from multicause.energies.base import Expert, Shape
from multicause.energies.logistic import Logistic
from multicause.energies.network import Energy, EnergyParameters
from multicause.energies.student import Student
from multicause.samplers.base import folded, run_chain, split
from multicause.samplers.hamiltonian import Hamiltonian

# Sampler along the path: fewer leapfrog steps than in learning, because there are many densities.
SAMPLER = Hamiltonian(10)
# Warm-up steps before the path begins, in which the step size is adapted.
WARM_UP = 50
# Number of chains that adapt the step sizes; the chains of the estimate then use fixed step sizes.
PILOTS = 64
# The growth of an energy is measured at FAR standard deviations in DIRECTIONS random directions. Twice as far out, a
# linear energy is twice as large; a ratio below LINEAR means that the energy grows more slowly than linearly.
FAR, DIRECTIONS, LINEAR = 1e4, 64, 1.9
# Range of the exponents of the Student-t variables: the heaviest tails that still have a density, and tails of variance
# one.
HEAVIEST, LIGHTEST = 0.55, 2.0
# Number of arrays of the size of a row or of its activities that one step of a chain needs at once.
ARRAYS = 8
# Shape parameters and scale of a base density, as arrays.
BaseParameters = tuple[Shape, Array]


class LogPartition(NamedTuple):
    """Estimate of log ∫ exp(−E) and its standard error."""

    value: float
    standard_error: float  # zero where the value is exact
    n_chains: int
    n_rejected: int  # proposals without a finite energy


class BaseDensity(NamedTuple):
    """Base density of annealed importance sampling: independent variables of a known density."""

    expert: Expert
    shape: Shape
    n_units: int  # R
    spread: float  # scale of the variables

    @property
    def log_partition(self) -> float:
        """Return log Z₀, the log partition function of the base density."""
        with double_precision():
            of_units = float(self.expert.log_partition(self.shape, self.n_units, float).sum())
        return of_units + self.n_units * float(np.log(self.spread))


class Annealed(NamedTuple):
    """Final positions of the chains and their log importance weights."""

    positions: Array | np.ndarray  # (n, R)
    log_weights: Array | np.ndarray  # (n,)
    n_rejected: Array | np.ndarray  # (n,) proposals of each chain rejected for a non-finite energy


def inverse_temperatures(n: int, dtype: Any) -> np.ndarray:
    """Return inverse temperatures β from 0 to 1, densest near 0, where the density changes most."""
    return (np.linspace(0, 1, n + 1) ** 2).astype(dtype)


def base_for(energy: Energy, parameters: EnergyParameters, variance: float) -> BaseDensity:
    """Choose a base density of about this variance, with tails as heavy as those of the energy along its filters."""
    units, dimensions = parameters.filters.shape
    with double_precision():
        in_double = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float64), parameters)
        directions = np.random.RandomState(0).normal(size=(DIRECTIONS, units)) @ np.asarray(in_double.filters)
        outside = FAR * np.sqrt(variance) * directions / np.linalg.norm(directions, axis=1, keepdims=True)
        places = jnp.asarray(np.concatenate([0 * outside, outside, 2 * outside]))
        centre, far, farther = np.asarray(_values(energy, in_double, places)).reshape(3, -1).mean(axis=1)
    if not farther - centre < LINEAR * (far - centre):
        return BaseDensity(Logistic(), {}, dimensions, float(np.sqrt(3 * variance) / np.pi))
    # γ log(1 + h²) grows by 2γ for each unit of log h; many experts in few dimensions share one direction.
    growth = (farther - far) / np.log(2) / (2 * min(units, dimensions))
    with double_precision():
        exponents = jnp.full(dimensions, float(np.clip(growth, HEAVIEST, LIGHTEST)))
    return BaseDensity(Student(), {"exponents": exponents}, dimensions, float(np.sqrt(variance)))


def follow_path(
    energy: Energy,
    parameters: EnergyParameters,
    base: BaseDensity,
    n_chains: int,
    n_temperatures: int,
    *,
    n_more: int,
    key: Array,
    memory: int,
) -> Annealed:
    """Run chains along the path, then for ``n_more`` steps at the model's density; return their ends on the host.

    Chains run in groups that take at most ``memory`` bytes. Each chain has its own key, so that the grouping does not
    change the result.
    """
    given = parameters.filters.dtype
    dtype = np.dtype(float) if base.expert.wide_range else given
    parameters = jax.tree.map(lambda leaf: jnp.asarray(leaf, dtype), parameters)
    betas = jnp.asarray(inverse_temperatures(n_temperatures, dtype))
    base_parameters = jax.tree.map(lambda leaf: jnp.asarray(leaf, dtype), (base.shape, base.spread))
    for_steps, for_chains = jax.random.split(key)
    step_sizes = find_step_sizes(energy, base.expert, parameters, base_parameters, betas, for_steps)
    keys = jax.random.split(for_chains, n_chains)
    units = sum(len(bias) for bias in (parameters.filters, *(layer.bias for layer in parameters.layers)))
    per_chain = ARRAYS * np.dtype(dtype).itemsize * (units + parameters.filters.shape[1])
    size = int(max(1, min(n_chains, memory // per_chain)))
    groups = []
    for first in range(0, n_chains, size):
        keys_of_batch = keys[first : first + size]
        missing = size - len(keys_of_batch)  # pad the last group, so that no further program is compiled
        keys_of_batch = jnp.concatenate([keys_of_batch, keys[:missing]]) if missing else keys_of_batch
        groups.append(
            jax.device_get(
                anneal(energy, base.expert, parameters, base_parameters, betas, step_sizes, keys_of_batch, n_more)
            )
        )
    ends = Annealed(*(np.concatenate(parts)[:n_chains] for parts in zip(*groups, strict=True)))
    return ends._replace(positions=ends.positions.astype(given))


@partial(jax.jit, static_argnums=(0, 1))
def find_step_sizes(
    energy: Energy,
    base: Expert,
    parameters: EnergyParameters,
    base_parameters: BaseParameters,
    betas: Array,
    key: Array,
) -> Array:
    """Adapt a step size for every β with separate pilot chains: (K + 1,)."""
    dtype, dimensions = parameters.filters.dtype, parameters.filters.shape[1]
    position = base.draw(key, base_parameters[0], PILOTS, dimensions, dtype) * base_parameters[1]

    def follow(carry: tuple[Array, Array], beta_and_number: Any) -> Any:
        beta, number = beta_and_number
        position, step_size = carry
        target = _path(energy, base, parameters, base_parameters, beta)
        chain = SAMPLER.build(target, step_size)
        state, acceptance, _ = run_chain(chain, jax.random.fold_in(key, number), chain.init(position), 1)
        step_size = SAMPLER.adapted(step_size, acceptance)
        return (state.position, step_size), step_size

    path = jnp.concatenate([jnp.full(WARM_UP, betas[0]), betas])
    first = (position, jnp.asarray(SAMPLER.step_size, dtype) * base_parameters[1])
    return jax.lax.scan(follow, first, (path, jnp.arange(len(path))))[1][WARM_UP:]


@partial(jax.jit, static_argnums=(0, 1, 7))
def anneal(
    energy: Energy,
    base: Expert,
    parameters: EnergyParameters,
    base_parameters: BaseParameters,
    betas: Array,
    step_sizes: Array,
    keys: Array,
    n_more: int = 0,
) -> Annealed:
    """Run one chain for each key along the path, and then for ``n_more`` steps at the model's density."""
    dtype, dimensions = parameters.filters.dtype, parameters.filters.shape[1]
    for_draw, for_steps = split(keys)
    position = (
        jax.vmap(lambda key: base.draw(key, base_parameters[0], 1, dimensions, dtype)[0])(for_draw) * base_parameters[1]
    )

    def follow(carry: Any, entry: Any) -> Any:
        position, log_weights, rejected = carry
        before, beta, step_size, number = entry
        excess = energy.value(parameters, position) - _base_energy(base, position, base_parameters)
        log_weights = log_weights - (beta - before).astype(jnp.float64) * excess
        chain = SAMPLER.build(_path(energy, base, parameters, base_parameters, beta), step_size)
        state, info = chain.kernel(folded(for_steps, number), chain.init(position))
        return (state.position, log_weights, rejected + info.non_finite), None

    # Steps after the path are at its last density, where the weights do not change.
    before = jnp.concatenate([betas[:-1], jnp.full(n_more, betas[-1])])
    after = jnp.concatenate([betas[1:], jnp.full(n_more, betas[-1])])
    sizes = jnp.concatenate([step_sizes[1:], jnp.full(n_more, step_sizes[-1])])
    first = (position, jnp.zeros(len(position), jnp.float64), jnp.zeros(len(position), int))
    (position, log_weights, bad), _ = jax.lax.scan(follow, first, (before, after, sizes, jnp.arange(len(after))))
    return Annealed(position, log_weights, bad)


def log_partition(chains: Annealed, base: BaseDensity) -> LogPartition:
    """Estimate log Z as the log of the mean importance weight times Z₀, with its standard error."""
    log_weights = np.asarray(chains.log_weights)
    largest = log_weights.max()
    weights = np.exp(log_weights - largest)
    mean = weights.mean()
    error = weights.std(ddof=1) / (mean * np.sqrt(len(weights)))
    value = largest + np.log(mean) + base.log_partition
    return LogPartition(float(value), float(error), len(weights), int(np.sum(chains.n_rejected)))


@partial(jax.jit, static_argnums=0)
def _values(energy: Energy, parameters: EnergyParameters, rows: Array) -> Array:
    """Compute the energies of rows."""
    return energy.value(parameters, rows)


def _base_energy(base: Expert, position: Array, base_parameters: BaseParameters) -> Array:
    """Compute E₀ of positions."""
    shape, spread = base_parameters
    return sum_in_double(base.energy(position / spread, shape), axis=1).astype(position.dtype)


def _path(
    energy: Energy, base: Expert, parameters: EnergyParameters, base_parameters: BaseParameters, beta: Array
) -> Any:
    """Return the target (1 − β) E₀ + β E with its gradient."""

    def target(position: Array) -> tuple[Array, Array]:
        def mixed(rows: Array) -> Array:
            return (1 - beta) * _base_energy(base, rows, base_parameters) + beta * energy.value(parameters, rows)

        value, back = jax.vjp(mixed, position)
        return value, back(jnp.ones_like(value))[0]

    return target
