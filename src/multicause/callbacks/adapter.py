"""Session of a running fit, and base class of callbacks, on top of scikit-learn's callback interface.

This interface is experimental. It is used here and in ``progress_bar.py``, which extends scikit-learn's bar; its
private names are in :mod:`multicause.runtime.scikit_learn`.
"""

from __future__ import annotations

import copy
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
from sklearn.callback import CallbackSupportMixin
from sklearn.callback import ProgressBar as SklearnProgressBar
from sklearn.utils import check_random_state

from multicause.engines.base import Data
from multicause.persistence.checkpoints import Identity, Resumption, identity_of, read_checkpoint
from multicause.persistence.journal import Journal
from multicause.runtime.garbage import fewer_collections
from multicause.runtime.interruption import Interruption, interruptible
from multicause.runtime.scikit_learn import callback_context, callbacks_of, parent_context, remove_callbacks

__all__ = ["CallbackSupportMixin", "FitSession", "History", "Iteration", "IterationCallback", "SklearnProgressBar"]


class History(NamedTuple):
    """Bounds and temperatures that a fit has reported so far."""

    n_iterations: int = 0  # of all phases
    bounds: tuple[float, ...] = ()
    temperatures: tuple[float, ...] = ()


class FitSession:
    """Running fit: its random numbers, its journal, and the callbacks that are called after every iteration.

    Created by :func:`fit_session`. Called with the progress of each iteration, it returns whether learning should stop.
    """

    def __init__(
        self,
        estimator: Any,
        data: tuple[np.ndarray | Data | None, ...],
        resume: str | PathLike[str] | None,
        interruption: Interruption,
    ) -> None:
        self._estimator, self._data, self._interruption = estimator, data, interruption
        self._identity: Identity | None = None
        self._stopped = False
        self._context: Any = None
        past = None if resume is None else read_checkpoint(resume, self.identity)
        self.history = History() if past is None else History(**past.history)
        self._saved_states = [] if past is None else list(past.callback_states)
        if past is None:
            self.journal = Journal(check_random_state(estimator.random_state))
        else:
            self.journal = Journal(past=past.record)

    @property
    def every_iteration(self) -> bool:
        """Return whether a callback needs the model after every single iteration, or may stop the fit there."""
        return any(getattr(callback, "every_iteration", True) for callback in callbacks_of(self._estimator))

    @property
    def needs_models(self) -> bool:
        """Return whether a callback may look at the parameters; otherwise they need not be copied for reports."""
        return bool(callbacks_of(self._estimator))

    @property
    def random(self) -> np.random.RandomState:
        """Return the source of all random numbers of the fit."""
        return self.journal.random

    @property
    def identity(self) -> Identity:
        """Return the identity of this fit; computed on demand, because it reads all data."""
        if self._identity is None:
            self._identity = identity_of(self._estimator, *self._data)
        return self._identity

    def start_reporting(
        self,
        X: np.ndarray,
        y: Any,
        weights: np.ndarray | None,
        describe: Callable[[Any, History], dict[str, Any]],
        *,
        bound: Callable[[Any], float] | None = None,
        summarize: Callable[[Any], str] | None = None,
        n_tasks: int | None = None,
    ) -> None:
        """Start to report every iteration to scikit-learn's callbacks and, if ``verbose``, to the terminal.

        ``X``, ``y`` and ``weights`` are the arguments of ``fit``; weights are None if there were none.
        ``describe(progress, history)`` returns the attributes that turn a copy of the estimator into the model fitted
        so far; it is only called for callbacks that want such a copy. ``bound(progress)`` returns the bound and
        ``summarize(progress)`` the line for the terminal. There are at most ``n_tasks`` iterations.
        """
        self._describe = describe
        self._bound = _best_bound if bound is None else bound
        self._summarize = _summary if summarize is None else summarize
        self._rows = {"X": X, "y": y, "metadata": None if weights is None else {"sample_weight": weights}}
        n_tasks = self._estimator.max_iter if n_tasks is None else n_tasks
        self._tasks_left = max(0, n_tasks - self.history.n_iterations)
        self._context = callback_context(self._estimator, self._tasks_left)
        for callback, (name, state) in zip(self._followers(), self._saved_states, strict=False):
            if type(callback).__name__ == name:
                callback.saved_state = state
        self._context.call_on_fit_task_begin(estimator=self._estimator, **self._rows)

    def __call__(self, progress: Any) -> bool:
        """Report one iteration; return whether a callback or Ctrl-C asks learning to stop."""
        bound, temperature = self._bound(progress), _temperature(progress)
        n, bounds, temperatures = self.history
        self.history = History(n + 1, (*bounds, bound), (*temperatures, temperature))
        if self._estimator.verbose:
            sys.stdout.write(f"[{type(self._estimator).__name__}] {self._summarize(progress)}\n")
        if callbacks_of(self._estimator) and self._tasks_left > 0:
            self._tasks_left -= 1
            self._stopped |= self._call_callbacks(progress, bound, temperature)
        # Once requested, a stop holds for all phases of a fit.
        if self._interruption.requested and not self._stopped and getattr(progress, "current", True):
            self._stopped = True
            for callback in self._followers():
                callback.interrupted(self._iteration(progress, bound, temperature))
        return self._stopped

    def end(self) -> None:
        """Report the end of the fit to the callbacks."""
        if self._context is not None:
            self._context.interrupted = self._interruption.requested
            self._context.call_on_fit_task_end(estimator=self._estimator, **self._rows, reconstruction_attributes=dict)

    def _call_callbacks(self, progress: Any, bound: float, temperature: float) -> bool:
        """Call scikit-learn's callbacks; return whether one of them asks for a stop."""
        task = self._context.subcontext(task_name="iteration")
        task.iteration = iteration = self._iteration(progress, bound, temperature)
        try:
            task.call_on_fit_task_begin(estimator=self._estimator, **self._rows)
            stop = bool(
                task.call_on_fit_task_end(
                    estimator=self._estimator,
                    **self._rows,
                    reconstruction_attributes=lambda: self._describe(progress, self.history),
                )
            )
        finally:
            # The context exists until the fit ends, but must not keep the parameters of every iteration.
            del task.iteration
        # No checkpoint is written at or after a stop: a resumed fit must stop at the same iteration as the one that a
        # callback stopped, and an uninterrupted fit would not contain what follows the stop. Only a current state can
        # be resumed.
        resumable = getattr(progress, "current", True) and not (stop or self._stopped)
        for action in iteration.deferred if resumable else []:
            action(iteration)
        return stop

    def _iteration(self, progress: Any, bound: float, temperature: float) -> Iteration:
        """Return the record of an iteration for callbacks."""
        cooled = bool(getattr(progress, "cooled", True))
        phase = getattr(progress, "phase", "")
        return Iteration(self, progress, self.history.n_iterations, bound, temperature, cooled, phase)

    def _followers(self) -> list[IterationCallback]:
        """Return the callbacks of this library, which may have a state to save."""
        return [callback for callback in callbacks_of(self._estimator) if isinstance(callback, IterationCallback)]

    def _model(self, progress: Any) -> Any:
        """Return a copy of the estimator with the parameters learned so far."""
        model = copy.copy(self._estimator)
        remove_callbacks(model)
        for name, value in self._describe(progress, self.history).items():
            setattr(model, name, value)
        return model


class Iteration:
    """One iteration of a fit, as passed to callbacks."""

    def __init__(
        self,
        session: FitSession,
        progress: Any,
        number: int,
        bound: float,
        temperature: float,
        cooled: bool,
        phase: str = "",
    ) -> None:
        self._session, self._progress = session, progress
        self.number = number  # counted from one, over all phases of the fit
        self.bound = bound  # mean bound per row of the best start
        self.temperature = temperature
        self.cooled = cooled  # whether annealing is over, so that bounds can be compared
        self.phase = phase  # phase of the search, such as "annealing" or "repairing", or empty
        self.deferred: list[Callable[[Iteration], None]] = []  # actions that run after all callbacks

    def model(self) -> Any:
        """Return a copy of the estimator, fitted with the parameters learned so far."""
        return self._session._model(self._progress)

    def checkpoint(self) -> Resumption:
        """Return the state from which the fit can resume after this iteration."""
        session = self._session
        states = tuple((type(callback).__name__, callback.saved_state) for callback in session._followers())
        return Resumption(session.identity._asdict(), session.journal.record(), session.history._asdict(), states)


class IterationCallback(ABC):
    """Base class of callbacks that are called after every iteration of a model of this library.

    A subclass implements ``after(iteration)``, which may return True to stop the fit, and optionally
    ``begin(estimator)`` and ``interrupted(iteration)``. Its ``saved_state``, a dict of strings, numbers and lists of
    them, is saved in checkpoints.
    """

    #: Whether the callback needs the model of every iteration or may stop the fit. Otherwise several iterations may be
    #: reported at once, each with its bound and temperature and all with the model of the last one, which is faster.
    every_iteration: bool = True
    #: Attributes that are saved in checkpoints and restored when a fit resumes.
    _saved_attributes: tuple[str, ...] = ()

    @property
    def saved_state(self) -> dict[str, Any]:
        """Return the state of the callback that is restored when a fit resumes."""
        return {name: getattr(self, name) for name in self._saved_attributes}

    @saved_state.setter
    def saved_state(self, state: dict[str, Any]) -> None:
        for name in self._saved_attributes:
            value = state[name]
            setattr(self, name, list(value) if isinstance(value, tuple) else value)

    def begin(self, estimator: Any) -> None:
        """Prepare for a new fit."""
        return

    @abstractmethod
    def after(self, iteration: Iteration) -> bool | None:
        """Process an iteration; return True to stop the fit."""

    def interrupted(self, iteration: Iteration) -> None:
        """Process the iteration at which Ctrl-C ends the fit, after ``after`` of all callbacks."""
        return

    def setup(self, estimator: Any, context: Any) -> None:
        """Run before a fit (hook of scikit-learn)."""
        if not isinstance(estimator, CallbackSupportMixin) or not hasattr(estimator, "_fit_session"):
            name = type(self).__name__
            raise TypeError(
                f"{name} follows the iterations of a model of multicause, not of {type(estimator).__name__}. Set it on "
                f"the model inside: {type(estimator).__name__}(model.set_callbacks({name}(...)), ...)."
            )
        self.begin(estimator)

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        """Run before a task (hook of scikit-learn)."""
        return

    def on_fit_task_end(self, estimator: Any, context: Any) -> bool:
        """Run after a task (hook of scikit-learn)."""
        iteration = getattr(context, "iteration", None)
        return iteration is not None and bool(self.after(iteration))

    def teardown(self, estimator: Any, context: Any) -> None:
        """Run after a fit (hook of scikit-learn)."""
        return


@contextmanager
def fit_session(
    estimator: Any, data: tuple[np.ndarray | Data | None, ...], resume: str | PathLike[str] | None
) -> Iterator[FitSession]:
    """Open the session of a fit of an estimator to some arrays, optionally resumed from a checkpoint."""
    # Inside a search, Ctrl-C has to end the search, not one of its many fits.
    ending = nullcontext(Interruption()) if _inside_a_search(estimator) else interruptible()
    with fewer_collections(), ending as interruption:
        one = FitSession(estimator, data, resume, interruption)
        yield one
        one.end()


def _inside_a_search(estimator: Any) -> bool:
    """Return whether the fit is part of a meta-estimator other than a pipeline."""
    context = parent_context(estimator)
    while context is not None:
        if context.estimator_name != "Pipeline":
            return True
        context = context.parent
    return False


def _best_bound(progress: Any) -> float:
    """Return the bound of the best start."""
    return float(progress.bound[progress.best])


def _temperature(progress: Any) -> float:
    """Return the temperature of the best start."""
    return float(progress.temperature[progress.best]) if hasattr(progress, "temperature") else 1.0


def _summary(progress: Any) -> str:
    """Return the line of an iteration for the terminal."""
    return (
        f"iteration {progress.iteration + 1:4d}  temperature {_temperature(progress):8.3f}  "
        f"bound {_best_bound(progress):.6f}"
    )
