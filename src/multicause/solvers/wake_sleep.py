"""Wake-sleep learning of a Helmholtz machine: TN10 eq. 10.39–10.44 and the table of its appendix.

Plain wake-sleep learns the generative weights from one recognized state of each row, and the recognition weights from
fantasies (samples of the model) alone. Fantasies of an untrained model are unlike the data, so the recognition network
may never learn the states that the data need: on bars, several causes then share the work of one. With more
*particles*, each row has several recognized states, weighted by p(v, u)/q(v | u), and both sets of weights are learned
from them (reweighted wake-sleep, J. Bornschein and Y. Bengio 2015).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from multicause.arrays import Array, generator, key_from, on_host, over_starts
from multicause.em.driver import Watch, run_loop
from multicause.em.online import Online, continued
from multicause.em.results import FitResult, Progress, batch_result, is_finite, result_of_one, start_of
from multicause.em.solver import FitProblem, Solver
from multicause.engines.base import Data
from multicause.model import Model
from multicause.outcomes import Outcome
from multicause.persistence.journal import Journal
from multicause.posteriors.recognition_network import machine_of
from multicause.priors.layered_networks import (
    Machine,
    fantasies,
    importance,
    log_joint,
    log_recognition,
    masked,
    n_causes,
)
from multicause.records import Block, Parameters
from multicause.solvers.mini_batches import evaluate, has_converged
from multicause.solvers.optimizers import Optax, Optimizer, OptimizerState, first_optimizer_state, stepped
from multicause.solvers.presentation import Batches, BlockDraw, Presentation
from multicause.updates.wake_sleep import WakeSleepSettings


def step(
    program_settings: WakeSleepSettings,
    optimizer: Optimizer,
    machine: Machine,
    optimizer_state: OptimizerState,
    data: Array,
    weights: Array,
    key: Array,
    rate: Array,
) -> tuple[Machine, OptimizerState, Array]:
    """Run one wake and one sleep phase on a batch; return the machine, the optimizer's state and Σ_n w_n F_n before it.

    The gradients of log P and log Q are the delta rules of the appendix: (u − f(h + G·v)) v, and so on.
    """
    key_wake, key_sleep = jax.random.split(key)
    data, mask = masked(machine, data) if program_settings.missing else (data, None)
    shape = (program_settings.n_particles, len(data), n_causes(machine.recognition))
    states, log_ratio = importance(machine, data, jax.random.uniform(key_wake, shape, data.dtype), mask)
    total = jnp.maximum(jnp.sum(weights), jnp.finfo(weights.dtype).tiny)
    credit = jax.nn.softmax(log_ratio, axis=0) * (weights / total)
    generative = jax.grad(lambda layers: jnp.sum(credit * log_joint(layers, states, mask)))(machine.generative)
    fantasy = fantasies(machine.generative, key_sleep, len(data))
    if mask is not None:
        # Recognition learns from fantasies in which the same values are missing as in the data.
        fantasy = (jnp.where(mask.observed > 0, fantasy[0], data), *fantasy[1:])
    # Fantasies with the missing values of a row count as much as the row; without missing values, all are alike.
    shares = jnp.full(len(data), 1 / len(data), data.dtype) if mask is None else weights / total
    sleep_gradient = jax.grad(lambda layers: jnp.sum(shares * log_recognition(layers, fantasy, mask)))
    recognition = sleep_gradient(machine.recognition)
    if program_settings.n_particles > 1:
        wake_gradient = jax.grad(lambda layers: jnp.sum(credit * log_recognition(layers, states, mask)))
        recognition = jax.tree.map(lambda a, b: 0.5 * (a + b), recognition, wake_gradient(machine.recognition))

    # Optimizers of optax minimize, and log P and log Q are maximized.
    slopes = jax.tree.map(jnp.negative, Machine(generative, recognition))
    new, optimizer_state = stepped(optimizer, rate.astype(data.dtype), machine, optimizer_state, slopes)
    if program_settings.nonnegative:
        lowest = {**new.generative[0], "weights": jnp.maximum(new.generative[0]["weights"], 0)}
        new = new._replace(generative=(lowest, *new.generative[1:]))
    return new, optimizer_state, jnp.sum(weights * jnp.mean(log_ratio, axis=0))


@partial(jax.jit, static_argnums=(0, 1))
def one_pass(
    program_settings: WakeSleepSettings,
    optimizer: Optimizer,
    machines: Machine,
    optimizer_state: OptimizerState,
    rows: Array,
    batches: Batches,
    keys: Array,
    rate: Array,
) -> tuple[Machine, OptimizerState, Array]:
    """Run wake-sleep steps on batches of a block's rows (n, D), for several machines, each with its own key.

    Returns the machines, the states of their optimizers, and Σ_n w_n F_n before each step, summed: (starts,).
    """

    def one(machine: Machine, optimizer_state: OptimizerState, key: Array) -> tuple[Machine, OptimizerState, Array]:
        def learn(number: Array, state: tuple[Machine, OptimizerState, Array]) -> tuple[Machine, OptimizerState, Array]:
            machine, optimizer_state, total = state
            batch_key, length = jax.random.fold_in(key, number), rate * batches.lengths[number]
            data, weights = rows[batches.rows[number]], batches.weights[number]
            machine, optimizer_state, bound = step(
                program_settings, optimizer, machine, optimizer_state, data, weights, batch_key, length
            )
            return machine, optimizer_state, total + bound.astype(jnp.float64)

        return jax.lax.fori_loop(0, batches.n_batches, learn, (machine, optimizer_state, jnp.zeros((), jnp.float64)))

    return over_starts(one)(machines, optimizer_state, keys)


@dataclass(frozen=True, kw_only=True)
class WakeSleepPasses(Solver):
    """Passes of wake-sleep over all rows, in mini-batches of ``batch_size``.

    In ``partial_fit``, every batch begins with a new state of the optimizer.
    """

    batch_size: int = 20
    optimizer: Optimizer = field(default_factory=lambda: Optax("sgd"))

    def learn(self, problem: FitProblem) -> FitResult:
        """Learn all starts, and return the one with the highest bound."""
        key = key_from(problem.random)
        settings: dict[str, Any] = {"max_iter": self.max_iter, "tol": self.tol, "key": key, **problem.loop}
        model, data, starts = problem.model, problem.data, problem.starts
        own: dict[str, Any] = {"batch_size": self.batch_size, "optimizer": self.optimizer}
        return learn_by_wake_and_sleep(model, data, starts, **own, **settings)

    def learn_batch(self, problem: FitProblem, before: Online | None) -> tuple[FitResult, Online | None]:
        """Learn from one more batch by one pass over its rows."""
        # Fold in the batch number: otherwise the same seed would draw the same samples for every batch.
        key = jax.random.fold_in(key_from(problem.random), problem.n_batches)
        model, data, starts = problem.model, problem.data, problem.starts
        settings: dict[str, Any] = {"batch_size": self.batch_size, "optimizer": self.optimizer}
        result = learn_by_wake_and_sleep(model, data, starts, **settings, max_iter=1, tol=0.0, key=key)
        n_batches, finite = problem.n_batches + 1, bool(np.isfinite(result.bound))
        # The bound of the pass is that before its steps; the bound at the end is of the new parameters.
        batch = batch_result(result.parameters, result.bound, n_batches, finite=finite, bounds=result.bounds[:1])
        return batch, continued(result.statistics, n_batches)


def _learn_block(
    block: Block,
    carry: tuple[Machine, OptimizerState, np.ndarray, float],
    program_settings: WakeSleepSettings,
    optimizer: Optimizer,
    presentation: Presentation,
    rate: Array,
    key_data: Array,
    draw: BlockDraw,
) -> tuple[Machine, OptimizerState, np.ndarray, float]:
    """Return machines, states of optimizers, Σ_n w_n F_n (starts,) and Σ_n w_n after the batches of one more block."""
    machines, optimizer_state, total, shown = carry
    batches = presentation.batches(np.asarray(block.weights), draw)
    keys = jax.random.split(jax.random.fold_in(jax.random.wrap_key_data(key_data), draw.number), len(total))
    machines, optimizer_state, bounds = one_pass(
        program_settings, optimizer, machines, optimizer_state, block.rows, batches, keys, rate
    )
    return machines, optimizer_state, total + np.asarray(bounds), shown + batches.weights.sum(dtype=float)


class WakeSleepState(NamedTuple):
    """State of wake-sleep learning of all starts after some number of passes over the data."""

    machines: Machine
    bounds: np.ndarray  # (passes, starts): mean bound per row
    outcome: Outcome | None = None
    optimizer_state: OptimizerState = ()  # arrays of the optimizer's state, such as velocities


def learn_by_wake_and_sleep(
    model: Model,
    data: Data,
    starts: Parameters,
    *,
    batch_size: int,
    optimizer: Optimizer,
    max_iter: int,
    tol: float,
    key: Array,
    watch: Watch | None = None,
    journal: Journal | None = None,
) -> FitResult:
    """Learn all starts in parallel by passes of wake-sleep over the data, and return the best start.

    Learning ends when the highest bound no longer rises.
    """
    n_starts = len(starts.components)
    program_settings, rate = (
        model.update.program_settings._replace(missing=model.missing),
        jnp.asarray(model.update.rate),
    )
    presentation = Presentation.of(data, batch_size)

    def step(state: WakeSleepState) -> WakeSleepState:
        iteration = len(state.bounds)
        order, draws = presentation.draw(generator(key, iteration))
        # The numbers of a key, because keys themselves cannot be sent to other processes.
        of_pass = jax.random.key_data(jax.random.fold_in(key, iteration))
        machines, optimizer_state, total, shown = data.fold(
            _learn_block,
            (state.machines, state.optimizer_state, np.zeros(n_starts), 0.0),
            *(program_settings, optimizer, presentation, rate, of_pass),
            aligned=draws,
            order=order,
        )
        history = np.vstack([state.bounds, total / shown])
        if not is_finite(machines):
            return state._replace(bounds=history, outcome=Outcome.NON_FINITE)
        return WakeSleepState(
            machines, history, Outcome.CONVERGED if has_converged(history, tol) else None, optimizer_state
        )

    def report(before: WakeSleepState, after: WakeSleepState) -> Iterator[Progress]:
        if after.outcome is not Outcome.NON_FINITE:
            now = _parameters_of(after.machines, starts)
            yield Progress(len(after.bounds) - 1, np.ones(n_starts), after.bounds[-1], now)

    def begin() -> WakeSleepState:
        machines = machine_of(model, starts)
        return WakeSleepState(
            machines,
            np.empty((0, n_starts)),
            optimizer_state=jax.vmap(partial(first_optimizer_state, optimizer))(machines),
        )

    state = run_loop(
        WakeSleepState,
        begin,
        step,
        goes_on=lambda state: state.outcome is None and len(state.bounds) < max_iter,
        report=report,
        watch=watch,
        journal=journal,
    )
    every = on_host(_parameters_of(state.machines, starts))
    evaluated = []
    for start in range(n_starts):
        parameters = start_of(every, start)
        sums = jax.device_get(data.sum(partial(evaluate, model), parameters))
        evaluated.append((float(sums.bound / sums.seen), parameters, sums))
    best = int(np.argmax([bound for bound, _, _ in evaluated]))
    final, parameters, statistics = evaluated[best]
    activity = (statistics.prior["active"] / statistics.weight).astype(parameters.components.dtype)
    parameters = parameters._replace(prior={**parameters.prior, "activity": activity})
    bounds = [*state.bounds[:, best], final]
    return result_of_one(parameters, statistics, bounds, state.outcome, data)


def _parameters_of(machine: Machine, like: Parameters) -> Parameters:
    """Return the parameters of a pair of networks, the inverse of ``machine_of``."""
    lowest, *upper = machine.generative
    prior = dict(like.prior)
    for k, layer in enumerate(upper, start=1):
        prior |= {f"{name}_{k}": value for name, value in layer.items()}
    posterior = {f"{name}_{k}": value for k, layer in enumerate(machine.recognition) for name, value in layer.items()}
    return Parameters(lowest["weights"], prior, {"bias": lowest["bias"]}, posterior)
