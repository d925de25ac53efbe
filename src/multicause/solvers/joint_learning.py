"""Learning from a log joint: states of each row are searched, and parameters follow the gradient of the bound.

F = Σ_n log Σ_{s ∈ K_n} p(s, y_n | Θ) has the gradient of ⟨log p(s, y_n | Θ)⟩, the objective of the M-step.

Rows are filled up to a rounded number N', so that data sets of similar sizes share programs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from multicause.arrays import Array, generator
from multicause.em.driver import Watch, run_loop
from multicause.em.results import is_finite
from multicause.engines import blocks
from multicause.outcomes import Outcome
from multicause.persistence.journal import Journal
from multicause.posteriors.log_joint_search import LogJointSearch
from multicause.solvers.joint_model import JointModel
from multicause.solvers.joint_states import first_states, next_states, probabilities_of
from multicause.solvers.mini_batches import has_converged
from multicause.solvers.optimizers import FINAL_RATE_RATIO, Optimizer, first_optimizer_state, learning_rate_at
from multicause.solvers.presentation import repetitions, rows_to_show


@dataclass(frozen=True)
class JointMethod:
    """Model, search and optimizer of a fit, on which compiled programs depend."""

    model: JointModel
    search: LogJointSearch
    optimizer: Optimizer


class GradientState(NamedTuple):
    """State of learning by gradients after some passes over the data."""

    parameters: Any
    optimizer_state: tuple[Any, ...]  # arrays of the optimizer's state
    states: Any  # (N', S, ⌈H / 8⌉) states of each row, of which a byte holds eight causes
    sums: Any  # sums over rows of the last pass, from which some parameters follow in closed form
    bounds: tuple[float, ...] = ()  # mean bound per shown row of each pass
    outcome: Outcome | None = None


class GradientProgress(NamedTuple):
    """Progress of one pass over the data."""

    state: GradientState

    @property
    def bound(self) -> float:
        """Return the mean bound per row of the last pass."""
        return self.state.bounds[-1]


class ShownBatches(NamedTuple):
    """Mini-batches of one pass; those beyond ``n_batches`` are padding."""

    rows: np.ndarray  # (batches, size) indices of rows
    places: np.ndarray  # (batches, size) where their states are stored; index N' does not exist
    counts: np.ndarray  # (batches, size) which of them count
    n_batches: np.ndarray  # () number of batches that are not padding
    full: np.ndarray  # () number of rows of a full batch


class PassSchedule(NamedTuple):
    """Number of passes, size of batches and learning rates."""

    batch_size: int
    max_iter: int
    tol: float
    learning_rate: float
    schedule: str  # name of the schedule of the learning rate, which ends at a hundredth


def begin(method: JointMethod, parameters: Any, X: Any, n_components: int, batch_size: int) -> GradientState:
    """Return the first state of learning from rows X (N, D)."""
    optimizer_state = first_optimizer_state(method.optimizer, parameters)
    states = searched(method, parameters, X, n_components, batch_size)
    row, dtype = jax.ShapeDtypeStruct(X.shape[1:], X.dtype), X.dtype
    one = [jax.ShapeDtypeStruct(shape, dtype) for shape in ((1, 1, n_components), (1, 1), (1, *row.shape), (1,))]
    sums = jax.eval_shape(method.model.expectations, parameters, *one)
    return GradientState(
        parameters, optimizer_state, states, jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), sums)
    )


def searched(method: JointMethod, parameters: Any, X: Any, n_components: int, batch_size: int) -> np.ndarray:
    """Return packed states of rows that have none yet: (N', S, ⌈H / 8⌉)."""
    filled = filled_up(X)
    states = [np.asarray(_first(method, parameters, rows, n_components)) for rows in batches_of(filled, batch_size)]
    return np.concatenate(states)[: len(filled)]


def filled_up(X: Any) -> np.ndarray:
    """Return rows (N, D) and copies of the first one: (N', D)."""
    return blocks.filled_up(np.asarray(X), np.ones(len(X)), blocks.rounded(len(X), up=True))[0]


def batches_of(X: Any, batch_size: int) -> Iterator[Array]:
    """Yield batches of rows, all of the same size: the last one is filled up with its first row."""
    size = min(batch_size, len(X))
    for first in range(0, len(X), size):
        rows = X[first : first + size]
        filling = np.broadcast_to(rows[:1], (size - len(rows), *rows.shape[1:]))
        yield jax.device_put(np.concatenate([rows, filling]) if len(filling) else rows)


@partial(jax.jit, static_argnums=(0, 3))
def _first(method: JointMethod, parameters: Any, rows: Array, n_components: int) -> Array:
    return pack(first_states(method.search, method.model, parameters, rows, n_components))


def learn(
    method: JointMethod,
    X: np.ndarray,
    weights: np.ndarray,
    start: Any,
    schedule: PassSchedule,
    *,
    sizes: Any,
    n_components: int,
    key: Array,
    running: bool = False,
    watch: Watch | None = None,
    journal: Journal | None = None,
) -> GradientState:
    """Search states and make a step of the parameters for each batch, over several passes over the rows X (N, D).

    ``start`` returns the first state. ``sizes`` has a typical size of each array of the parameters, to which steps are
    relative, so that learning does not depend on units. A pass shows each row as often as its weight says
    (:mod:`multicause.solvers.presentation`). Learning ends when the mean bound stops rising. If sums are ``running``,
    those of a pass are added to former ones, as for batches of a stream.
    """
    # A copy: on a CPU, device_put takes the user's array over.
    expected, rows = repetitions(weights), jax.device_put(np.array(filled_up(X)))

    def step(state: GradientState) -> GradientState:
        number = len(state.bounds)
        random = generator(key, number)
        order = random.permutation(rows_to_show(expected, random))
        progress = np.float32(number / max(1, schedule.max_iter - 1))
        first = np.float32(schedule.learning_rate)
        rate = learning_rate_at(schedule.schedule, first, FINAL_RATE_RATIO * first, progress)
        sums = state.sums if running else jax.tree.map(np.zeros_like, state.sums)
        parameters, optimizer_state, states, sums, total = one_pass(
            method,
            n_components,
            (state.parameters, state.optimizer_state, state.states, sums),
            rows,
            batches_to_show(order, schedule.batch_size, len(rows)),
            sizes,
            np.asarray(rate, X.dtype),
            jax.random.fold_in(key, number),
        )
        bounds = (*state.bounds, float(total) / len(order))
        if not np.isfinite(bounds[-1]) or not is_finite(parameters):
            return state._replace(bounds=bounds, outcome=Outcome.NON_FINITE)
        converged = has_converged(np.array(bounds)[:, None], schedule.tol)
        return GradientState(
            parameters, optimizer_state, states, sums, bounds, Outcome.CONVERGED if converged else None
        )

    def report(before: GradientState, after: GradientState) -> Iterator[GradientProgress]:
        if after.outcome is not Outcome.NON_FINITE:
            yield GradientProgress(after)

    return run_loop(
        GradientState,
        start,
        step,
        goes_on=lambda state: state.outcome is None and len(state.bounds) < schedule.max_iter,
        report=report,
        watch=watch,
        journal=journal,
    )


def batches_to_show(shown: np.ndarray, batch_size: int, n_rows: int) -> ShownBatches:
    """Return batches of the rows to show (n,), of ``n_rows`` rows.

    States of rows that pad the last batch, or that repeat in a batch, are not stored.
    """
    most = blocks.rounded(len(shown), up=True)
    size = min(batch_size, most)
    rows = np.resize(shown, (-(-most // size), size))
    counts = np.arange(rows.size).reshape(rows.shape) < len(shown)
    places = np.full(rows.shape, n_rows)
    for own, place, valid in zip(rows, places, counts, strict=True):
        first = np.unique(own[valid], return_index=True)[1]
        place[first] = own[first]
    n_batches, full = -(-len(shown) // size), min(batch_size, len(shown))
    return ShownBatches(rows, places, counts, np.asarray(n_batches), np.asarray(full))


@partial(jax.jit, static_argnums=(0, 1))
def one_pass(
    method: JointMethod,
    n_components: int,
    before: Any,
    X: Array,
    batches: ShownBatches,
    sizes: Any,
    rate: Array,
    key: Array,
) -> Any:
    """Return parameters, arrays of the optimizer, states, sums over rows, and Σ F after a step for each batch."""
    model, optimizer = method.model, method.optimizer.transformation(rate)
    structure = jax.tree.structure(jax.eval_shape(optimizer.init, before[0]))

    def step(number: Array, carry: Any) -> Any:
        parameters, optimizer_state, packed, sums, total, key = carry
        numbers, places, counts = (each[number] for each in (batches.rows, batches.places, batches.counts))
        key, now = jax.random.split(key)
        rows, shown = X[numbers], counts.astype(X.dtype)
        states = unpack(packed[numbers], n_components)
        states = next_states(method.search, model, parameters, states, rows, now)
        packed = packed.at[places].set(pack(states), mode="drop")

        def loss(parameters: Any) -> tuple[Array, tuple[Array, Array]]:
            probabilities, evidence = probabilities_of(model, parameters, states, rows)
            evidence = jnp.where(counts, evidence, 0)
            return -jnp.sum(evidence) / jnp.sum(shown), (probabilities, evidence)

        gradient, (probabilities, evidence) = jax.grad(loss, has_aux=True)(parameters)
        more = model.expectations(parameters, states.astype(X.dtype), probabilities, rows, shown)
        # Steps are those of parameters in units of their sizes.
        gradient, relative = (
            jax.tree.map(f, p, sizes) for f, p in ((jnp.multiply, gradient), (jnp.divide, parameters))
        )
        changes, after = optimizer.update(gradient, jax.tree.unflatten(structure, optimizer_state), relative)
        # A batch that is not full makes a shorter step.
        length = jnp.sum(shown) / batches.full.astype(shown.dtype)
        parameters = jax.tree.map(
            lambda a, b, size: (a + length * size * b).astype(a.dtype), parameters, changes, sizes
        )
        sums = jax.tree.map(jnp.add, sums, more)
        total = total + jnp.sum(evidence, dtype=jnp.float64)
        return parameters, tuple(jax.tree.leaves(after)), packed, sums, total, key

    first = (*before, jnp.zeros((), jnp.float64), key)
    parameters, optimizer_state, packed, sums, total, _ = jax.lax.fori_loop(0, batches.n_batches, step, first)
    return model.solve(parameters, sums), optimizer_state, packed, sums, total


def pack(states: Array) -> Array:
    """Return states (n, S, H), zeros and ones, as bytes of eight causes each: (n, S, ⌈H / 8⌉)."""
    return jnp.packbits(states.astype(jnp.uint8), axis=-1)


def unpack(packed: Array, n_components: int) -> Array:
    """Return the states that bytes hold: (n, S, H)."""
    return jnp.unpackbits(packed, axis=-1, count=n_components).astype(jnp.int8)
