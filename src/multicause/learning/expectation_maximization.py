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
from scipy.spatial.distance import pdist

from multicause.arrays import Array, jit_by_parts, select
from multicause.engines.base import Blocks, Engine
from multicause.learning.annealing import Annealing
from multicause.learning.convergence import Convergence, Outcome, at_rest, rested
from multicause.learning.expectation import DataCut
from multicause.model import Model, Parameters, Statistics

# A cause that explains less than this many rows, summed over all rows, has died.
LEAST_USE = 0.5
# Components that differ by less than this part of the largest weight are one and the same.
SAME = 1e-6
# Ends of which a dead cause is the more important news; ``converged`` tells them apart.
MAY_HAVE_DIED = (Outcome.CONVERGED, Outcome.MAX_ITER)


class Trials(NamedTuple):
    """What learning found from every start; arrays have a leading axis of starts."""

    parameters: Parameters
    statistics: Statistics  # at temperature one
    bound: np.ndarray  # (starts,) mean per row, at temperature one
    bounds: np.ndarray  # (n_rounds + 1, starts) mean per row, before each iteration and at the end
    temperatures: np.ndarray  # (n_rounds + 1, starts)
    outcome: np.ndarray  # (starts,)
    last: np.ndarray  # (starts,) iterations after which each start ended
    n_rounds: int


class Fit(NamedTuple):
    """What learning found, for the best start; all arrays are on the host."""

    parameters: Parameters
    bound: float  # mean per row, at temperature one
    bounds: np.ndarray  # (n_iter + 1,) mean per row, before each iteration and at the end
    temperatures: np.ndarray  # (n_iter + 1,)
    n_iter: int
    n_rounds: int  # iterations that were run, for whichever start
    converged: bool
    outcome: Outcome
    statistics: Statistics  # at the end, at temperature one


class Progress(NamedTuple):
    """What a watcher sees after each iteration; arrays have shape (starts,)."""

    iteration: int  # counted from zero
    temperature: np.ndarray
    bound: np.ndarray
    parameters: Parameters


def maximize_one(
    model: Model, statistics: Statistics, parameters: Parameters, max_active: int | None = None
) -> Parameters:
    """M-step for one start. What ``learn`` does not name stays as it is.

    ``max_active`` says that rows with more active causes were left out.
    """
    components, prior, noise, posterior = parameters
    if "components" in model.learn:
        components = model.update.maximize(model, parameters, statistics.components)
    if "noise" in model.learn:
        noise = model.noise.maximize_around(noise, statistics.noise, statistics.weight, components)
    if "activity" in model.learn:
        prior = model.prior.maximize(prior, statistics.prior, statistics.weight, max_active)
        between = Parameters(components, prior, noise, posterior)
        posterior = model.posterior.maximize(model, between, statistics.posterior, statistics.weight)
    return Parameters(components, prior, noise, posterior)


@partial(jax.jit, static_argnums=(0, 4))
def maximize(
    model: Model, statistics: Statistics, old: Parameters, length: Array, max_active: int | None = None
) -> tuple[Parameters, Array, Array]:
    """M-step of all starts: steps of the given lengths (0 stays, 1 is full).

    Returns the parameters, which starts have finite ones (the others keep the old), and how far each component
    moved.
    """
    new = jax.vmap(partial(maximize_one, model, max_active=max_active))(statistics, old)
    finite, change = jax.vmap(all_finite)(new), change_of(new, old)

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


def learn(model: Model, engine: Engine, blocks: Blocks, starts: Parameters, **settings: Any) -> Fit:
    """Run EM from all starts (see :func:`learn_all`) and keep the one with the highest bound."""
    return best_of(learn_all(model, engine, blocks, starts, **settings), blocks)


def learn_all(
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
) -> Trials:
    """Run EM from all starts, side by side.

    ``watch`` is called after every iteration and may end learning by returning True.
    """
    trial, n_starts = starts, len(starts.components)
    outcome = np.full(n_starts, Outcome.MAX_ITER, dtype=object)
    learning, last = np.ones(n_starts, dtype=bool), np.full(n_starts, max_iter)
    cooling, cut = annealing.begin(n_starts), DataCut(model, n_starts)
    cut.check(starts, blocks)
    monotone = model.update.is_monotone(model.combination) and model.posterior.monotone
    convergence = Convergence(n_starts, tol, monotone, float(jnp.finfo(starts.components.dtype).eps))
    quiet = np.zeros(n_starts, dtype=int)
    bounds: list[np.ndarray] = []
    temperatures: list[np.ndarray] = []

    def end(which: np.ndarray, why: Outcome, iteration: int) -> None:
        ending = which & learning
        outcome[ending], last[ending] = why, iteration
        learning[ending] = False

    # The last round only judges the step of the round before.
    for iteration in range(max_iter + 1):
        progress = annealing.progress(cooling)
        cut.advance(progress, trial)
        statistics = cut.expect(engine, blocks, trial, jnp.asarray(cooling.temperature))
        bound, objective, magnitude = per_row(statistics, "bound", "free_energy", "magnitude")
        objective = objective - cut.log_mass(trial)
        cooled = annealing.cooled(cooling) & cut.complete(progress)
        accepted = convergence.judge(objective, magnitude, cooled & model.posterior.climbs)
        if iteration == 0:
            parameters, sums = trial, statistics
        parameters, sums = select(jnp.asarray(accepted), (trial, statistics), (parameters, sums))
        bounds.append(np.where(accepted | (iteration == 0), bound, bounds[-1] if bounds else bound))
        temperatures.append(cooling.temperature)
        end(~np.isfinite(objective), Outcome.NON_FINITE, max(iteration - 1, 0))
        end(convergence.fell, Outcome.BOUND_FELL, iteration)
        end(convergence.converged, Outcome.CONVERGED, iteration)
        end(annealing.finished(cooling) & ~convergence.falling, Outcome.CONVERGED, iteration)
        end(rested(quiet), Outcome.CONVERGED, iteration)
        if iteration > 0 and watch is not None:
            stop = watch(Progress(iteration - 1, temperatures[-1], bounds[-1], parameters))
            end(learning & stop, Outcome.STOPPED, iteration)
        if iteration == max_iter or not learning.any():
            break
        length = np.where(learning, convergence.length, 0.0)
        trial, finite, change = _maximize_all(model, cut, sums, parameters, jnp.asarray(length))
        if annealing.component_noise > 0 and "components" in model.learn:
            noise = np.where(learning & (cooling.temperature > annealing.final), annealing.component_noise, 0.0)
            trial = shake(model, trial, jnp.asarray(noise), jax.random.fold_in(key, iteration))
        end(~np.asarray(finite), Outcome.NON_FINITE, iteration)
        if not model.posterior.climbs and tol > 0:
            quiet = at_rest(quiet, np.asarray(change), cooled)
        cooling = annealing.advance(cooling, np.asarray(change))

    if (temperatures[-1] != 1).any():
        sums = cut.expect(engine, blocks, parameters, jnp.ones(n_starts))
    (final_bound,) = per_row(sums, "bound")
    return Trials(
        parameters, sums, final_bound, np.array(bounds), np.array(temperatures), outcome, last, n_rounds=iteration
    )


def _maximize_all(
    model: Model, cut: DataCut, sums: Statistics, parameters: Parameters, length: Array
) -> tuple[Parameters, Array, Array]:
    """M-step of all starts, in which activities allow for rows that were left out."""
    whole = None if cut.cut.all() else maximize(model, sums, parameters, length)
    if not cut.cut.any():
        assert whole is not None
        return whole
    corrected = maximize(model, sums, parameters, length, model.posterior.max_active)
    return corrected if whole is None else select(jnp.asarray(cut.cut), corrected, whole)


def best_of(trials: Trials, blocks: Blocks) -> Fit:
    """The start with the highest finite bound."""
    chosen = int(np.argmax(np.where(np.isfinite(trials.bound), trials.bound, -np.inf)))
    n_iter, why = int(trials.last[chosen]), Outcome(trials.outcome[chosen])
    parameters, sums = jax.tree.map(lambda leaf: leaf[chosen], jax.device_get((trials.parameters, trials.statistics)))
    return Fit(
        parameters=parameters,
        bound=float(trials.bound[chosen]),
        bounds=np.array([*trials.bounds[:n_iter, chosen], trials.bound[chosen]]),
        temperatures=np.array([*trials.temperatures[:n_iter, chosen], 1.0]),
        n_iter=n_iter,
        n_rounds=trials.n_rounds,
        converged=why == Outcome.CONVERGED,
        outcome=Outcome.CAUSE_DIED if why in MAY_HAVE_DIED and has_died(parameters, sums, blocks) else why,
        statistics=sums,
    )


def joined(first: Fit, then: Fit) -> Fit:
    """The second fit, with the history of the first before its own."""
    return then._replace(
        bounds=np.concatenate([first.bounds, then.bounds[1:]]),
        temperatures=np.concatenate([first.temperatures, then.temperatures[1:]]),
        n_iter=first.n_iter + then.n_iter,
        n_rounds=first.n_rounds + then.n_rounds,
    )


def later(watch: Callable[[Progress], bool] | None, offset: int) -> Callable[[Progress], bool] | None:
    """The same watcher, with iterations counted on."""
    if watch is None:
        return None
    return lambda progress: watch(progress._replace(iteration=progress.iteration + offset))


def one_start(parameters: Parameters) -> Parameters:
    """Parameters with a leading axis of one start."""
    return jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], parameters)


def per_row(statistics: Statistics, *names: str) -> tuple[np.ndarray, ...]:
    """Some of the sums of all starts, divided by the weight of the rows that they are taken over: (starts,) each."""
    seen, learned = np.asarray(statistics.seen), np.asarray(statistics.weight)
    return tuple(np.asarray(getattr(statistics, name)) / (seen if name == "bound" else learned) for name in names)


def has_died(parameters: Parameters, sums: Statistics, blocks: Blocks) -> bool:
    """Whether some cause explains practically no row, has no weights, or is a copy of another.

    Whole weights count as repetitions of a row, weights that are shares of one as rows.
    """
    repetitions = max(1.0, float(blocks.n_weighted / sums.weight))
    unused = bool(np.min(sums.prior["active"]) * repetitions < LEAST_USE)
    components = np.asarray(parameters.components, dtype=float)
    least = SAME * np.abs(components).max()
    blank = np.abs(components).max(axis=1).min() <= least
    copies = len(components) > 1 and pdist(components, "chebyshev").min() < least
    return unused or bool(blank) or bool(copies)


def all_finite(parameters: Parameters) -> Array:
    """Whether all numbers of one start are finite."""
    return jnp.all(jnp.stack([jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(parameters)]))


def change_of(new: Parameters, old: Parameters) -> Array:
    """How far each component moved, ΔW_h = ‖W_h − W_h^old‖ / Σ_d |W_hd^old| (MCA08 eq. 38): (..., H)."""
    change = jnp.linalg.norm(new.components - old.components, axis=-1)
    return change / jnp.maximum(jnp.abs(old.components).sum(axis=-1), jnp.finfo(change.dtype).tiny)
