"""States of rows under a log joint: bred from those of earlier passes, or found by a beam search.

Children of a state arise by mutation and crossover (:mod:`multicause.posteriors.evolution.breeding`), or are guided by
the gradient of the log joint with respect to the state: where log p(s, y) rises most steeply, a cause is switched on or
off. For a linear model that is the cause with the largest projection on the residual.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from multicause.arrays import Array
from multicause.posteriors import Beam, Evolved
from multicause.posteriors.beams.beam_search import numbers_of_states
from multicause.posteriors.evolution.breeding import PREFERENCE, children_of, is_first
from multicause.solvers.joint_model import JointModel

# Number of causes from which on there are more states than any population has.
MOST_DIGITS = 40
# Part of the children that are guided by gradients, and how many of these have the same parent.
GUIDED, SIBLINGS = 0.5, 4


def n_states(posterior: Evolved | Beam, n_components: int) -> int:
    """Return the number of states of a row."""
    if isinstance(posterior, Beam):
        return 1 + sum(numbers_of_states(n_components, int(posterior.max_active), int(posterior.width)))
    return min(int(posterior.population), 2 ** min(n_components, MOST_DIGITS))


def evaluate(model: JointModel, parameters: Any, states: Array, rows: Array) -> Array:
    """Return log p(s, y) of states (n, S, H) with matrix products in full precision; −∞ in place of NaN: (n, S)."""
    with jax.default_matmul_precision("highest"):
        scores = model.log_joint(parameters, states.astype(rows.dtype), rows)
    return jnp.where(jnp.isnan(scores), -jnp.inf, scores)


def weighed(model: JointModel, parameters: Any, states: Array, rows: Array) -> tuple[Array, Array]:
    """Return probabilities of the states of each row (n, S), each counted once, and log Σ p(s, y) (n,)."""
    scores = jnp.where(is_first(states), evaluate(model, parameters, states, rows), -jnp.inf)
    return jax.nn.softmax(scores, axis=1), jax.nn.logsumexp(scores, axis=1)


def new_states(posterior: Evolved | Beam, model: JointModel, parameters: Any, rows: Array, n_components: int) -> Array:
    """Return states of rows that have none yet (n, S, H); those of a row do not depend on the other rows."""
    size = n_states(posterior, n_components)
    if 2 ** min(n_components, MOST_DIGITS) <= size:
        every = np.arange(2**n_components)[:, None] >> np.arange(n_components) & 1
        return jnp.broadcast_to(jnp.asarray(every, jnp.int8), (len(rows), *every.shape))
    if isinstance(posterior, Beam):
        return _beam(posterior, model, parameters, rows, n_components)
    first = np.concatenate([np.zeros((1, n_components)), np.eye(n_components)])
    first = np.concatenate([first, np.zeros((max(0, size - len(first)), n_components))])
    states = jnp.broadcast_to(jnp.asarray(first, jnp.int8), (len(rows), *first.shape))
    states, _ = _survivors(states, evaluate(model, parameters, states, rows), size)
    keys = jnp.broadcast_to(jax.random.PRNGKey(0), (len(rows), 2))
    return _bred(posterior, model, parameters, states, rows, keys, int(posterior.n_generations))


def next_states(
    posterior: Evolved | Beam, model: JointModel, parameters: Any, states: Array, rows: Array, key: Array
) -> Array:
    """Return the states (n, S, H) of the next pass: one generation further, or those of a new beam search."""
    n, S, H = states.shape
    if 2 ** min(H, MOST_DIGITS) <= S:
        return states
    if isinstance(posterior, Beam):
        return _beam(posterior, model, parameters, rows, H)
    return _bred(posterior, model, parameters, states, rows, jax.random.split(key, n), 1)


def _bred(
    posterior: Evolved, model: JointModel, parameters: Any, states: Array, rows: Array, keys: Array, n_generations: int
) -> Array:
    """Return states after some generations, best first; ``keys`` (n, 2) are random keys of the rows."""
    n_children, size = int(posterior.n_children), states.shape[1]
    n_guided = int(GUIDED * n_children)

    def generation(number: Array, population: tuple[Array, Array]) -> tuple[Array, Array]:
        states, scores = population
        own = jax.vmap(lambda key: jax.random.split(jax.random.fold_in(key, number)))(keys)
        mutants = jax.vmap(lambda key, some: children_of(key, some[None], n_children - n_guided, 2)[0])(
            own[:, 0], states
        )
        guided = _guided(model, parameters, states, rows, own[:, 1], n_guided) if n_guided else mutants[:, :0]
        children = jnp.concatenate([mutants, guided], axis=1)
        scores = jnp.concatenate([scores, evaluate(model, parameters, children, rows)], axis=1)
        return _survivors(jnp.concatenate([states, children], axis=1), scores, size)

    first = states, evaluate(model, parameters, states, rows)
    return jax.lax.fori_loop(0, n_generations, generation, first)[0]


def _survivors(states: Array, scores: Array, size: int) -> tuple[Array, Array]:
    """Return the best states of each row, each once, best first (n, size, H), and their log joints (n, size)."""
    best, places = jax.lax.top_k(jnp.where(is_first(states), scores, -jnp.inf), size)
    return jnp.take_along_axis(states, places[..., None], axis=1), best


def _guided(model: JointModel, parameters: Any, states: Array, rows: Array, keys: Array, n_children: int) -> Array:
    """Return children that differ from a parent in a cause chosen by the gradient of the log joint.

    Every second parent loses one of its active causes before, which its child then exchanges for another one.
    """
    S, H = states.shape[1:]
    siblings = min(SIBLINGS, H)
    n_parents = -(-n_children // siblings)

    def draw(key: Array, states: Array) -> tuple[Array, Array, Array]:
        of_rank, of_loss, of_choice = jax.random.split(key, 3)
        rank = S * jax.random.uniform(of_rank, (n_parents,), jnp.float32) ** PREFERENCE
        parents = states[jnp.minimum(rank.astype(jnp.int32), S - 1)]
        active = (parents > 0) & (jnp.arange(n_parents) % 2 == 1)[:, None]
        victim = jnp.argmax(jnp.where(active, jax.random.uniform(of_loss, active.shape, jnp.float32), -1), axis=1)
        lost = active & (victim[:, None] == jnp.arange(H))
        return jnp.where(lost, 0, parents), lost, jax.random.gumbel(of_choice, active.shape, rows.dtype)

    parents, lost, noise = jax.vmap(draw)(keys, states)
    slope = jax.grad(lambda values: jnp.sum(evaluate(model, parameters, values, rows)))(parents.astype(rows.dtype))
    gain = jnp.nan_to_num(jnp.where(parents > 0, -slope, slope)) + noise
    places = jax.lax.top_k(jnp.where(lost, -jnp.inf, gain), siblings)[1]
    changed = places[..., None] == jnp.arange(H)
    children = jnp.where(changed, 1 - parents[:, :, None], parents[:, :, None])
    return children.reshape(len(states), -1, H)[:, :n_children].astype(jnp.int8)


def _beam(posterior: Beam, model: JointModel, parameters: Any, rows: Array, n_components: int) -> Array:
    """Return the empty state and those that a beam search keeps, of any size up to ``max_active``: (n, S, H)."""
    n, H = len(rows), n_components
    level = jnp.zeros((n, 1, H), jnp.int8)
    found, causes = [level], jnp.eye(H, dtype=jnp.int8)
    for size in numbers_of_states(H, int(posterior.max_active), int(posterior.width)):
        grown = jnp.maximum(level[:, :, None], causes).reshape(n, -1, H)
        larger = jnp.sum(grown, axis=-1) > jnp.repeat(jnp.sum(level, axis=-1), H, axis=1)
        level, _ = _survivors(grown, jnp.where(larger, evaluate(model, parameters, grown, rows), -jnp.inf), size)
        found.append(level)
    return jnp.concatenate(found, axis=1)
