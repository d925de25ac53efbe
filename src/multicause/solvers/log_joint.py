"""Learning of a user's log joint: evolved states of each row, and steps by its gradient."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from multicause.arrays import Array, generator
from multicause.em.driver import run_loop
from multicause.outcomes import Outcome
from multicause.posteriors.breeding import children_of, is_first
from multicause.solvers.mini_batches import has_settled
from multicause.solvers.presentation import repetitions, rows_to_show

# Number of causes from which on there are more states than any population has.
MOST_DIGITS = 40
#: ``log_joint(parameters, states (n, S, H), rows (n, D))`` returns log p(s, y): (n, S).
LogJoint = Callable[[Any, Array, Array], Array]


def evaluate(log_joint: LogJoint, parameters: Any, states: Array, rows: Array) -> Array:
    """Return log p(s, y) of states (n, S, H); −∞ for those that are equal to an earlier one: (n, S)."""
    return jnp.where(is_first(states), log_joint(parameters, states.astype(rows.dtype), rows), -jnp.inf)


def survivors(states: Array, scores: Array, population: int) -> Array:
    """Return the best states of each row, best first: (n, population, H)."""
    places = jax.lax.top_k(scores, population)[1]
    return jnp.take_along_axis(states, places[..., None], axis=1)


@partial(jax.jit, static_argnums=(0, 3, 4))
def first_states(log_joint: LogJoint, parameters: Any, rows: Array, population: int, n_components: int) -> Array:
    """Return the best ones of the empty state and those with one active cause; all states, if there are so few."""
    H = n_components
    if 2 ** min(H, MOST_DIGITS) <= population:
        every = np.arange(2**H)[:, None] >> np.arange(H) & 1
        return jnp.broadcast_to(jnp.asarray(every, jnp.int8), (len(rows), *every.shape))
    few = np.concatenate([np.zeros((1, H)), np.eye(H), np.zeros((max(0, population - H - 1), H))])
    states = jnp.broadcast_to(jnp.asarray(few, jnp.int8), (len(rows), *few.shape))
    return survivors(states, evaluate(log_joint, parameters, states, rows), population)


@partial(jax.jit, static_argnums=(0, 5, 6))
def bred(
    log_joint: LogJoint, parameters: Any, states: Array, rows: Array, key: Array, n_children: int, n_generations: int
) -> Array:
    """Return states after some generations, best first: (n, S, H)."""
    S, H = states.shape[1:]
    if 2 ** min(H, MOST_DIGITS) <= S:
        return states

    def generation(number: Array, states: Array) -> Array:
        children = children_of(jax.random.fold_in(key, number), states, n_children, 2)
        both = jnp.concatenate([states, children], axis=1)
        return survivors(both, evaluate(log_joint, parameters, both, rows), S)

    return jax.lax.fori_loop(0, n_generations, generation, states)


@partial(jax.jit, static_argnums=0)
def weighed(log_joint: LogJoint, parameters: Any, states: Array, rows: Array) -> tuple[Array, Array]:
    """Return probabilities of the states of each row (n, S), and log Σ p(s, y) (n,)."""
    scores = evaluate(log_joint, parameters, states, rows)
    return jax.nn.softmax(scores, axis=1), jax.nn.logsumexp(scores, axis=1)


@partial(jax.jit, static_argnums=(0, 1))
def stepped(
    log_joint: LogJoint,
    optimizer: Any,
    parameters: Any,
    moments: Any,
    states: Array,
    rows: Array,
    shown: Array,
    sizes: Any = None,
) -> tuple[Any, Any, Array]:
    """Return parameters after a step by the gradient of the bound, the optimizer's state, and Σ F before it.

    The gradient of log Σ p(s, y) over states is that of ⟨log p(s, y)⟩, the objective of the M-step. ``shown`` (n,) is
    zero for rows that only fill up the batch, whose step is shorter in proportion.
    ``sizes`` are lengths of steps for each array, if the optimizer gives directions only.
    """
    n_shown = jnp.sum(shown)

    def loss(parameters: Any) -> Array:
        return -jnp.sum(shown * weighed(log_joint, parameters, states, rows)[1]) / n_shown

    value, gradient = jax.value_and_grad(loss)(parameters)
    updates, moments = optimizer.update(gradient, moments, parameters)
    if sizes is not None:
        updates = jax.tree.map(lambda update, size: -size * update, updates, sizes)
    length = n_shown / len(shown)
    new = jax.tree.map(lambda a, b: (a + length * b).astype(a.dtype), parameters, updates)
    return new, moments, -value * n_shown


class GradientState(NamedTuple):
    """State of learning by gradients after some passes over the data."""

    parameters: Any
    moments: Any  # state of the optimizer
    states: np.ndarray  # (N, S, H) states of each row
    bounds: tuple[float, ...] = ()  # mean bound per shown row of each pass
    outcome: Outcome | None = None


def learn(
    log_joint: LogJoint,
    X: np.ndarray,
    weights: np.ndarray,
    start: GradientState,
    *,
    optimizer: Any,
    sizes: Any,
    batch_size: int,
    n_children: int,
    max_iter: int,
    tol: float,
    key: Array,
) -> GradientState:
    """Breed states and make a step of the parameters for each batch, over several passes over the rows X (N, D).

    A pass shows each row as often as its weight says (:mod:`multicause.solvers.presentation`). Learning ends when the
    mean bound stops rising.
    """
    expected = repetitions(weights)

    def one_pass(state: GradientState) -> GradientState:
        parameters, moments, states, number = state.parameters, state.moments, state.states.copy(), len(state.bounds)
        random = generator(key, number)
        rows = random.permutation(rows_to_show(expected, random))
        size, total = min(batch_size, len(rows)), 0.0
        for begin in range(0, len(rows), size):
            some = rows[begin : begin + size]
            shown = np.arange(size) < len(some)
            filled = np.resize(some, size)
            batch, own = jnp.asarray(X[filled]), jax.random.fold_in(jax.random.fold_in(key, number), begin)
            kept = bred(log_joint, parameters, jnp.asarray(states[filled]), batch, own, n_children, 1)
            states[some] = np.asarray(kept)[: len(some)]
            parameters, moments, bound = stepped(
                log_joint, optimizer, parameters, moments, kept, batch, jnp.asarray(shown, X.dtype), sizes
            )
            total += float(bound)
        bounds = (*state.bounds, total / len(rows))
        if not np.isfinite(bounds[-1]):
            return state._replace(bounds=bounds, outcome=Outcome.NON_FINITE)
        resting = has_settled(np.array(bounds)[:, None], tol)
        return GradientState(parameters, moments, states, bounds, Outcome.CONVERGED if resting else None)

    return run_loop(
        GradientState,
        lambda: start,
        one_pass,
        goes_on=lambda state: state.outcome is None and len(state.bounds) < max_iter,
    )


def check_log_joint(log_joint: LogJoint, parameters: Any, rows: np.ndarray, n_components: int) -> None:
    """Raise ValueError if a user's function fails on some rows, is not pure, or returns another shape or NaN."""
    n, S = len(rows), 3
    states = jnp.asarray(np.random.RandomState(0).uniform(size=(n, S, n_components)) < 0.5, rows.dtype)
    given = (parameters, states, jnp.asarray(rows))
    what = (
        "log_joint must take parameters, states (n, S, H) and rows (n, D), and return log p(s, y) of every state "
        "and row, an array (n, S)"
    )
    try:
        found, again = (np.asarray(log_joint(*given)) for _ in range(2))
    except Exception as error:
        raise ValueError(f"{what}; it failed with {type(error).__name__}: {error}.") from error
    if found.shape != (n, S):
        raise ValueError(f"{what}, here {(n, S)}; got {found.shape}. Sum over features and causes alone.")
    if np.isnan(found).any() or np.isposinf(found).any():
        raise ValueError(f"{what}, without NaN and +∞; {np.sum(np.isnan(found))} of {found.size} values were NaN.")
    if not np.array_equal(found, again):
        raise ValueError(
            f"{what}, the same whenever it is called with the same arguments; two calls differed. Draw no random "
            "numbers in it, and change nothing outside of it."
        )
    try:
        value, gradient = jax.jit(jax.value_and_grad(lambda *all_of: jnp.sum(log_joint(*all_of))))(*given)
    except Exception as error:
        raise ValueError(
            f"{what}, and be written with jax.numpy, so that it can be compiled and differentiated; that failed with "
            f"{type(error).__name__}: {str(error).splitlines()[0]}"
        ) from error
    # Sums of all values differ by rounding errors only, unless the function depends on what it computed before.
    if not np.isclose(float(value), found.sum(), rtol=1e-3):
        raise ValueError(
            f"{what}, the same when it is compiled; the compiled function differed. It must depend on nothing but its "
            "arguments."
        )
    alone = np.asarray(log_joint(parameters, states[:1, :1], jnp.asarray(rows[:1])))
    if not np.allclose(alone, found[:1, :1], rtol=1e-3):
        raise ValueError(f"{what}, for each state and row on its own; it changed with the other rows and states.")
    bad = [leaf for leaf in jax.tree.leaves(gradient) if not np.isfinite(np.asarray(leaf)).all()]
    if bad and np.isfinite(found).all():
        raise ValueError(
            f"{what}, whose gradient is finite; derivatives with respect to {len(bad)} of the arrays have NaN or "
            "infinity. Bound arguments of logarithms and square roots away from zero."
        )
