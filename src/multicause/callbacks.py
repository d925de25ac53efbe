"""Progress of a fit. The only file that touches scikit-learn's callback interface, which is experimental."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.callback import CallbackSupportMixin

from multicause.learning.expectation_maximization import Progress

__all__ = ["CallbackSupportMixin", "FitWatcher", "best_of"]


class FitWatcher:
    """Tells scikit-learn's callbacks and, if asked, the terminal about every iteration of one fit.

    ``describe(progress)`` gives the attributes that turn a copy of the estimator into one fitted so far; it is
    only called for callbacks that want such a copy. ``summarize(progress)`` is the text for the terminal. There are
    ``n_tasks`` iterations at most.
    """

    def __init__(
        self,
        estimator: Any,
        X: np.ndarray,
        y: Any,
        weights: np.ndarray,
        describe: Callable[[Any], dict[str, Any]],
        *,
        summarize: Callable[[Any], str] | None = None,
        n_tasks: int | None = None,
    ) -> None:
        self._estimator, self._describe = estimator, describe
        self._summarize = _summary if summarize is None else summarize
        self._data = {"X": X, "y": y, "metadata": {"sample_weight": weights}}
        self._tasks_left = estimator.max_iter if n_tasks is None else n_tasks
        self._context = estimator._init_callback_context(max_subtasks=self._tasks_left)
        self._context.call_on_fit_task_begin(estimator=estimator, **self._data)

    def __call__(self, progress: Any) -> bool:
        """Report one iteration; says whether a callback wants learning to stop."""
        if self._estimator.verbose:
            sys.stdout.write(f"[{type(self._estimator).__name__}] {self._summarize(progress)}\n")
        if not hasattr(self._estimator, "_skl_callbacks") or self._tasks_left == 0:
            return False
        self._tasks_left -= 1
        task = self._context.subcontext(task_name="iteration")
        task.call_on_fit_task_begin(estimator=self._estimator, **self._data)
        return bool(
            task.call_on_fit_task_end(
                estimator=self._estimator,
                **self._data,
                reconstruction_attributes=lambda: self._describe(progress),
            )
        )

    def end(self) -> None:
        """The fit is over."""
        self._context.call_on_fit_task_end(estimator=self._estimator, **self._data, reconstruction_attributes=dict)


def _summary(progress: Progress) -> str:
    best = best_of(progress.bound)
    return (
        f"iteration {progress.iteration + 1:4d}  temperature {progress.temperature[best]:8.3f}  "
        f"bound {progress.bound[best]:.6f}"
    )


def best_of(bounds: np.ndarray) -> int:
    """The start with the highest finite bound."""
    return int(np.argmax(np.where(np.isfinite(bounds), bounds, -np.inf)))
