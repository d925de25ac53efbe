"""Contrastive divergence: energies of data are lowered, energies of what the model makes of them are raised.

One update (EBM01 eq. 10) changes the parameters θ by −η ∂/∂θ (⟨E⟩_data − ⟨E⟩_samples), where samples are the ends of
short Markov chains that start at the rows of a mini-batch. Persistent chains go on where they were; with equilibrium
samples or the gradient of the log partition function this is maximum likelihood. Updates run in rounds, each one
compiled program.
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

# ContrastiveDivergenceState of a fit, after each of which callbacks are told; and the most updates in one.
ROUNDS = 100
LONGEST_ROUND = 100
# Most memory that the mini-batches of one round take.
ROUND_BYTES = 64 * 2**20
# The part of all learning (the sum of the rates) at the end over which the filters must have come to rest. With rates
# that fall to nearly nothing this is the second half of the updates; in the last tenth no filter moves, wherever it is.
END = 0.25
# The part of all rounds at the end over which the acceptance is averaged.
LAST_ROUNDS = 0.1


@dataclass(frozen=True)
class Method:
    """What is learned and how; hashable, so that equal methods share compiled programs."""

    energy: Energy
    sampler: Sampler
    n_steps: int
    persistent: bool


class UpdateState(NamedTuple):
    """Where learning is: all that the next update needs."""

    parameters: EnergyParameters
    velocity: EnergyParameters  # of the parameters, as momentum has it
    step_size: Array  # () of the sampler
    chains: Array  # (B, R) positions of persistent chains; (0, R) without them
    n_updates: Array  # ()
    n_rejected: Array  # () proposals so far that had no finite energy
    finite: Array  # () whether all is well; after an update that is not finite, nothing changes any more


class Rates(NamedTuple):
    """Numbers of the update rule."""

    learning: Any  # (U,) η of each update
    momentum: Any  # ()
    decay: Any  # ()


class EnergyBatches(NamedTuple):
    """Mini-batches of one round; one batch only is used for all updates."""

    rows: Any  # (U, B, D) or (1, B, D), as the user gave them
    shares: Any  # (B,) weights of the rows of a batch, with sum one


class RoundReport(NamedTuple):
    """What a round has to say."""

    bound: Any  # () mean log density of the round's rows in whitened space, NaN where it is not known
    contrast: Any  # () mean of ⟨E⟩_samples − ⟨E⟩_data, which becomes zero where both are alike
    acceptance: Any  # () mean probability of acceptance


def begin(method: Method, parameters: EnergyParameters, n_chains: int) -> UpdateState:
    """The updates before the first update."""
    sampler, dtype = method.sampler, parameters.filters.dtype
    step_size = sampler.step_size if isinstance(sampler, MarkovChain) else 0.0
    chains = n_chains if method.persistent and isinstance(sampler, MarkovChain) else 0
    return UpdateState(
        parameters=parameters,
        velocity=jax.tree.map(lambda leaf: jnp.asarray(np.zeros(leaf.shape, leaf.dtype)), parameters),
        step_size=jnp.asarray(np.asarray(step_size, dtype)),
        # Not a number: chains that have not begun start at the data.
        chains=jnp.asarray(np.full((chains, parameters.filters.shape[1]), np.nan, dtype)),
        n_updates=jnp.asarray(np.zeros((), int)),
        n_rejected=jnp.asarray(np.zeros((), int)),
        finite=jnp.asarray(np.ones((), bool)),
    )


def with_chains(updates: UpdateState, n_chains: int) -> UpdateState:
    """A updates with so many persistent chains, if it has any: some are left out, or new ones start at the data."""
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
    """Some updates, one for each mini-batch; ``n`` says how many."""

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
        # EnergyBatches beyond ``n`` are there to keep the shape; they were not learned from and do not count.
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
    """One update from whitened rows (B, R). Returns the updates, ⟨E⟩_samples − ⟨E⟩_data, and the acceptance."""
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
    # The contrast too: data without an energy have no gradient, and would be passed over in silence.
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
    """∂/∂θ of what is minimised, the contrast, acceptance, the next step size and chains, and rejected proposals."""
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
        # In two sums, so that chains that have not moved make no difference at all.
        return mean_energy(parameters, Z, shares) - mean_energy(parameters, samples, of_samples)

    value, gradient = jax.value_and_grad(difference)(parameters)
    # Chains that start at the data know all energies already, and those of ``value`` are then never computed.
    known = isinstance(sampler, MarkovChain) and not method.persistent
    contrast = (shares * (end.energy - start.energy)).sum() if known else -value
    return gradient, contrast, acceptance, step_size, chains, bad


class RoundProgress(NamedTuple):
    """What a watcher sees after each round."""

    iteration: int  # rounds so far, counted from zero
    n_updates: int
    updates: UpdateState
    reports: np.ndarray  # (rounds, 3) what all rounds so far had to say

    @property
    def report(self) -> RoundReport:
        """That of the last round."""
        return RoundReport(*self.reports[-1])


class ContrastiveDivergenceState(NamedTuple):
    """State of the loop after some rounds."""

    updates: UpdateState
    before_end: Array  # filters before the last part of all updates
    reports: np.ndarray  # (rounds, 3)
    n_updates: int = 0
    stopped: bool = False


class EnergyFitResult(NamedTuple):
    """What learning found."""

    updates: UpdateState
    bounds: np.ndarray  # (rounds,) mean log density in whitened space, NaN where it is not known
    contrasts: np.ndarray  # (rounds,)
    acceptances: np.ndarray  # (rounds,)
    drift: float  # how far the filters moved at the end, relative to their size
    outcome: Outcome


def round_length(max_iter: int, batch_bytes: int) -> int:
    """Updates in one round."""
    wanted = min(LONGEST_ROUND, -(-max_iter // ROUNDS))
    return max(1, min(wanted, ROUND_BYTES // max(batch_bytes, 1)))


def learning_rates(first: float, last: float, start: int, n: int, max_iter: int) -> np.ndarray:
    """η of updates ``start`` to ``start + n``, which falls by the same amount in each of ``max_iter`` updates.

    Falling by the same factor instead leaves most updates to small rates: weak components are then still far from
    their place when the rate has become too small to move them.
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
    """Run rounds of updates until ``max_iter``; ``draw(n)`` gives mini-batches, ``rates(start, n)`` their rates."""
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
    # Filters that have exploded would overflow when squared.
    scale = max(float(np.abs(filters).max()), np.finfo(float).tiny)
    size = max(float(np.linalg.norm(filters / scale)), np.finfo(float).tiny)
    drift = float(np.linalg.norm(filters / scale - before / scale)) / size
    bounds, contrasts, acceptances = state.reports.T
    if not bool(updates.finite):
        outcome = Outcome.NON_FINITE
    elif state.stopped:
        outcome = Outcome.STOPPED
    else:
        # Chains that accept nothing, or that move hardly at all and accept everything, make no contrast, and filters
        # rest for the wrong reason.
        last = acceptances[int((1 - LAST_ROUNDS) * len(acceptances)) :].mean()
        settled = not isinstance(method.sampler, MarkovChain) or method.sampler.has_settled(last)
        outcome = Outcome.CONVERGED if drift < tol and settled else Outcome.MAX_ITER
    return EnergyFitResult(jax.device_get(updates), bounds, contrasts, acceptances, drift, outcome)
