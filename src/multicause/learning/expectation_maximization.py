"""The EM loop: pure, compiled steps on immutable records, and a plain loop around them.

Starts are learned side by side in one program: parameters have a leading axis of starts throughout this file.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from multicause.arrays import Array, jit_by_parts, over_starts, sum_in_double
from multicause.engines.base import Blocks, Engine
from multicause.learning.annealing import Annealing
from multicause.learning.convergence import Convergence, Outcome
from multicause.model import Block, Model, Parameters, Statistics

# A cause that explains less than this many rows, summed over all rows, has died.
LEAST_USE = 0.5


class Fit(NamedTuple):
    """What learning found, for the best start; all arrays are on the host."""

    parameters: Parameters
    bound: float  # mean per row, at temperature one
    bounds: np.ndarray  # (n_iter + 1,) mean per row, before each iteration and at the end
    temperatures: np.ndarray  # (n_iter + 1,)
    n_iter: int
    converged: bool
    outcome: Outcome
    statistics: Statistics  # at the end, at temperature one


class Progress(NamedTuple):
    """What a watcher sees after each iteration; arrays have shape (starts,)."""

    iteration: int
    temperature: np.ndarray
    bound: np.ndarray
    parameters: Parameters


def expect_one(model: Model, block: Block, parameters: Parameters, temperature: Array) -> Statistics:
    """E-step for one start: what the M-step needs from the rows of one block."""
    inference = model.posterior.infer(model, parameters, block, temperature)
    return Statistics(
        weight=sum_in_double(block.weights),
        bound=inference.total_bound,
        magnitude=inference.magnitude,
        components=model.update.statistics(model, parameters, inference),
        prior=model.prior.statistics(inference),
        noise=model.noise.statistics(block.summary, block.weights, inference, parameters.noise),
    )


def maximize_one(model: Model, statistics: Statistics, parameters: Parameters) -> Parameters:
    """M-step for one start. What ``learn`` does not name stays as it is."""
    components, prior, noise = parameters
    if "noise" in model.learn:
        noise = model.noise.maximize(noise, statistics.noise, statistics.weight, components.shape[-1])
    if "activity" in model.learn:
        prior = model.prior.maximize(prior, statistics.prior, statistics.weight)
    if "components" in model.learn:
        components = model.update.maximize(model, parameters, statistics.components)
    return Parameters(components, prior, noise)


@jit_by_parts
def expect(model: Model, block: Block, parameters: Parameters, temperature: Array) -> Statistics:
    """E-step of all starts on one block."""
    return over_starts(partial(expect_one, model, block))(parameters, temperature)


@jit_by_parts
def maximize(model: Model, statistics: Statistics, old: Parameters, length: Array) -> tuple[Parameters, Array, Array]:
    """M-step of all starts: steps of the given lengths (0 stays, 1 is full).

    Returns the parameters, which starts have finite ones (the others keep the old), and how far each component
    moved, ΔW_h = ‖W_h − W_h^old‖ / Σ_d |W_hd^old| (MCA08 eq. 38).
    """
    new = jax.vmap(partial(maximize_one, model))(statistics, old)
    finite = jnp.all(jnp.stack([_all_finite(leaf) for leaf in jax.tree.leaves(new)]), axis=0)
    change = jnp.linalg.norm(new.components - old.components, axis=-1)
    change = change / jnp.maximum(jnp.abs(old.components).sum(axis=-1), jnp.finfo(change.dtype).tiny)

    def towards(new: Array, old: Array) -> Array:
        part = length.astype(old.dtype).reshape(length.shape + (1,) * (old.ndim - 1))
        return jnp.where(part < 1, old + part * (new - old), new)

    moved = jax.tree.map(towards, new, old)
    return select(finite & (length > 0), moved, old), finite, jnp.where(finite[:, None], change, 0)


@jit_by_parts
def shake(model: Model, parameters: Parameters, scale: Array, key: Array) -> Parameters:
    """Add Gaussian noise of the given scales (starts,) to the components (ET10 §4.1).

    Non-negative components are reflected rather than clamped at zero, so that noise does not pile up dead weights.
    """
    components = parameters.components
    keys = jax.random.split(key, len(scale))
    draws = jax.vmap(lambda k: jax.random.normal(k, components.shape[1:], components.dtype))(keys)
    noisy = components + scale.astype(components.dtype)[:, None, None] * draws
    return parameters._replace(components=jnp.abs(noisy) if model.combination.nonnegative else noisy)


@jax.jit
def select(which: Array, new: Any, old: Any) -> Any:
    """The new records of some starts and the old ones of the others."""
    return jax.tree.map(lambda a, b: jnp.where(which.reshape(which.shape + (1,) * (a.ndim - 1)), a, b), new, old)


def learn(
    model: Model,
    engine: Engine,
    blocks: Blocks,
    starts: Parameters,
    *,
    annealing: Annealing,
    max_iter: int,
    tol: float,
    key: Array,
    watch: Callable[[Progress], bool] | None = None,
) -> Fit:
    """Run EM from all starts and keep the one with the highest bound.

    ``watch`` is called after every iteration and may end learning by returning True.
    """
    trial, n_starts = starts, len(starts.components)
    outcome = np.full(n_starts, Outcome.MAX_ITER, dtype=object)
    learning, last = np.ones(n_starts, dtype=bool), np.full(n_starts, max_iter)
    cooling = annealing.begin(n_starts)
    convergence = Convergence(n_starts, tol, model.update.monotone, float(jnp.finfo(starts.components.dtype).eps))
    bounds, temperatures = [], []
    step = partial(expect, model)

    def end(which: np.ndarray, why: Outcome, iteration: int) -> None:
        ending = which & learning
        outcome[ending], last[ending] = why, iteration
        learning[ending] = False

    for iteration in range(max_iter):
        statistics = engine.sum(step, blocks, trial, jnp.asarray(cooling.temperature))
        bound = mean_bound(statistics)
        magnitude = np.asarray(statistics.magnitude) / np.asarray(statistics.weight)
        accepted = convergence.judge(bound, magnitude, annealing.cooled(cooling))
        if iteration == 0:
            parameters, sums = trial, statistics
        parameters, sums = select(jnp.asarray(accepted), (trial, statistics), (parameters, sums))
        bounds.append(np.where(accepted, bound, convergence.bound))
        temperatures.append(cooling.temperature)
        end(~np.isfinite(bound), Outcome.NON_FINITE, iteration)
        end(convergence.fell, Outcome.BOUND_FELL, iteration)
        end(convergence.converged, Outcome.CONVERGED, iteration)
        end(annealing.finished(cooling) & ~convergence.falling, Outcome.CONVERGED, iteration)
        if not learning.any():
            break
        length = np.where(learning, convergence.length, 0.0)
        trial, finite, change = maximize(model, sums, parameters, jnp.asarray(length))
        if annealing.component_noise > 0 and "components" in model.learn:
            noise = np.where(learning & (cooling.temperature > annealing.final), annealing.component_noise, 0.0)
            trial = shake(model, trial, jnp.asarray(noise), jax.random.fold_in(key, iteration))
        end(~np.asarray(finite), Outcome.NON_FINITE, iteration)
        cooling = annealing.advance(cooling, np.asarray(change))
        if watch is not None and watch(Progress(iteration, temperatures[-1], bounds[-1], trial)):
            end(learning.copy(), Outcome.STOPPED, iteration + 1)
        if not learning.any():
            break

    # One last E-step at temperature one. Starts that ended kept their accepted parameters, because their steps
    # have length zero; the last step of the others is judged like all before.
    cold = jnp.ones(n_starts)
    final = engine.sum(step, blocks, select(jnp.asarray(learning), trial, parameters), cold)
    if annealing.final == 1:
        worse = learning & (mean_bound(final) < convergence.bound)
        if worse.any():
            learning &= ~worse
            final = engine.sum(step, blocks, select(jnp.asarray(learning), trial, parameters), cold)
    parameters, final_bound = select(jnp.asarray(learning), trial, parameters), mean_bound(final)
    chosen = int(np.argmax(np.where(np.isfinite(final_bound), final_bound, -np.inf)))
    n_iter = int(last[chosen])
    why = Outcome(outcome[chosen])
    parameters, final = jax.tree.map(lambda leaf: leaf[chosen], jax.device_get((parameters, final)))
    use = final.prior["active"] / final.weight * blocks.n_rows
    converged = why == Outcome.CONVERGED
    if use.min() < LEAST_USE and why in (Outcome.CONVERGED, Outcome.MAX_ITER):
        why = Outcome.CAUSE_DIED
    return Fit(
        parameters=parameters,
        bound=float(final_bound[chosen]),
        bounds=np.append(np.array([b[chosen] for b in bounds[:n_iter]]), final_bound[chosen]),
        temperatures=np.append(np.array([t[chosen] for t in temperatures[:n_iter]]), 1.0),
        n_iter=n_iter,
        converged=bool(converged),
        outcome=why,
        statistics=final,
    )


def mean_bound(statistics: Statistics) -> np.ndarray:
    """Bound per row of each start: (starts,)."""
    return np.asarray(statistics.bound) / np.asarray(statistics.weight)


def _all_finite(leaf: Array) -> Array:
    return jnp.all(jnp.isfinite(leaf), axis=tuple(range(1, leaf.ndim)))
