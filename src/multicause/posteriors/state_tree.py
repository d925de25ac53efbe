"""Lists of states that grow one cause at a time, so that each state costs what its newest cause adds."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from math import comb
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from multicause.arrays import Array


class Step(NamedTuple):
    """Some states that are born together: the states ``parents`` with one more cause are the states ``children``."""

    cause: int
    parents: slice
    children: slice


@dataclass(frozen=True)
class StateTree:
    """Binary states in an order in which each is an earlier one, its parent, plus one cause.

    State 0 has no active cause. A generation is a tuple of ``(cause, start, stop)``: the states ``start`` to ``stop``
    with ``cause`` switched on are appended. Parents belong to earlier generations, so that all arrays are slices and
    joins, never gathers. Arrays over states are (..., S, D), arrays over causes (..., H, D).
    """

    n_components: int
    generations: tuple[tuple[tuple[int, int, int], ...], ...]

    @property
    def n_states(self) -> int:
        """Number of states, the empty one included."""
        return 1 + sum(stop - start for steps in self.generations for _, start, stop in steps)

    def steps(self) -> list[list[Step]]:
        """All steps, generation by generation."""
        return _steps(self)

    @property
    def max_active(self) -> int:
        """Most causes that are active in one state."""
        return int(self.states().sum(axis=1).max())

    @property
    def sparse(self) -> bool:
        """Whether only few of all 2^H states are in the list because states have few active causes."""
        return self.max_active < self.n_components

    def all_steps(self) -> list[Step]:
        """All steps in one list."""
        return [step for steps in self.steps() for step in steps]

    def kins_of(self, states: slice) -> list[int]:
        """Where those begin that are born together (the empty state, or children of one step) and make up a slice."""
        starts = [0, *(step.children.start for step in self.all_steps())]
        return [start for start in starts if states.start <= start < states.stop]

    def heirs(self, step: Step) -> list[int]:
        """Causes that are added to children of this step."""
        born = step.children.start
        return sorted({other.cause for other in self.all_steps() if other.parents.start <= born < other.parents.stop})

    def states(self) -> np.ndarray:
        """The states as a matrix of zeros and ones: (S, H)."""
        return _matrix(self)

    def grow(self, root: Array, make: Callable[[Array, Step], Array]) -> Array:
        """Values of all states (..., S, D), from the empty state's (..., 1, D) and ``make(parents' values, step)``."""
        grown = root
        for steps in self.steps():
            new = [make(grown[..., step.parents, :], step) for step in steps]
            grown = jnp.concatenate([grown, *new], axis=-2)
        return grown

    def descend(self, values: Array, shares: Callable[[Step], tuple[Array, Array]]) -> Array:
        """Hand the values of all states (..., S, D) down to the causes: (..., H, D), the reverse of :meth:`grow`.

        ``shares(step)`` says which part of a child's value its newest cause gets, and which part its parent.
        """
        received: list[list[Array]] = [[] for _ in range(self.n_components)]
        for steps in reversed(self.steps()):
            earlier = values[..., : steps[0].children.start, :]
            for step in steps:
                to_cause, to_parent = shares(step)
                received[step.cause].append(jnp.sum(values[..., step.children, :] * to_cause, axis=-2))
                earlier = earlier.at[..., step.parents, :].add(values[..., step.children, :] * to_parent)
            values = earlier
        return jnp.stack([sum(parts[1:], parts[0]) for parts in received], axis=-2)


def all_states(n_components: int) -> StateTree:
    """All 2^H states, in the order of binary numbers with cause 0 as the lowest digit."""
    return StateTree(n_components, tuple(((cause, 0, 2**cause),) for cause in range(n_components)))


def sparse_states(n_components: int, max_active: int) -> StateTree:
    """All states with at most ``max_active`` active causes, sparsest first.

    Within a level, states are ordered by their newest, that is last, cause: the parents of all states that end with a
    cause are then the first states of the level before.
    """
    generations, level = [], 0
    for active in range(1, max_active + 1):
        steps = [(h, level, level + comb(h, active - 1)) for h in range(active - 1, n_components)]
        generations.append(tuple(steps))
        level += comb(n_components, active - 1)
    return StateTree(n_components, tuple(generations))


def single_causes(n_components: int) -> StateTree:
    """The empty state and the H states with one active cause."""
    return StateTree(n_components, (tuple((cause, 0, 1) for cause in range(n_components)),))


@cache
def _steps(tree: StateTree) -> list[list[Step]]:
    born, all_steps = 1, []
    for generation in tree.generations:
        steps = []
        for cause, start, stop in generation:
            steps.append(Step(cause, slice(start, stop), slice(born, born + stop - start)))
            born += stop - start
        all_steps.append(steps)
    return all_steps


@cache
def _matrix(tree: StateTree) -> np.ndarray:
    matrix = np.zeros((tree.n_states, tree.n_components), dtype=np.int8)
    for step in (step for steps in _steps(tree) for step in steps):
        matrix[step.children] = matrix[step.parents]
        matrix[step.children, step.cause] = 1
    matrix.setflags(write=False)
    return matrix
