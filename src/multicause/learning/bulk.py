"""Many independent trials as one program: each has data and a start of its own, and ends when it is done.

The loop of :mod:`multicause.learning.expectation_maximization` in compiled form, with the same steps and schedules. It
serves experiments on hundreds of small data sets, where Python would take longer than the arithmetic. It takes no step
back, has no data cut, keeps no history, and ends when components rest, whether or not the posterior climbs a bound.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from multicause.arrays import Array, available_cores, double_precision, over_starts
from multicause.learning.annealing import Annealing, Cooling
from multicause.learning.convergence import at_rest, rested
from multicause.learning.expectation import expect_one
from multicause.learning.expectation_maximization import all_finite, change_of, maximize_one, one_start, shake, start_of
from multicause.model import Block, Model, Parameters, Statistics


class Trial(NamedTuple):
    """What learning found; in bulk, arrays have a leading axis of trials."""

    parameters: Parameters
    statistics: Statistics  # at temperature one
    n_iter: Any
    converged: Any
    finite: Any  # whether it was not ended by infinite parameters, after which the last finite ones are kept


class _State(NamedTuple):
    parameters: Parameters
    cooling: tuple[Array, Array, Array]
    rest: Array
    ended: Array
    finite: Array


def learn_trial(
    model: Model, annealing: Annealing, max_iter: int, resting: bool, block: Block, start: Parameters, key: Array
) -> Trial:
    """EM on one block, from one start; without ``resting`` it ends by the schedule or ``max_iter`` alone."""
    begin = annealing.begin(1)
    first = _State(
        start,
        (jnp.asarray(begin.temperature), jnp.asarray(0), jnp.asarray(begin.quiet)),
        rest=jnp.zeros(1, int),
        ended=jnp.asarray(False),
        finite=jnp.asarray(True),
    )

    def go_on(state: _State) -> Array:
        return (state.cooling[1] < max_iter) & ~state.ended & state.finite

    def step(state: _State) -> _State:
        cooling: Any = Cooling(*state.cooling)  # type: ignore[arg-type]
        statistics = expect_one(model, block, state.parameters, cooling.temperature[0])
        new = maximize_one(model, statistics, state.parameters)
        change: Any = change_of(new, state.parameters)
        if annealing.component_noise > 0 and "components" in model.learn:
            scale = jnp.where(cooling.temperature > annealing.final, annealing.component_noise, 0.0)
            own = jax.random.fold_in(key, cooling.iteration)
            new = start_of(shake(model, one_start(new), scale, own))
        finite = all_finite(new)
        rest = at_rest(state.rest, change[None], annealing.cooled(cooling))
        then: Any = annealing.advance(cooling, change[None])
        return _State(
            jax.tree.map(lambda a, b: jnp.where(finite, a, b), new, state.parameters),
            (then.temperature, jnp.asarray(then.iteration), then.quiet),
            rest,
            ended=(annealing.finished(then) | (rested(rest) & resting))[0],
            finite=finite,
        )

    last = jax.lax.while_loop(go_on, step, first)
    statistics = expect_one(model, block, last.parameters, jnp.ones(()))
    return Trial(last.parameters, statistics, last.cooling[1], last.ended, last.finite)


@partial(jax.jit, static_argnums=(0, 1, 2, 3))
def _learn_part(
    model: Model, annealing: Annealing, max_iter: int, resting: bool, blocks: Block, starts: Parameters, keys: Array
) -> Trial:
    """On a core one trial after the other: a small one stays in its cache, and none has to wait for a longer one."""
    return over_starts(partial(learn_trial, model, annealing, max_iter, resting))(blocks, starts, keys)


def learn_trials(
    model: Model, annealing: Annealing, max_iter: int, resting: bool, blocks: Block, starts: Parameters, keys: Array
) -> Trial:
    """All trials; arguments have a leading axis of trials, results are on the host."""
    return on_all_cores(partial(_learn_part, model, annealing, max_iter, resting), (blocks, starts, keys))


def on_all_cores(function: Callable[..., Any], arguments: Any) -> Any:
    """Apply a compiled function of many trials to equal parts of them, one part for each core.

    On a CPU one program for small arrays runs on one core. Other devices get all trials in one part.
    """
    n_trials = len(jax.tree.leaves(arguments)[0])
    n_parts = min(n_trials, available_cores()) if jax.default_backend() == "cpu" else 1
    size = -(-n_trials // n_parts)
    # The last part is filled up with copies of the last trial: one shape, one compilation.
    places = [np.minimum(np.arange(part * size, (part + 1) * size), n_trials - 1) for part in range(n_parts)]

    def run(place: np.ndarray) -> Any:
        with double_precision():  # a setting of each thread
            return jax.device_get(function(*jax.tree.map(lambda leaf: leaf[place], arguments)))

    with ThreadPoolExecutor(n_parts) as pool:
        parts = [run(places[0])] if n_parts == 1 else list(pool.map(run, places))
    return jax.tree.map(lambda *leaves: np.concatenate(leaves)[:n_trials], *parts)
