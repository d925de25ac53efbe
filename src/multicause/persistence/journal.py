"""Journal of a fit: the states of its running loops, from which learning resumes after a crash.

A loop keeps everything that its next step needs in one record, its *state*, and replaces the record after every step.
Loops may be nested (annealing inside a search, variants inside repair), under one rule: a step runs at most one inner
loop. The states of the running loops, outermost first, and the state of the random generator then describe the fit
completely. A fit resumes by running again from its beginning: each loop, when it is entered, gets its saved state
instead of its initial one, and finished work is skipped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

State = TypeVar("State")


class LoopRecord(NamedTuple):
    """Resumable state of learning, as stored in a checkpoint."""

    beginning: dict[str, Any]  # state of the random generator before learning
    random: dict[str, Any]  # its current state
    states: tuple[Any, ...]  # states of the running loops, outermost first


class Loop(Generic[State]):
    """Running loop, whose ``state`` is replaced after every step."""

    def __init__(self, state: State) -> None:
        self.state = state


class Journal:
    """Running loops of one fit.

    ``random`` is the source of all random numbers of the fit; ``past`` is the record of an interrupted fit to resume.
    """

    def __init__(self, random: np.random.RandomState | None = None, past: LoopRecord | None = None) -> None:
        self._past, self._waiting = past, [] if past is None else list(past.states)
        if past is not None:
            # Use a separate generator: the user's, or NumPy's global one, must not be reset.
            random = np.random.RandomState()
            random.set_state(past.beginning)
        self.random = np.random.RandomState(0) if random is None else random
        self._beginning = self.random.get_state(legacy=False)
        self._running: list[Loop[Any]] = []

    @contextmanager
    def loop(self, kind: type[State], first: Callable[[], State]) -> Iterator[Loop[State]]:
        """Enter a loop with its saved state if the fit is resumed, else with the state that ``first`` returns."""
        if self._waiting:
            loop = Loop(self._waiting.pop(0))
            if not isinstance(loop.state, kind):
                raise ValueError(
                    f"The checkpoint belongs to another learning algorithm: expected a state {kind.__name__}, got "
                    f"{type(loop.state).__name__}. Fit without resume to start over."
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
        """Return the state of the innermost running loop."""
        return self._running[-1].state

    def record(self) -> LoopRecord:
        """Return the resumable state of learning, for a checkpoint."""
        states = tuple(loop.state for loop in self._running)
        return LoopRecord(self._beginning, self.random.get_state(legacy=False), states)
