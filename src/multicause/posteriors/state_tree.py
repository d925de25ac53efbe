"""Lists of states that grow one cause at a time, so that each state costs what its newest cause adds."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np

from multicause.arrays import Array


@dataclass(frozen=True)
class StateTree:
    """Binary states in an order in which each is an earlier one, its parent, plus one cause.

    State 0 has no active cause. A generation is a tuple of steps ``(cause, start, stop)``: the states ``start``
    to ``stop`` with ``cause`` switched on are appended. Steps of one generation have their parents in earlier
    generations, so that all arrays are slices and joins, never gathers.
    """

    n_components: int
    generations: tuple[tuple[tuple[int, int, int], ...], ...]

    @property
    def n_states(self) -> int:
        """Number of states, the empty one included."""
        return 1 + sum(stop - start for steps in self.generations for _, start, stop in steps)

    def states(self) -> np.ndarray:
        """The states as a matrix of zeros and ones: (S, H)."""
        return _matrix(self)

    def grow(self, root: Array, leaves: Array, join: Callable[[Array, Array], Array]) -> Array:
        """Values of all states, from the empty state's (1, ...) and the causes' (H, ...), by joins with the parent.

        ``root`` and ``leaves`` may be trees of arrays; then so are the arguments of ``join`` and the result.
        """
        grown = root
        for steps in self.generations:
            new = [join(_rows(grown, start, stop), _rows(leaves, cause, cause + 1)) for cause, start, stop in steps]
            grown = jax.tree.map(lambda *blocks: jnp.concatenate(blocks), grown, *new)
        return grown

    def descend(self, values: Array, shares: Callable[[int, slice, slice], tuple[Array, Array]]) -> Array:
        """Hand the values of all states (..., S, D) down to the causes: (..., H, D), the reverse of :meth:`grow`.

        ``shares(cause, parents, children)`` says which part of a child's value its newest cause gets, and which
        part goes on to the parent.
        """
        received: list[list[Array]] = [[] for _ in range(self.n_components)]
        start_of_generation = self.n_states
        for steps in reversed(self.generations):
            start_of_generation -= sum(stop - start for _, start, stop in steps)
            position = start_of_generation
            earlier = values[..., :position, :]
            for cause, start, stop in steps:
                children = slice(position, position + stop - start)
                to_cause, to_parent = shares(cause, slice(start, stop), children)
                received[cause].append(jnp.sum(values[..., children, :] * to_cause, axis=-2))
                earlier = earlier.at[..., start:stop, :].add(values[..., children, :] * to_parent)
                position = children.stop
            values = earlier
        return jnp.stack([sum(parts[1:], parts[0]) for parts in received], axis=-2)


def all_states(n_components: int) -> StateTree:
    """All 2^H states, in the order of binary numbers with cause 0 as the lowest digit."""
    return StateTree(n_components, tuple(((cause, 0, 2**cause),) for cause in range(n_components)))


def _rows(tree: Array, start: int, stop: int) -> Array:
    return jax.tree.map(lambda array: array[start:stop], tree)


@cache
def _matrix(tree: StateTree) -> np.ndarray:
    matrix = np.zeros((tree.n_states, tree.n_components), dtype=np.int8)
    position = 1
    for steps in tree.generations:
        for cause, start, stop in steps:
            matrix[position : position + stop - start] = matrix[start:stop]
            matrix[position : position + stop - start, cause] = 1
            position += stop - start
    matrix.setflags(write=False)
    return matrix
