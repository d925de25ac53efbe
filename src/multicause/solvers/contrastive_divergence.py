"""Contrastive divergence: lower the energy of data and raise the energy of samples from short Markov chains.

One update (EBM01 eq. 10) changes the parameters θ by −η ∂/∂θ (⟨E⟩_data − ⟨E⟩_samples), where the samples are the ends
of short Markov chains that start at the rows of a mini-batch. Persistent chains continue from their last positions;
with equilibrium samples or the gradient of the log partition function this is maximum likelihood. Updates run in
rounds; each round is one call of a compiled program.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from multicause.arrays import Array, matmul
from multicause.energies.network import Energy, EnergyParameters
from multicause.outcomes import Outcome
from multicause.persistence.journal import Journal
from multicause.preparation.whitening import whiten
from multicause.samplers.base import MarkovChain, Sampler, run_chain
from multicause.samplers.closed_form import Exact

# Number of rounds of a fit, after each of which callbacks run, and the largest number of updates in one round.
ROUNDS = 100
LONGEST_ROUND = 100
# Largest memory of the mini-batches of one round.
ROUND_BYTES = 64 * 2**20
# Convergence is judged by the drift of the filters over the last part of all learning, measured by the sum of the
# learning rates. With rates that fall to nearly zero this part is the second half of the updates; in the last tenth of
# the updates filters hardly move, wherever they are.
END = 0.25
# Fraction of the rounds, at the end, over which the acceptance rate is averaged.
LAST_ROUNDS = 0.1


@dataclass(frozen=True)
class Method:
    """Energy, sampler and settings of contrastive divergence; hashable, so that equal ones share compiled programs."""

    energy: Energy
    sampler: Sampler
    n_steps: int
    persistent: bool


class UpdateState(NamedTuple):
    """Parameters, momentum and chains: the state that the next update needs."""

    parameters: EnergyParameters
    velocity: EnergyParameters  # velocity of the parameters, for momentum
    step_size: Array  # () step size of the sampler
    chains: Array  # (B, R) positions of persistent chains; (0, R) without them
    n_updates: Array  # ()
    n_rejected: Array  # () proposals so far that were rejected because their energy was not finite
    finite: Array  # () False once an update was not finite; the parameters then stay as they were


class Rates(NamedTuple):
    """Learning rates, momentum and weight decay of some updates."""

    learning: Any  # (U,) η of each update
    momentum: Any  # ()
    decay: Any  # ()


class EnergyBatches(NamedTuple):
    """Mini-batches of one round; if there is only one batch, all updates use it."""

    rows: Any  # (U, B, D) or (1, B, D), not whitened
    shares: Any  # (B,) weights of the rows of a batch; they sum to one


class RoundReport(NamedTuple):
    """Means of one round of updates: log density, contrast and acceptance rate."""

    bound: Any  # () mean log density of the round's rows in whitened space, NaN if unknown
    contrast: Any  # () mean of ⟨E⟩_samples − ⟨E⟩_data, which is zero where both distributions agree
    acceptance: Any  # () mean acceptance rate


def begin(method: Method, parameters: EnergyParameters, n_chains: int) -> UpdateState:
    """Create the state before the first update."""
    sampler, dtype = method.sampler, parameters.filters.dtype
    step_size = sampler.step_size if isinstance(sampler, MarkovChain) else 0.0
    chains = n_chains if method.persistent and isinstance(sampler, MarkovChain) else 0
    return UpdateState(
        parameters=parameters,
        velocity=jax.tree.map(lambda leaf: jnp.asarray(np.zeros(leaf.shape, leaf.dtype)), parameters),
        step_size=jnp.asarray(np.asarray(step_size, dtype)),
        # NaN marks chains that have not begun; they start at the data.
        chains=jnp.asarray(np.full((chains, parameters.filters.shape[1]), np.nan, dtype)),
        n_updates=jnp.asarray(np.zeros((), int)),
        n_rejected=jnp.asarray(np.zeros((), int)),
        finite=jnp.asarray(np.ones((), bool)),
    )


def with_chains(updates: UpdateState, n_chains: int) -> UpdateState:
    """Return the state with ``n_chains`` persistent chains, if it has any.

    Surplus chains are dropped; new ones start at the data.
    """
    chains = np.asarray(updates.chains)[:n_chains]
    if not len(chains):
        return updates
    new = np.full((n_chains - len(chains), chains.shape[1]), np.nan, chains.dtype)
    return updates._replace(chains=jnp.asarray(np.concatenate([chains, new])))


@partial(jax.jit, static_argnums=0)
def learn_round(
    method: Method,
    updates: UpdateState,
    batches: EnergyBatches,
    whitening: tuple[Array, Array],
    rates: Rates,
    n: Array,
    key: Array,
) -> tuple[UpdateState, RoundReport]:
    """Run ``n`` updates, one for each mini-batch."""

    def one(number: Array, carry: tuple[UpdateState, Array, Array]) -> tuple[UpdateState, Array, Array]:
        updates, contrast, acceptance = carry
        Z = whiten(batches.rows[jnp.minimum(number, len(batches.rows) - 1)], *whitening)
        rate = rates.learning[number]
        own = jax.random.fold_in(key, updates.n_updates)
        updates, new_contrast, new_acceptance = update(
            method, updates, Z, batches.shares, rate, rates.momentum, rates.decay, own
        )
        return updates, contrast + new_contrast / n, acceptance + new_acceptance / n

    zero = jnp.zeros((), batches.rows.dtype)
    updates, contrast, acceptance = jax.lax.fori_loop(0, n, one, (updates, zero, zero))
    bound = jnp.full((), jnp.nan, jnp.float64)
    if method.energy.has_density(updates.parameters):
        rows = batches.rows.reshape(-1, batches.rows.shape[-1])
        energies = method.energy.value(updates.parameters, whiten(rows, *whitening)).reshape(len(batches.rows), -1)
        # Batches beyond ``n`` only keep the shape; they were not learned from and are not counted.
        counts = (jnp.arange(len(batches.rows)) < n)[:, None] * batches.shares
        mean = (counts * energies).sum(dtype=jnp.float64) / counts.sum(dtype=jnp.float64)
        bound = -mean - method.energy.log_partition(updates.parameters).astype(jnp.float64)
    return updates, RoundReport(bound, contrast, acceptance)


def update(
    method: Method,
    updates: UpdateState,
    Z: Array,
    shares: Array,
    rate: Array,
    momentum: Array,
    decay: Array,
    key: Array,
) -> tuple[UpdateState, Array, Array]:
    """Run one update from whitened rows (B, R).

    Returns the new state, ⟨E⟩_samples − ⟨E⟩_data, and the acceptance rate.
    """
    energy, old = method.energy, updates.parameters
    gradient, contrast, acceptance, step_size, chains, bad = gradients(method, updates, Z, shares, key)
    gradient = gradient._replace(
        filters=gradient.filters + decay * old.filters,
        layers=tuple(
            change._replace(weights=change.weights + decay * layer.weights)
            for change, layer in zip(gradient.layers, old.layers, strict=True)
        ),
        background=jnp.zeros_like(gradient.background),
    )
    velocity = jax.tree.map(lambda v, g: momentum * v - rate * g, updates.velocity, gradient)
    new = energy.constrain(jax.tree.map(jnp.add, old, velocity))
    # The contrast is checked too: rows without a finite energy have no gradient, and would be ignored silently.
    finite = updates.finite & jnp.stack([jnp.isfinite(leaf).all() for leaf in jax.tree.leaves((new, contrast))]).all()
    kept, moving = jax.tree.map(
        lambda after, before: jnp.where(finite, after, before), (new, velocity), (old, updates.velocity)
    )
    after = UpdateState(
        kept, moving, step_size, chains, updates.n_updates + finite, updates.n_rejected + bad * updates.finite, finite
    )
    return after, contrast, acceptance


def gradients(
    method: Method, updates: UpdateState, Z: Array, shares: Array, key: Array
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

    if isinstance(sampler, Exact):
        gradient = jax.grad(lambda p: mean_energy(p, Z, shares) + energy.log_partition(p))(parameters)
        return gradient, nothing, nothing, updates.step_size, updates.chains, none

    equal = jnp.full_like(shares, 1 / len(Z))
    of_samples, step_size, chains, acceptance, bad = equal, updates.step_size, updates.chains, nothing, none
    if isinstance(sampler, MarkovChain):
        position = jnp.where(jnp.isnan(chains), Z, chains) if method.persistent else Z
        # Chains have the same distribution in every orthonormal basis.
        position = position if frame is None else matmul(position, frame.basis)
        target = partial(energy.in_frame, parameters, frame)
        start = sampler.init(position, target)
        end, acceptance, bad = run_chain(sampler, key, start, step_size, target, method.n_steps)
        samples = end.position if frame is None else matmul(end.position, frame.basis.T)
        step_size = sampler.adapted(step_size, acceptance)
        if method.persistent:
            chains = samples
        else:
            of_samples = shares
    else:
        samples = energy.draw(key, parameters, len(Z))

    def difference(parameters: EnergyParameters) -> Array:
        # Two separate sums, so that chains that have not moved give exactly zero.
        return mean_energy(parameters, Z, shares) - mean_energy(parameters, samples, of_samples)

    value, gradient = jax.value_and_grad(difference)(parameters)
    # Chains that start at the data have computed all energies already; ``value`` is then unused and never computed.
    known = isinstance(sampler, MarkovChain) and not method.persistent
    contrast = (shares * (end.energy - start.energy)).sum() if known else -value
    return gradient, contrast, acceptance, step_size, chains, bad


class RoundProgress(NamedTuple):
    """Progress of learning after a round, as passed to ``watch``."""

    iteration: int  # rounds so far, counted from zero
    n_updates: int
    updates: UpdateState
    reports: np.ndarray  # (rounds, 3) reports of all rounds so far

    @property
    def report(self) -> RoundReport:
        """Return the report of the last round."""
        return RoundReport(*self.reports[-1])


class ContrastiveDivergenceState(NamedTuple):
    """State of the loop after some rounds."""

    updates: UpdateState
    before_end: Array  # filters at the beginning of the last part of all updates
    reports: np.ndarray  # (rounds, 3)
    n_updates: int = 0
    stopped: bool = False


class EnergyFitResult(NamedTuple):
    """Result of learning an energy-based model."""

    updates: UpdateState
    bounds: np.ndarray  # (rounds,) mean log density in whitened space, NaN if unknown
    contrasts: np.ndarray  # (rounds,)
    acceptances: np.ndarray  # (rounds,)
    drift: float  # how far the filters moved in the last part, relative to their norm
    outcome: Outcome


def round_length(max_iter: int, batch_bytes: int) -> int:
    """Return the number of updates in one round."""
    wanted = min(LONGEST_ROUND, -(-max_iter // ROUNDS))
    return max(1, min(wanted, ROUND_BYTES // max(batch_bytes, 1)))


def learning_rates(first: float, last: float, start: int, n: int, max_iter: int) -> np.ndarray:
    """Return η of updates ``start`` to ``start + n``, falling linearly from ``first`` to ``last`` over ``max_iter``
    updates.

    A geometric decay would leave most updates to small rates: weak components are then still far from their place when
    the rate has become too small to move them.
    """
    progress = np.minimum(np.arange(start, start + n) / max(max_iter - 1, 1), 1)
    return first + (last - first) * progress


def learn(
    method: Method,
    updates: UpdateState,
    draw: Callable[[int], EnergyBatches],
    whitening: tuple[Array, Array],
    *,
    max_iter: int,
    length: int,
    rates: Callable[[int, int], Rates],
    tol: float,
    key: Array,
    watch: Callable[[RoundProgress], bool],
    journal: Journal | None = None,
) -> EnergyFitResult:
    """Run rounds of updates until ``max_iter``; ``draw(n)`` returns mini-batches, ``rates(start, n)`` their learning
    rates.
    """
    learned = np.cumsum(np.asarray(rates(0, max_iter).learning, dtype=float))
    end_begins = int(np.searchsorted(learned, (1 - END) * learned[-1]))

    def step(state: ContrastiveDivergenceState) -> ContrastiveDivergenceState:
        done, n = state.n_updates, min(length, max_iter - state.n_updates)
        updates, report = learn_round(
            method, state.updates, draw(length), whitening, rates(done, length), np.asarray(n), key
        )
        before_end = updates.parameters.filters if done < end_begins else state.before_end
        reports = np.vstack([state.reports, np.array(jax.device_get(report), dtype=float)])
        return ContrastiveDivergenceState(updates, before_end, reports, done + n)

    with (journal or Journal()).loop(
        ContrastiveDivergenceState,
        lambda: ContrastiveDivergenceState(updates, updates.parameters.filters, np.empty((0, 3))),
    ) as loop:
        while loop.state.n_updates < max_iter and bool(loop.state.updates.finite) and not loop.state.stopped:
            loop.state = state = step(loop.state)
            if not bool(state.updates.finite):
                continue
            if watch(RoundProgress(len(state.reports) - 1, state.n_updates, state.updates, state.reports)):
                loop.state = state._replace(stopped=True)
        state = loop.state
    updates = state.updates
    filters, before = np.asarray(updates.parameters.filters, dtype=float), np.asarray(state.before_end, dtype=float)
    # Filters that have diverged would overflow when squared.
    scale = max(float(np.abs(filters).max()), np.finfo(float).tiny)
    size = max(float(np.linalg.norm(filters / scale)), np.finfo(float).tiny)
    drift = float(np.linalg.norm(filters / scale - before / scale)) / size
    bounds, contrasts, acceptances = state.reports.T
    if not bool(updates.finite):
        outcome = Outcome.NON_FINITE
    elif state.stopped:
        outcome = Outcome.STOPPED
    else:
        # Chains that accept nothing, or that hardly move and accept everything, have no contrast; the filters then stop
        # moving although nothing has converged.
        last = acceptances[int((1 - LAST_ROUNDS) * len(acceptances)) :].mean()
        settled = not isinstance(method.sampler, MarkovChain) or method.sampler.has_settled(last)
        outcome = Outcome.CONVERGED if drift < tol and settled else Outcome.MAX_ITER
    return EnergyFitResult(jax.device_get(updates), bounds, contrasts, acceptances, drift, outcome)
