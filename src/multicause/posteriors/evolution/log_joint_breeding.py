"""Evolutionary search for the states of rows under any log joint that can be differentiated.

Children of a state arise by mutation and crossover (:mod:`multicause.posteriors.evolution.breeding`), or are guided by
the gradient of the log joint with respect to the state: where log p(s, y) rises most steeply, a cause is switched on or
off. For a linear model that is the cause with the largest projection on the residual.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from multicause.arrays import Array
from multicause.posteriors.evolution.breeding import PREFERENCE, children_of
from multicause.posteriors.log_joint_search import MOST_DIGITS, LogJointOfStates, LogJointSearch, survivors

# Part of the children that are guided by gradients, and how many of these have the same parent.
GUIDED, SIBLINGS = 0.5, 4


@dataclass(frozen=True)
class LogJointBreeding(LogJointSearch):
    """Search that keeps a population of states for each row, of which each pass over the data breeds a generation."""

    population: int
    n_children: int
    n_generations: int

    def n_states(self, n_components: int) -> int:
        """Return the size of a population, at most the number of all states."""
        return min(self.population, 2 ** min(n_components, MOST_DIGITS))

    def n_at_once(self, n_components: int) -> int:
        """Return the number of states of a population and its children, or of the first states."""
        return max(self.n_states(n_components) * 2, n_components + 1)

    def _search(self, log_joint: LogJointOfStates, n_rows: int, n_components: int) -> Array:
        """Return the best of the empty state and single causes, after ``n_generations`` generations."""
        size = self.n_states(n_components)
        first = np.concatenate([np.zeros((1, n_components)), np.eye(n_components)])
        first = np.concatenate([first, np.zeros((max(0, size - len(first)), n_components))])
        states = jnp.broadcast_to(jnp.asarray(first, jnp.int8), (n_rows, *first.shape))
        states, _ = survivors(states, log_joint(states), size)
        keys = jnp.broadcast_to(jax.random.PRNGKey(0), (n_rows, 2))
        return self._bred(log_joint, states, keys, self.n_generations)

    def _improve(self, log_joint: LogJointOfStates, states: Array, key: Array) -> Array:
        """Return the states of the next generation."""
        return self._bred(log_joint, states, jax.random.split(key, len(states)), 1)

    def _bred(self, log_joint: LogJointOfStates, states: Array, keys: Array, n_generations: int) -> Array:
        """Return states after some generations, best first; ``keys`` are random keys of the rows."""
        size, n_guided = states.shape[1], int(GUIDED * self.n_children)

        def generation(number: Array, population: tuple[Array, Array]) -> tuple[Array, Array]:
            states, scores = population
            keys_of_rows = jax.vmap(lambda key: jax.random.split(jax.random.fold_in(key, number)))(keys)
            mutants = jax.vmap(lambda key, some: children_of(key, some[None], self.n_children - n_guided, 2)[0])(
                keys_of_rows[:, 0], states
            )
            guided = (
                guided_children(log_joint, states, keys_of_rows[:, 1], n_guided, scores.dtype)
                if n_guided
                else states[:, :0]
            )
            children = jnp.concatenate([mutants, guided], axis=1)
            scores = jnp.concatenate([scores, log_joint(children)], axis=1)
            return survivors(jnp.concatenate([states, children], axis=1), scores, size)

        return jax.lax.fori_loop(0, n_generations, generation, (states, log_joint(states)))[0]


def guided_children(
    log_joint: LogJointOfStates, states: Array, keys: Array, n_children: int, dtype: jnp.dtype
) -> Array:
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
        return jnp.where(lost, 0, parents), lost, jax.random.gumbel(of_choice, active.shape, dtype)

    parents, lost, noise = jax.vmap(draw)(keys, states)
    slope = jax.grad(lambda values: jnp.sum(log_joint(values)))(parents.astype(dtype))
    gain = jnp.nan_to_num(jnp.where(parents > 0, -slope, slope)) + noise
    places = jax.lax.top_k(jnp.where(lost, -jnp.inf, gain), siblings)[1]
    changed = places[..., None] == jnp.arange(H)
    children = jnp.where(changed, 1 - parents[:, :, None], parents[:, :, None])
    return children.reshape(len(states), -1, H)[:, :n_children].astype(jnp.int8)
