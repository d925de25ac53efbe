"""Contrastive divergence: lower the energy of data and raise the energy of samples from short Markov chains.

One update (EBM01 eq. 10) changes the parameters θ by −η ∂/∂θ (⟨E⟩_data − ⟨E⟩_samples), where the samples are the ends
of short Markov chains that start at the rows of a mini-batch. Persistent chains continue from their last positions;
with equilibrium samples or the gradient of the log partition function this is maximum likelihood. Updates run in
rounds; each round is one call of a compiled program. :mod:`multicause.solvers.energy_loop` has the loop over rounds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from multicause.arrays import Array, compiled, matmul
from multicause.energies.network import Energy, EnergyParameters, EnergyTarget, has_decay
from multicause.preparation.whitening import whiten
from multicause.samplers.base import Draws, ModelExpectation, Sampler, draw_steps, run_chain
from multicause.solvers.optimizers import Momentum, Optimizer, learning_rate_at

# Largest number of random numbers that are drawn before the updates of a round: 4 MiB in single precision.
MOST_DRAWN_AT_ONCE = 2**20


@dataclass(frozen=True)
class Method:
    """Energy, sampler and optimizer of contrastive divergence; hashable, so that equal ones share compiled programs."""

    energy: Energy
    sampler: Sampler
    n_steps: int = 1
    persistent: bool = False
    optimizer: Optimizer = field(default_factory=Momentum)
    schedule: str = "linear"

    @property
    def has_chains(self) -> bool:
        """Whether samples are the ends of Markov chains."""
        return self.sampler.expectation is ModelExpectation.CHAINS


class UpdateState(NamedTuple):
    """Parameters, state of the optimizer and chains, which the next update needs."""

    parameters: EnergyParameters
    optimizer: tuple[Array, ...]  # arrays of the optimizer's state, such as velocities
    step_size: Array  # () step size of the sampler
    chains: Any  # (B, R) positions of persistent chains; (0, R) without them
    n_updates: Array  # ()
    n_rejected: Array  # () proposals so far that were rejected because their energy was not finite
    finite: Any  # () False once an update was not finite; the parameters then stay as they were


class Rates(NamedTuple):
    """Learning rates and weight decay of a fit."""

    first: Any  # () learning rate of the first update
    last: Any  # () learning rate of update ``max_iter``, and of all later ones
    max_iter: Any  # ()
    decay: Any  # () weight decay


class EnergyBatches(NamedTuple):
    """Mini-batches of one round; if there is only one batch, all updates use it."""

    rows: Any  # (U, B, D) or (1, B, D), not whitened
    shares: Any  # (B,) weights of the rows of a batch; they sum to one


class RoundReport(NamedTuple):
    """Results of one round of updates: mean log density, contrast and acceptance rate."""

    bound: Any  # () mean log density of the round's rows in whitened space, NaN if unknown
    contrast: Any  # () mean of ⟨E⟩_samples − ⟨E⟩_data, which is zero where both distributions agree
    acceptance: Any  # () mean acceptance rate
    learned: Any  # () part of all learning that is done, by the sum of the learning rates


def key_data(random: np.random.RandomState) -> np.ndarray:
    """Draw the raw data (2,) of a JAX key, which a program wraps; ``arrays.key_from`` returns the same key."""
    return np.array([0, random.randint(np.iinfo(np.int32).max)], dtype=np.uint32)


@partial(compiled, static=(0, 1, 2))
def begin(
    method: Method, sizes: tuple[int, ...], n_chains: int, filters: Array, background: Array, seed: Array
) -> UpdateState:
    """Create the state before the first update, with further layers of the given sizes."""
    key = jax.random.wrap_key_data(seed)
    return first_state(method, method.energy.initial(filters, sizes, background, key), n_chains)


def first_state(method: Method, parameters: EnergyParameters, n_chains: int) -> UpdateState:
    """Create the state before the first update from initial parameters."""
    dtype, dimensions = parameters.filters.dtype, parameters.filters.shape[1]
    n_chains = n_chains if method.persistent and method.has_chains else 0
    return UpdateState(
        parameters=parameters,
        optimizer=tuple(jax.tree.leaves(_transformation(method, jnp.ones(()), jnp.zeros(())).init(parameters))),
        step_size=jnp.asarray(method.sampler.step_size, dtype),
        # NaN marks chains that have not begun; they start at the data.
        chains=jnp.full((n_chains, dimensions), jnp.nan, dtype),
        n_updates=jnp.zeros((), int),
        n_rejected=jnp.zeros((), int),
        finite=jnp.ones((), bool),
    )


def with_chains(updates: UpdateState, n_chains: int) -> UpdateState:
    """Return the state with ``n_chains`` persistent chains, if it has any.

    Surplus chains are dropped; new ones start at the data.
    """
    chains = np.asarray(updates.chains)[:n_chains]
    if not len(chains):
        return updates
    new = np.full((n_chains - len(chains), chains.shape[1]), np.nan, chains.dtype)
    return updates._replace(chains=np.concatenate([chains, new]))


@compiled
def learn_round(
    method: Method,
    updates: UpdateState,
    batches: EnergyBatches,
    whitening: tuple[Array, Array],
    rates: Rates,
    n: Array,
    seed: Array,
) -> tuple[UpdateState, RoundReport]:
    """Run ``n`` updates, one for each mini-batch."""
    key = jax.random.wrap_key_data(seed)
    n_batches, size, _ = batches.rows.shape
    Z = whiten(batches.rows.reshape(n_batches * size, -1), *whitening).reshape(n_batches, size, -1)
    draws = _draws_of_steps(method, updates, key, Z)

    def one(number: Array, carry: tuple[UpdateState, Array, Array]) -> tuple[UpdateState, Array, Array]:
        updates, contrast, acceptance = carry
        rows, own_draws = jax.tree.map(lambda each: each[jnp.minimum(number, n_batches - 1)], (Z, draws))
        own_key = jax.random.fold_in(key, updates.n_updates)
        found = update(method, updates, rows, batches.shares, rates, own_key, own_draws)
        updates, new_contrast, new_acceptance = found
        return updates, contrast + new_contrast / n, acceptance + new_acceptance / n

    zero = jnp.zeros((), Z.dtype)
    updates, contrast, acceptance = jax.lax.fori_loop(0, n, one, (updates, zero, zero))
    bound = jnp.full((), jnp.nan, jnp.float64)
    if method.energy.has_density(updates.parameters):
        energies = method.energy.value(updates.parameters, Z.reshape(n_batches * size, -1)).reshape(n_batches, size)
        # Batches beyond ``n`` only keep the shape; they were not learned from and are not counted.
        counts = (jnp.arange(n_batches) < n)[:, None] * batches.shares
        mean = (counts * energies).sum(dtype=jnp.float64) / counts.sum(dtype=jnp.float64)
        bound = -mean - method.energy.log_partition(updates.parameters).astype(jnp.float64)
    return updates, RoundReport(bound, contrast, acceptance, _learned(method.schedule, rates, updates.n_updates))


def _draws_of_steps(method: Method, updates: UpdateState, key: Array, Z: Array) -> Draws | None:
    """Return the random numbers of one step of chains for each batch, or None if each update should draw its own.

    The numbers are the same. Drawing few of them at a time takes longer than the steps of small models. A single batch
    may serve many updates, which need different numbers.
    """
    if not method.has_chains or method.n_steps > 1 or len(Z) == 1 or Z.size > MOST_DRAWN_AT_ONCE:
        return None
    keys = jax.vmap(partial(jax.random.fold_in, key))(updates.n_updates + jnp.arange(len(Z)))
    frame = jax.eval_shape(method.energy.frame, updates.parameters)
    shape = Z.shape[1:] if frame is None else (Z.shape[1], frame.basis.shape[1])
    return draw_steps(keys, shape, Z.dtype)


def update(
    method: Method,
    updates: UpdateState,
    Z: Array,
    shares: Array,
    rates: Rates,
    key: Array,
    draws: Draws | None = None,
) -> tuple[UpdateState, Array, Array]:
    """Run one update from whitened rows (B, R), with random numbers from the key or those that were drawn before.

    Returns the new state, ⟨E⟩_samples − ⟨E⟩_data, and the acceptance rate.
    """
    import optax

    old = updates.parameters
    gradient, contrast, acceptance, step_size, chains, bad = gradients(method, updates, Z, shares, key, draws)
    progress = jnp.minimum(updates.n_updates / jnp.maximum(rates.max_iter - 1, 1), 1)
    rate = learning_rate_at(method.schedule, rates.first, rates.last, progress).astype(Z.dtype)
    transformation = _transformation(method, rate, jnp.asarray(rates.decay, Z.dtype))
    structure = jax.tree.structure(jax.eval_shape(transformation.init, old))
    gradient = gradient._replace(background=jnp.zeros_like(gradient.background))
    changes, state = transformation.update(gradient, jax.tree.unflatten(structure, updates.optimizer), old)
    new = method.energy.constrain(optax.apply_updates(old, changes))._replace(background=old.background)
    # The contrast is checked too: rows without a finite energy have no gradient, and would be ignored silently.
    finite = updates.finite & jnp.stack([jnp.isfinite(leaf).all() for leaf in jax.tree.leaves((new, contrast))]).all()
    kept, moving = jax.tree.map(
        lambda after, before: jnp.where(finite, after, before).astype(before.dtype),
        (new, tuple(jax.tree.leaves(state))),
        (old, updates.optimizer),
    )
    n_updates, n_rejected = updates.n_updates + finite, updates.n_rejected + bad * updates.finite
    return UpdateState(kept, moving, step_size, chains, n_updates, n_rejected, finite), contrast, acceptance


def gradients(
    method: Method, updates: UpdateState, Z: Array, shares: Array, key: Array, draws: Draws | None = None
) -> tuple[EnergyParameters, Array, Array, Array, Array, Array]:
    """Compute the gradient of the objective, the contrast and the next state of the sampler.

    Returns ∂/∂θ of the objective, the contrast, the acceptance rate, the next step size, the chains and the number of
    rejected non-finite proposals.
    """
    energy, sampler, parameters = method.energy, method.sampler, updates.parameters
    nothing, none = jnp.zeros((), Z.dtype), jnp.zeros((), int)
    frame = energy.frame(parameters)

    def mean_energy(parameters: EnergyParameters, rows: Array, shares: Array) -> Array:
        return (shares * energy.value(parameters, rows, frame)).sum()

    if sampler.expectation is ModelExpectation.GRADIENT:
        gradient = jax.grad(lambda p: mean_energy(p, Z, shares) + energy.log_partition(p))(parameters)
        return gradient, nothing, nothing, updates.step_size, updates.chains, none

    of_samples, step_size, chains, acceptance, bad = shares, updates.step_size, updates.chains, nothing, none
    contrast = None
    if method.persistent or not method.has_chains:
        of_samples = jnp.full_like(shares, 1 / len(Z))
    if method.has_chains:
        position = jnp.where(jnp.isnan(chains), Z, chains) if method.persistent else Z
        # Chains have the same distribution in every orthonormal basis.
        position = position if frame is None else matmul(position, frame.basis)
        chain = sampler.build(EnergyTarget(energy, parameters, frame), step_size)
        start = chain.init(position)
        end, acceptance, bad = run_chain(chain, key, start, method.n_steps, draws)
        samples = end.position if frame is None else matmul(end.position, frame.basis.T)
        step_size = sampler.adapted(step_size, acceptance)
        if method.persistent:
            chains = samples
        elif hasattr(end, "energy"):
            # Chains that start at the data have computed all energies already.
            contrast = (shares * (end.energy - start.energy)).sum()
    else:
        samples = energy.draw(key, parameters, len(Z))

    def difference(parameters: EnergyParameters) -> Array:
        # Two separate sums, so that chains that have not moved give exactly zero.
        return mean_energy(parameters, Z, shares) - mean_energy(parameters, samples, of_samples)

    value, gradient = jax.value_and_grad(difference)(parameters)
    return gradient, -value if contrast is None else contrast, acceptance, step_size, chains, bad


def _learned(schedule: str, rates: Rates, n_updates: Array) -> Array:
    """Return the part of the sum of all learning rates that some updates have had."""
    progress = jnp.linspace(0, 1, 1001)
    every = jnp.broadcast_to(learning_rate_at(schedule, rates.first, rates.last, progress), progress.shape)
    return jnp.where(progress * rates.max_iter <= n_updates, every, 0).sum() / every.sum()


def _transformation(method: Method, rate: Array, decay: Array) -> Any:
    """Return the optimizer of all parameters, with weight decay of filters and weights."""
    import optax

    return optax.chain(optax.add_decayed_weights(decay, mask=has_decay), method.optimizer.transformation(rate))
