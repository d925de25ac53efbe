"""The loop of every learning algorithm: resume, callbacks and stopping.

An algorithm is a *state* (a NamedTuple with everything that the next step needs) and a few functions: ``begin`` returns
the first state, ``step`` the next one, ``goes_on`` says whether there is another step, and ``report`` what callbacks
receive after the last step. This module alone knows the journal, from which a fit resumes, and the watcher, which calls
callbacks and asks for a stop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from multicause.outcomes import Outcome
from multicause.persistence.journal import Journal

State = TypeVar("State")
#: Called with the progress of every iteration; returns whether learning should stop.
Watch = Callable[[Any], bool]


def report_nothing(before: Any, after: Any) -> Iterable[Any]:
    """Return no progress, as for loops whose steps run inner loops that report theirs."""
    return ()


def set_stopped(state: Any) -> Any:
    """Return the state with the outcome of a fit that was stopped by the user or a callback."""
    return state._replace(outcome=Outcome.STOPPED)


def run_loop(
    kind: type[State],
    begin: Callable[[], State],
    step: Callable[[State], State],
    *,
    goes_on: Callable[[State], bool],
    report: Callable[[State, State], Iterable[Any]] = report_nothing,
    stop: Callable[[State], State] = set_stopped,
    watch: Watch | None = None,
    journal: Journal | None = None,
) -> State:
    """Run steps as long as the state ``goes_on``, and return the last state.

    Parameters
    ----------
    kind : type
        Class of the state, by which a checkpoint of another algorithm is recognized.
    begin : function
        Return the first state. Not called if the fit resumes from a checkpoint inside this loop.
    step : function of a state
        Return the next state. It may run at most one inner loop.
    goes_on : function of a state
        Return whether there is another step. After ``stop`` it must return False.
    report : function of the states before and after a step, optional
        Return the progress of the iterations of this step, for the watcher; empty if there is nothing to report.
    stop : function of a state, optional
        Return the state in which the watcher has stopped learning; by default with ``outcome=Outcome.STOPPED``.
    watch : function of a progress, optional
        Return whether learning should stop.
    journal : Journal, optional
        Journal of the fit.
    """
    with (Journal() if journal is None else journal).loop(kind, begin) as loop:
        while goes_on(loop.state):
            before = loop.state
            # The new state is in the journal before it is reported, so that a callback can save a checkpoint of it.
            loop.state = step(before)
            if watch is None:
                continue
            answers = [watch(progress) for progress in report(before, loop.state)]
            if any(answers):
                loop.state = stop(loop.state)
        return loop.state
