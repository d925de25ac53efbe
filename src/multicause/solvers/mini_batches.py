"""Mini-batch EM: an E-step and a partial M-step for each mini-batch, over several passes.

One iteration is one pass over all rows, in random order within the engine's blocks, which come in random order, too.
Each row is shown as often as its weight says (:mod:`multicause.solvers.presentation`). Blocks may be in memory, in
files or on a cluster, where parameters move from worker to worker. It suits updates that take small steps (delta
rules), whose statistics do not need all data at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from multicause.arrays import Array, compiled, generator, key_from
from multicause.em.driver import Watch, run_loop
from multicause.em.e_step import expect_one
from multicause.em.m_step import maximize_one
from multicause.em.results import FitResult, Progress, is_finite, one_start, result_of_one, start_of
from multicause.em.solver import FitProblem, Solver
from multicause.engines.base import Data
from multicause.model import Model, Statistics, interned
from multicause.outcomes import Outcome
from multicause.persistence.journal import Journal
from multicause.posteriors import Posterior
from multicause.records import Block, Parameters
from multicause.solvers.presentation import Batches, BlockDraw, Presentation

# Number of passes whose mean bound is compared with that of as many passes before; the bound of a single pass is too
# noisy for a stopping rule.
WINDOW = 5


def has_converged(bounds: np.ndarray, tol: float) -> bool:
    """Return whether the highest mean bound of all starts (passes, starts) rises by less than ``tol`` per pass."""
    if tol <= 0 or len(bounds) < 2 * WINDOW:
        return False
    recent, earlier = bounds[-WINDOW:].mean(axis=0).max(), bounds[-2 * WINDOW : -WINDOW].mean(axis=0).max()
    return bool(recent - earlier < tol * WINDOW)


@compiled
def one_pass(model: Model, block: Block, parameters: Parameters, batches: Batches) -> tuple[Parameters, Array, Array]:
    """Run EM steps on the batches of one block; return the parameters, Σ w F before each step, and Σ w."""

    def step(number: Array, state: tuple[Parameters, Array, Array]) -> tuple[Parameters, Array, Array]:
        parameters, bound, weight = state
        chosen, length = batches.rows[number], batches.lengths[number]
        batch = jax.tree.map(lambda leaf: leaf[chosen], block)._replace(weights=batches.weights[number])
        sums = expect_one(model, batch, parameters, jnp.ones(()))
        new = maximize_one(model, sums, parameters)
        parameters = jax.tree.map(lambda a, b: jnp.where(length < 1, b + length * (a - b), a), new, parameters)
        return parameters, bound + sums.bound, weight + sums.weight

    nothing = jnp.zeros((), jnp.float64)
    return jax.lax.fori_loop(0, batches.n_batches, step, (parameters, nothing, nothing))


@compiled
def evaluate(model: Model, block: Block, parameters: Parameters) -> Statistics:
    """Compute the E-step statistics of one block."""
    return expect_one(model, block, parameters, jnp.ones(()))


@dataclass(frozen=True, kw_only=True)
class MiniBatches(Solver):
    """EM steps on mini-batches of ``batch_size`` rows.

    ``learning_posterior`` replaces that of the model while it learns, for example by one of lower accuracy.
    """

    batch_size: int = 200
    learning_posterior: Posterior | None = None
    # Each batch of a stream is one step: averages over causes that were inferred with older components would slow
    # learning down.
    averages_batches: bool = False

    def learn(self, problem: FitProblem) -> FitResult:
        """Learn from the first start."""
        model, posterior = problem.model, self.learning_posterior
        return learn_in_batches(
            model,
            problem.data,
            start_of(problem.starts),
            batch_size=self.batch_size,
            max_iter=self.max_iter,
            tol=self.tol,
            key=key_from(problem.random),
            learner=None if posterior is None else interned(replace(model, posterior=posterior)),
            **problem.loop,
        )


def _learn_block(
    block: Block,
    carry: tuple[Parameters, float, float],
    learner: Model,
    presentation: Presentation,
    draw: BlockDraw,
) -> tuple[Parameters, float, float]:
    """Return parameters, Σ w F and Σ w after the batches of one more block."""
    parameters, total, seen = carry
    batches = presentation.batches(np.asarray(block.weights), draw)
    parameters, bound, weight = one_pass(learner, block, parameters, batches)
    return parameters, total + float(bound), seen + float(weight)


class MiniBatchState(NamedTuple):
    """State of the mini-batch loop after some passes."""

    parameters: Parameters
    bounds: tuple[float, ...] = ()  # mean bound per row of each pass
    outcome: Outcome | None = None


def learn_in_batches(
    model: Model,
    data: Data,
    start: Parameters,
    *,
    batch_size: int,
    max_iter: int,
    tol: float,
    key: Array,
    learner: Model | None = None,
    watch: Watch | None = None,
    journal: Journal | None = None,
) -> FitResult:
    """Run passes over the data until the mean bound stops rising, or for ``max_iter`` passes.

    ``learner`` is the model used for the passes, if it differs from the one that is evaluated at the end, for example
    in the accuracy of its posterior.
    """
    learner = model if learner is None else learner
    presentation = Presentation.of(data, batch_size)

    def step(state: MiniBatchState) -> MiniBatchState:
        order, draws = presentation.draw(generator(key, len(state.bounds)))
        begin = (state.parameters, 0.0, 0.0)
        parameters, total, seen = data.fold(_learn_block, begin, learner, presentation, aligned=draws, order=order)
        bounds = (*state.bounds, total / seen)
        if not is_finite(parameters) or not np.isfinite(bounds[-1]):
            return MiniBatchState(state.parameters, bounds, Outcome.NON_FINITE)
        converged = has_converged(np.array(bounds)[:, None], tol)
        return MiniBatchState(parameters, bounds, Outcome.CONVERGED if converged else None)

    def report(before: MiniBatchState, after: MiniBatchState) -> Iterator[Progress]:
        if after.outcome is not Outcome.NON_FINITE:
            bound = np.array(after.bounds[-1:])
            yield Progress(len(after.bounds) - 1, np.ones(1), bound, one_start(after.parameters))

    state = run_loop(
        MiniBatchState,
        lambda: MiniBatchState(start),
        step,
        goes_on=lambda state: state.outcome is None and len(state.bounds) < max_iter,
        report=report,
        watch=watch,
        journal=journal,
    )
    statistics: Any = data.sum(partial(evaluate, model), state.parameters)
    final = float(statistics.bound / statistics.seen)
    return result_of_one(state.parameters, statistics, [*state.bounds, final], state.outcome, data)
