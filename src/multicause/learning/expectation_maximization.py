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
from multicause.learning.annealing import Annealing, Cooling
from multicause.learning.convergence import Convergence, Outcome, at_rest, rested
from multicause.learning.expectation import DataCut
from multicause.learning.journal import Journal
from multicause.model import Model, Parameters, Statistics

# A cause that explains less than this many rows, summed over all rows, has died; a continuous one if all rows together
# are less probable without it by less than e to this power.
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
    kept: np.ndarray  # (n_rounds + 1, starts) share of all rows that are learned from
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
    kept: np.ndarray | None = None  # (n_iter + 1,) share of all rows that are learned from, where some may be cut


class Progress(NamedTuple):
    """What a watcher sees after each iteration; arrays have shape (starts,)."""

    iteration: int  # counted from zero
    temperature: np.ndarray
    bound: np.ndarray
    parameters: Parameters
    statistics: Statistics | None = None  # of these parameters, where the loop has them
    cooled: bool = True  # whether annealing is over, so that bounds can be compared

    @property
    def best(self) -> int:
        """The start with the highest finite bound."""
        return int(np.argmax(np.where(np.isfinite(self.bound), self.bound, -np.inf)))


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


class Learning(NamedTuple):
    """State of the loop after some iterations; arrays have a leading axis of starts, histories one of iterations."""

    iteration: int
    parameters: Parameters  # those that were kept
    sums: Statistics  # of these
    cooling: Cooling
    cut: tuple[np.ndarray, ...]
    convergence: tuple[np.ndarray, ...]
    quiet: np.ndarray  # (starts,) iterations at rest, where the bound is no judge
    bounds: np.ndarray  # (iteration + 1, starts)
    temperatures: np.ndarray  # (iteration + 1, starts)
    kept: np.ndarray  # (iteration + 1, starts)
    learning: np.ndarray  # (starts,) which go on
    outcome: np.ndarray  # (starts,)
    last: np.ndarray  # (starts,)

    def ended(self, which: np.ndarray, why: Outcome, iteration: int) -> Learning:
        """The state in which some of the starts that are still learning end."""
        ending = which & self.learning
        outcome = self.outcome.copy()
        outcome[ending] = why
        last = np.where(ending, iteration, self.last)
        return self._replace(outcome=outcome, last=last, learning=self.learning & ~ending)


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
    journal: Journal | None = None,
) -> Trials:
    """Run EM from all starts, side by side.

    ``watch`` is called after every iteration and may end learning by returning True.
    """
    n_starts = len(starts.components)
    cut = DataCut(model, n_starts)
    monotone = model.update.is_monotone(model.combination) and model.posterior.monotone
    convergence = Convergence(n_starts, tol, monotone, float(jnp.finfo(starts.components.dtype).eps))

    def judged(trial: Parameters, cooling: Cooling, before: Learning | None) -> Learning:
        """E-step at the end of a step, which says whether the step is kept and who has converged."""
        progress = annealing.progress(cooling)
        cut.advance(progress, trial)
        statistics = cut.expect(engine, blocks, trial, jnp.asarray(cooling.temperature))
        bound, objective, magnitude = per_row(statistics, "bound", "free_energy", "magnitude")
        kept = np.asarray(statistics.weight, dtype=float) / np.asarray(statistics.seen, dtype=float)
        objective = objective - cut.log_mass(trial)
        cooled = annealing.cooled(cooling) & cut.complete(progress)
        accepted = convergence.judge(objective, magnitude, cooled & model.posterior.climbs)
        if before is None:
            state = Learning(
                iteration=0,
                parameters=trial,
                sums=statistics,
                cooling=cooling,
                cut=cut.memory,
                convergence=convergence.memory,
                quiet=np.zeros(n_starts, dtype=int),
                bounds=bound[None],
                temperatures=cooling.temperature[None],
                kept=kept[None],
                learning=np.ones(n_starts, dtype=bool),
                outcome=np.full(n_starts, Outcome.MAX_ITER, dtype=object),
                last=np.full(n_starts, max_iter),
            )
        else:
            parameters, sums = select(jnp.asarray(accepted), (trial, statistics), (before.parameters, before.sums))
            state = before._replace(
                iteration=before.iteration + 1,
                parameters=parameters,
                sums=sums,
                cooling=cooling,
                cut=cut.memory,
                convergence=convergence.memory,
                bounds=np.vstack([before.bounds, np.where(accepted, bound, before.bounds[-1])]),
                temperatures=np.vstack([before.temperatures, cooling.temperature]),
                kept=np.vstack([before.kept, kept]),
            )
        iteration = state.iteration
        state = state.ended(~np.isfinite(objective), Outcome.NON_FINITE, max(iteration - 1, 0))
        state = state.ended(convergence.fell, Outcome.BOUND_FELL, iteration)
        state = state.ended(convergence.converged, Outcome.CONVERGED, iteration)
        state = state.ended(annealing.finished(cooling) & ~convergence.falling, Outcome.CONVERGED, iteration)
        return state.ended(rested(state.quiet), Outcome.CONVERGED, iteration)

    def begin() -> Learning:
        cut.check(starts, blocks)
        return judged(starts, annealing.begin(n_starts), None)

    def step(state: Learning) -> Learning:
        """M-step, then :func:`judged`."""
        iteration, cooling = state.iteration, state.cooling
        length = np.where(state.learning, convergence.length, 0.0)
        trial, finite, change = _maximize_all(model, cut, state.sums, state.parameters, jnp.asarray(length))
        if annealing.component_noise > 0 and "components" in model.learn:
            noise = np.where(state.learning & (cooling.temperature > annealing.final), annealing.component_noise, 0.0)
            trial = shake(model, trial, jnp.asarray(noise), jax.random.fold_in(key, iteration))
        state = state.ended(~np.asarray(finite), Outcome.NON_FINITE, iteration)
        if not model.posterior.climbs and tol > 0:
            cooled = annealing.cooled(cooling) & cut.complete(annealing.progress(cooling))
            state = state._replace(quiet=at_rest(state.quiet, np.asarray(change), cooled))
        return judged(trial, annealing.advance(cooling, np.asarray(change)), state)

    with (journal or Journal()).loop(Learning, begin) as loop:
        cut.memory, convergence.memory = loop.state.cut, loop.state.convergence
        while loop.state.iteration < max_iter and loop.state.learning.any():
            loop.state = state = step(loop.state)
            cooled = bool(annealing.cooled(state.cooling).all())
            seen = (state.temperatures[-1], state.bounds[-1], state.parameters, state.sums, cooled)
            if watch is not None and watch(Progress(state.iteration - 1, *seen)):
                loop.state = state.ended(state.learning, Outcome.STOPPED, state.iteration)
        state = loop.state

    sums = state.sums
    if (state.temperatures[-1] != 1).any():
        sums = cut.expect(engine, blocks, state.parameters, jnp.ones(n_starts))
    (final_bound,) = per_row(sums, "bound")
    return Trials(
        state.parameters,
        sums,
        final_bound,
        state.bounds,
        state.temperatures,
        state.kept,
        state.outcome,
        state.last,
        n_rounds=state.iteration,
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


def best_of(trials: Trials, blocks: Blocks, merit: np.ndarray | None = None) -> Fit:
    """The start with the highest finite bound, or another merit (starts,); where some were stopped, all were."""
    merit = trials.bound if merit is None else merit
    chosen = int(np.argmax(np.where(np.isfinite(merit) & np.isfinite(trials.bound), merit, -np.inf)))
    stopped = (trials.outcome == Outcome.STOPPED).any()
    n_iter, why = int(trials.last[chosen]), Outcome.STOPPED if stopped else Outcome(trials.outcome[chosen])
    parameters, sums = start_of(jax.device_get((trials.parameters, trials.statistics)), chosen)
    return Fit(
        parameters=parameters,
        bound=float(trials.bound[chosen]),
        bounds=np.array([*trials.bounds[:n_iter, chosen], trials.bound[chosen]]),
        temperatures=np.array([*trials.temperatures[:n_iter, chosen], 1.0]),
        n_iter=n_iter,
        n_rounds=trials.n_rounds,
        converged=why == Outcome.CONVERGED,
        outcome=final_outcome(why, parameters, sums, blocks),
        statistics=sums,
        kept=trials.kept[: n_iter + 1, chosen],
    )


def joined(first: Fit, then: Fit) -> Fit:
    """The second fit, with the history of the first before its own."""
    return then._replace(
        bounds=np.concatenate([first.bounds, then.bounds[1:]]),
        temperatures=np.concatenate([first.temperatures, then.temperatures[1:]]),
        kept=None if first.kept is None or then.kept is None else np.concatenate([first.kept, then.kept[1:]]),
        n_iter=first.n_iter + then.n_iter,
        n_rounds=first.n_rounds + then.n_rounds,
    )


def later(watch: Callable[[Progress], bool] | None, offset: int) -> Callable[[Progress], bool] | None:
    """The same watcher, with iterations counted on."""
    if watch is None:
        return None
    return lambda progress: watch(progress._replace(iteration=progress.iteration + offset))


def one_start(record: Any) -> Any:
    """Parameters or statistics with a leading axis of one start."""
    return jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], record)


def start_of(record: Any, number: int = 0) -> Any:
    """Parameters or statistics of one start, without the leading axis of starts."""
    return jax.tree.map(lambda leaf: leaf[number], record)


def per_row(statistics: Statistics, *names: str) -> tuple[np.ndarray, ...]:
    """Some of the sums of all starts, divided by the weight of the rows that they are taken over: (starts,) each."""
    seen, learned = np.asarray(statistics.seen), np.asarray(statistics.weight)
    return tuple(np.asarray(getattr(statistics, name)) / (seen if name == "bound" else learned) for name in names)


def final_outcome(why: Outcome, parameters: Parameters, sums: Statistics, blocks: Blocks) -> Outcome:
    """How learning ended, or that a cause has died, which is the more important news."""
    return Outcome.CAUSE_DIED if why in MAY_HAVE_DIED and has_died(parameters, sums, blocks) else why


def has_died(parameters: Parameters, sums: Statistics, blocks: Blocks, same: float = SAME) -> bool:
    """Whether some cause explains practically no row, has no weights, or is a copy of another.

    Components that differ nowhere by more than ``same`` times their largest weight are copies. Whole weights count as
    repetitions of a row, weights that are shares of one as rows.
    """
    repetitions = max(1.0, float(blocks.n_weighted / sums.weight))
    unused = bool(np.min(sums.prior["active"]) * repetitions < LEAST_USE)
    components = np.abs(np.asarray(parameters.components, dtype=float))
    blank = bool(components.max(axis=1).min() <= SAME * components.max())
    return unused or blank or has_copies(np.asarray(parameters.components), same)


def has_copies(components: np.ndarray, tolerance: float) -> bool:
    """Whether two components (H, D) differ nowhere by more than this part of their largest weight."""
    if len(components) < 2:
        return False
    components = components.astype(float)
    largest = np.abs(components).max(axis=1)
    first, second = np.triu_indices(len(components), k=1)
    return bool((pdist(components, "chebyshev") < tolerance * np.maximum(largest[first], largest[second])).any())


def all_finite(parameters: Parameters) -> Array:
    """Whether all numbers of one start are finite."""
    return jnp.all(jnp.stack([jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(parameters)]))


def change_of(new: Parameters, old: Parameters) -> Array:
    """How far each component moved, ΔW_h = ‖W_h − W_h^old‖ / Σ_d |W_hd^old| (MCA08 eq. 38): (..., H)."""
    change = jnp.linalg.norm(new.components - old.components, axis=-1)
    return change / jnp.maximum(jnp.abs(old.components).sum(axis=-1), jnp.finfo(change.dtype).tiny)
