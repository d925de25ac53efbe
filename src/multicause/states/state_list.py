"""Lists of states, each of which says which causes are active together, and with which strengths."""

from dataclasses import dataclass
from functools import cache
from itertools import combinations, product
from math import comb
from typing import NamedTuple

import numpy as np


class Level(NamedTuple):
    """States with the same number of active causes."""

    states: slice  # their range in the list
    members: np.ndarray  # (states, active causes) which causes are active, in ascending order
    parents: np.ndarray  # (states,) indices, in the previous level, of the states without the last of these causes

    @property
    def last(self) -> np.ndarray:
        """Return the last active cause of each state: (states,)."""
        return self.members[:, -1]


@dataclass(frozen=True)
class StateList:
    """List of all states of H causes of which at most ``max_active`` are active.

    They are ordered by their number of active causes if ``sparsest_first``, and then by their binary number, with cause
    0 as the lowest digit. State 0 has no active cause. Arrays over states are (..., S, D), arrays over causes (H, D).

    Active causes have one of the ``strengths``, by default one; ``levels`` and ``padded_members`` need that.
    """

    n_components: int
    max_active: int
    sparsest_first: bool = True
    strengths: tuple[float, ...] = (1,)

    @property
    def n_states(self) -> int:
        """Return the number of states, including the empty one."""
        n_strengths = len(self.strengths)
        return sum(comb(self.n_components, active) * n_strengths**active for active in range(self.max_active + 1))

    def states(self) -> np.ndarray:
        """Return the states as a matrix of zeros and strengths: (S, H)."""
        return _matrix(self)

    def levels(self) -> tuple[Level, ...]:
        """Return the states grouped by their number of active causes; needs ``sparsest_first``."""
        return _levels(self)

    def padded_members(self) -> np.ndarray:
        """Return the indices of the active causes of each state, padded with H: (S, max_active)."""
        return _padded_members(self)


def all_states(n_components: int, strengths: tuple[float, ...] = (1,)) -> StateList:
    """Return the list of all states, in the order of numbers with cause 0 as the lowest digit."""
    return StateList(n_components, n_components, sparsest_first=False, strengths=strengths)


def sparse_states(n_components: int, max_active: int, strengths: tuple[float, ...] = (1,)) -> StateList:
    """Return the list of all states with at most ``max_active`` active causes, sparsest first."""
    return StateList(n_components, min(max_active, n_components), strengths=strengths)


def single_causes(n_components: int) -> StateList:
    """Return the list of the empty state and the H states with one active cause."""
    return StateList(n_components, 1)


@cache
def _levels(tree: StateList) -> tuple[Level, ...]:
    assert tree.sparsest_first
    levels, start = [], 0
    before: dict[tuple[int, ...], int] = {}
    for active in range(tree.max_active + 1):
        # Ordered by the last cause, then by the one before: this is the order of binary numbers.
        chosen = sorted(combinations(range(tree.n_components), active), key=lambda causes: causes[::-1])
        members = np.array(chosen, dtype=int).reshape(len(chosen), active)
        parents = np.array([before.get(causes[:-1], 0) for causes in chosen])
        levels.append(Level(slice(start, start + len(members)), members, parents))
        before = {causes: place for place, causes in enumerate(chosen)}
        start += len(members)
    return tuple(levels)


@cache
def _matrix(tree: StateList) -> np.ndarray:
    if tree.strengths != (1,):
        matrix = _matrix_of_strengths(tree)
    elif tree.sparsest_first:
        matrix = np.zeros((tree.n_states, tree.n_components), dtype=np.int8)
        for states, members, _ in _levels(tree):
            np.put_along_axis(matrix[states], members, 1, axis=1)
    else:
        matrix = (np.arange(tree.n_states)[:, None] >> np.arange(tree.n_components) & 1).astype(np.int8)
    matrix.setflags(write=False)
    return matrix


def _matrix_of_strengths(tree: StateList) -> np.ndarray:
    """Return the states with all strengths of active causes; small integers, if all strengths are."""
    values = np.array([0, *tree.strengths], dtype=float)
    small = bool((values == np.round(values)).all() and np.abs(values).max() <= np.iinfo(np.int8).max)
    if not tree.sparsest_first:
        places = len(values) ** np.arange(tree.n_components)
        digits = np.arange(tree.n_states)[:, None] // places % len(values)
        return values[digits].astype(np.int8 if small else float)
    matrix = np.zeros((tree.n_states, tree.n_components), dtype=np.int8 if small else float)
    row = 0
    for causes in _levels(StateList(tree.n_components, tree.max_active)):
        active = causes.members.shape[1]
        strengths = np.array(list(product(tree.strengths, repeat=active))).reshape(
            len(tree.strengths) ** active, active
        )
        for members in causes.members:
            matrix[row : row + len(strengths), members] = strengths
            row += len(strengths)
    return matrix


@cache
def _padded_members(tree: StateList) -> np.ndarray:
    states = tree.states()
    causes = np.where(states, np.arange(tree.n_components), tree.n_components)
    members = np.sort(causes, axis=1)[:, : tree.max_active]
    members.setflags(write=False)
    return members


def pairs_of(n_causes: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the indices of the first and the second cause of all pairs."""
    return np.triu_indices(n_causes, k=1)
