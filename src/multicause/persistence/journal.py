"""Where learning stands: the states of its loops, so that it can be taken up again after a crash.

A loop keeps all that its next step needs in one record, its *state*, and replaces the record after every step. Loops
may lie inside each other (annealing inside a search, variants inside repair), under one rule: a step runs at most one
inner loop. The states of the loops that are running, outermost first, and the state of the random numbers are then all
that there is to know. Learning is taken up by running it again from its beginning: each loop, when it is entered, finds
the state that it had, instead of its first one, and finished work is skipped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

State = TypeVar("State")


class Record(NamedTuple):
    """What a checkpoint has to know of learning."""

    beginning: dict[str, Any]  # random numbers before learning
    random: dict[str, Any]  # and now
    states: tuple[Any, ...]  # of the running loops, outermost first


class Loop(Generic[State]):
    """One running loop."""

    def __init__(self, state: State) -> None:
        self.state = state


class Journal:
    """The running loops of one fit.

    ``random`` is where all random numbers of the fit come from; ``past`` is the record of a fit that was interrupted.
    """

    def __init__(self, random: np.random.RandomState | None = None, past: Record | None = None) -> None:
        self._past, self._waiting = past, [] if past is None else list(past.states)
        if past is not None:
            # A generator of our own: that of the user, or of all NumPy, must not jump back.
            random = np.random.RandomState()
            random.set_state(past.beginning)
        self.random = np.random.RandomState(0) if random is None else random
        self._beginning = self.random.get_state(legacy=False)
        self._running: list[Loop[Any]] = []

    @contextmanager
    def loop(self, kind: type[State], first: Callable[[], State]) -> Iterator[Loop[State]]:
        """Enter a loop whose states are of one kind, with that which it had when interrupted, or with its first."""
        if self._waiting:
            loop = Loop(self._waiting.pop(0))
            if not isinstance(loop.state, kind):
                raise ValueError(
                    f"The checkpoint does not fit this way of learning: expected a state {kind.__name__}, got "
                    f"{type(loop.state).__name__}. Begin anew without resume."
                )
            if not self._waiting and self._past is not None:
                self.random.set_state(self._past.random)
        else:
            loop = Loop(first())
        self._running.append(loop)
        try:
            yield loop
        finally:
            self._running.pop()

    @property
    def innermost(self) -> Any:
        """State of the innermost loop that is running."""
        return self._running[-1].state

    def record(self) -> Record:
        """Where learning stands, for a checkpoint."""
        states = tuple(loop.state for loop in self._running)
        return Record(self._beginning, self.random.get_state(legacy=False), states)
