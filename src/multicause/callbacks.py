"""Progress of a fit. The only file that touches scikit-learn's callback interface, which is experimental."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from sklearn.callback import CallbackSupportMixin

from multicause.learning.expectation_maximization import Progress

__all__ = ["CallbackSupportMixin", "FitWatcher"]


class FitWatcher:
    """Tells scikit-learn's callbacks and, if asked, the terminal about every iteration of one fit.

    ``describe(progress)`` gives the attributes that turn a copy of the estimator into one fitted so far; it is
    only called for callbacks that want such a copy.
    """

    def __init__(self, estimator: Any, X: np.ndarray, max_iter: int, describe: Any) -> None:
        self._estimator, self._X, self._describe = estimator, X, describe
        self._context = estimator._init_callback_context(max_subtasks=max_iter)
        self._context.call_on_fit_task_begin(estimator=estimator, X=X)

    def __call__(self, progress: Progress) -> bool:
        """Report one iteration; says whether a callback wants learning to stop."""
        if self._estimator.verbose:
            best = int(np.argmax(progress.bound))
            sys.stdout.write(
                f"[{type(self._estimator).__name__}] iteration {progress.iteration + 1:4d}  "
                f"temperature {progress.temperature[best]:8.3f}  bound {progress.bound[best]:.6f}\n"
            )
        if not hasattr(self._estimator, "_skl_callbacks"):
            return False
        task = self._context.subcontext(task_name="iteration")
        task.call_on_fit_task_begin(estimator=self._estimator, X=self._X)
        return bool(
            task.call_on_fit_task_end(
                estimator=self._estimator,
                X=self._X,
                reconstruction_attributes=lambda: self._describe(progress),
            )
        )

    def end(self) -> None:
        """The fit is over."""
        self._context.call_on_fit_task_end(estimator=self._estimator, X=self._X, reconstruction_attributes=dict)
