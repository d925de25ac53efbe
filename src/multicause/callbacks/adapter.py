"""One fit while it runs. The only file that touches scikit-learn's callback interface, which is experimental."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
from sklearn.callback import CallbackSupportMixin
from sklearn.callback import ProgressBar as SklearnProgressBar
from sklearn.utils import check_random_state

from multicause.engines.base import Data
from multicause.persistence.checkpoints import Identity, Resumption, identity_of, read_checkpoint
from multicause.persistence.journal import Journal
from multicause.runtime.interruption import Interruption, interruptible

__all__ = ["CallbackSupportMixin", "FitSession", "History", "Iteration", "IterationCallback", "SklearnProgressBar"]

# What scikit-learn keeps in an estimator during a fit, and a copy of it has no use for.
CALLBACK_ATTRIBUTES = ("_skl_callbacks", "_skl_callbacks_to_teardown", "_callback_fit_ctx", "_parent_callback_ctx")


class History(NamedTuple):
    """What a fit has reported so far."""

    n_iterations: int = 0  # of whichever phase
    bounds: tuple[float, ...] = ()
    temperatures: tuple[float, ...] = ()


class FitSession:
    """One fit: its random numbers, its journal, and who is told of every iteration.

    Made by :func:`fit_session`; called with the progress of each iteration, it says whether learning should stop.
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
        self.history = History() if past is None else History(**past.watched)
        self._memories = [] if past is None else list(past.memories)
        if past is None:
            self.journal = Journal(check_random_state(estimator.random_state))
        else:
            self.journal = Journal(past=past.record)

    @property
    def every_iteration(self) -> bool:
        """Whether somebody wants to see the model after every single iteration, or may stop it there."""
        callbacks = getattr(self._estimator, "_skl_callbacks", [])
        return any(getattr(callback, "every_iteration", True) for callback in callbacks)

    @property
    def random(self) -> np.random.RandomState:
        """Where all random numbers of the fit come from."""
        return self.journal.random

    @property
    def identity(self) -> Identity:
        """What distinguishes this fit from others; computed when somebody asks, as it has to read all data."""
        if self._identity is None:
            self._identity = identity_of(self._estimator, *self._data)
        return self._identity

    def watch(
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
        """Begin to tell scikit-learn's callbacks and, if asked, the terminal about every iteration.

        ``X``, ``y`` and ``weights`` are what the user has given to ``fit``; weights are None where there were none.
        ``describe(progress, history)`` gives the attributes that turn a copy of the estimator into one that is fitted
        so far; it is only called for callbacks that want such a copy. ``bound(progress)`` is the bound and
        ``summarize(progress)`` the text for the terminal. There are ``n_tasks`` iterations at most.
        """
        self._describe = describe
        self._bound = _best_bound if bound is None else bound
        self._summarize = _summary if summarize is None else summarize
        self._rows = {"X": X, "y": y, "metadata": None if weights is None else {"sample_weight": weights}}
        n_tasks = self._estimator.max_iter if n_tasks is None else n_tasks
        self._tasks_left = max(0, n_tasks - self.history.n_iterations)
        self._context = self._estimator._init_callback_context(max_subtasks=self._tasks_left)
        for callback, (name, memory) in zip(self._followers(), self._memories, strict=False):
            if type(callback).__name__ == name:
                callback.memory = memory
        self._context.call_on_fit_task_begin(estimator=self._estimator, **self._rows)

    def __call__(self, progress: Any) -> bool:
        """Report one iteration; says whether a callback or a person wants learning to stop."""
        bound, temperature = self._bound(progress), _temperature(progress)
        n, bounds, temperatures = self.history
        self.history = History(n + 1, (*bounds, bound), (*temperatures, temperature))
        if self._estimator.verbose:
            sys.stdout.write(f"[{type(self._estimator).__name__}] {self._summarize(progress)}\n")
        if hasattr(self._estimator, "_skl_callbacks") and self._tasks_left > 0:
            self._tasks_left -= 1
            self._stopped |= self._tell(progress, bound, temperature)
        # Once asked for, a stop holds for all phases of a fit.
        if self._interruption.requested and not self._stopped and getattr(progress, "current", True):
            self._stopped = True
            for callback in self._followers():
                callback.interrupted(self._iteration(progress, bound, temperature))
        return self._stopped

    def end(self) -> None:
        """The fit is over."""
        if self._context is not None:
            self._context.interrupted = self._interruption.requested
            self._context.call_on_fit_task_end(estimator=self._estimator, **self._rows, reconstruction_attributes=dict)

    def _tell(self, progress: Any, bound: float, temperature: float) -> bool:
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
            # The context stays until the fit ends; the parameters of every iteration must not.
            del task.iteration
        # A fit that a callback ends must end there too when it is taken up before; and what happens after a stop was
        # asked for would not have happened without it. Only a current state can be resumed.
        resumable = getattr(progress, "current", True) and not (stop or self._stopped)
        for action in iteration.deferred if resumable else []:
            action(iteration)
        return stop

    def _iteration(self, progress: Any, bound: float, temperature: float) -> Iteration:
        cooled = bool(getattr(progress, "cooled", True))
        return Iteration(self, progress, self.history.n_iterations, bound, temperature, cooled)

    def _followers(self) -> list[IterationCallback]:
        """Callbacks of this library, some of which have something to remember."""
        callbacks = getattr(self._estimator, "_skl_callbacks", [])
        return [callback for callback in callbacks if isinstance(callback, IterationCallback)]

    def _model(self, progress: Any) -> Any:
        model = copy.copy(self._estimator)
        for name in CALLBACK_ATTRIBUTES:
            model.__dict__.pop(name, None)
        for name, value in self._describe(progress, self.history).items():
            setattr(model, name, value)
        return model


class Iteration:
    """One iteration, as a callback sees it."""

    def __init__(
        self, session: FitSession, progress: Any, number: int, bound: float, temperature: float, cooled: bool
    ) -> None:
        self._session, self._progress = session, progress
        self.number = number  # counted from one, over all phases of the fit
        self.bound = bound  # mean per row, of the best start
        self.temperature = temperature
        self.cooled = cooled  # whether annealing is over, so that bounds can be compared
        self.deferred: list[Callable[[Iteration], None]] = []  # to be done when all callbacks have been told

    def model(self) -> Any:
        """A copy of the estimator that is fitted as far as learning has come."""
        return self._session._model(self._progress)

    def checkpoint(self) -> Resumption:
        """All that is needed to go on from here."""
        session = self._session
        memories = tuple((type(callback).__name__, callback.memory) for callback in session._followers())
        return Resumption(session.identity._asdict(), session.journal.record(), session.history._asdict(), memories)


class IterationCallback:
    """A callback that is told of every iteration of a model of this library.

    A subclass has ``after(iteration)``, which may return True to stop the fit, and perhaps ``begin(estimator)`` and
    ``interrupted(iteration)``. Its ``memory``, texts, numbers and lists of them, is part of a checkpoint.
    """

    #: Whether it wants the model of every iteration or may stop the fit. Otherwise several iterations may be told at
    #: once, each with its bound and temperature and all with the model of the last one; then the fit is faster.
    every_iteration: bool = True
    #: Attributes that a resumed fit goes on with.
    _remembered: tuple[str, ...] = ()

    @property
    def memory(self) -> dict[str, Any]:
        """What the callback has to remember when a fit is taken up again."""
        return {name: getattr(self, name) for name in self._remembered}

    @memory.setter
    def memory(self, memory: dict[str, Any]) -> None:
        for name in self._remembered:
            value = memory[name]
            setattr(self, name, list(value) if isinstance(value, tuple) else value)

    def begin(self, estimator: Any) -> None:
        """Before a fit."""

    def after(self, iteration: Iteration) -> bool | None:
        """After an iteration; True asks for a stop."""
        raise NotImplementedError

    def interrupted(self, iteration: Iteration) -> None:
        """After the iteration at which Ctrl-C ends the fit, and after all callbacks have been told of it."""

    def setup(self, estimator: Any, context: Any) -> None:
        """Scikit-learn's hook before a fit."""
        if not isinstance(estimator, CallbackSupportMixin) or not hasattr(estimator, "_so_far"):
            name = type(self).__name__
            raise TypeError(
                f"{name} follows the iterations of a model of multicause, not of {type(estimator).__name__}. Set it on "
                f"the model inside: {type(estimator).__name__}(model.set_callbacks({name}(...)), ...)."
            )
        self.begin(estimator)

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        """Scikit-learn's hook before a task."""

    def on_fit_task_end(self, estimator: Any, context: Any) -> bool:
        """Scikit-learn's hook after a task."""
        iteration = getattr(context, "iteration", None)
        return iteration is not None and bool(self.after(iteration))

    def teardown(self, estimator: Any, context: Any) -> None:
        """Scikit-learn's hook after a fit."""


@contextmanager
def fit_session(
    estimator: Any, data: tuple[np.ndarray | Data | None, ...], resume: str | PathLike[str] | None
) -> Iterator[FitSession]:
    """One fit of an estimator to some arrays, perhaps from a checkpoint on."""
    if _inside_a_search(estimator):
        # There, Ctrl-C has to end the search, not one of its many fits.
        one = FitSession(estimator, data, resume, Interruption())
        yield one
        one.end()
        return
    with interruptible() as interruption:
        one = FitSession(estimator, data, resume, interruption)
        yield one
        one.end()


def _inside_a_search(estimator: Any) -> bool:
    """Whether the fit is part of something other than a pipeline."""
    context = getattr(estimator, "_parent_callback_ctx", None)
    while context is not None:
        if context.estimator_name != "Pipeline":
            return True
        context = context.parent
    return False


def _best_bound(progress: Any) -> float:
    return float(progress.bound[progress.best])


def _temperature(progress: Any) -> float:
    return float(progress.temperature[progress.best]) if hasattr(progress, "temperature") else 1.0


def _summary(progress: Any) -> str:
    return (
        f"iteration {progress.iteration + 1:4d}  temperature {_temperature(progress):8.3f}  "
        f"bound {_best_bound(progress):.6f}"
    )
