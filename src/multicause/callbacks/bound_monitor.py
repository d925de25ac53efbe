"""The course of the bound."""

from __future__ import annotations

import time
from typing import Any

from numpy.typing import ArrayLike

from multicause.callbacks.adapter import Iteration, IterationCallback


class BoundMonitor(IterationCallback):
    """Keeps the bound of every iteration, when it was reached, and how well rows are explained that are held out.

    Parameters
    ----------
    validation : array-like of shape (n_samples, n_features), optional
        Rows that are not learned from. Their mean score after every iteration takes as long as scoring them.

    Attributes
    ----------
    bounds, temperatures, seconds : lists of float
        Mean bound per row, temperature, and time since the fit began, after every iteration of the last fit. A resumed
        fit goes on with what its checkpoint remembers.
    validation_scores : list of float
        Mean score of the held-out rows, if there are any.

    Examples
    --------
    >>> import numpy as np
    >>> from multicause import MixtureOfGaussians
    >>> from multicause.callbacks import BoundMonitor
    >>> X = np.random.RandomState(0).normal(size=(50, 2))
    >>> monitor = BoundMonitor(validation=X[40:])
    >>> model = MixtureOfGaussians(2, random_state=0).set_callbacks(monitor).fit(X[:40])
    >>> len(monitor.bounds) == len(monitor.validation_scores) == model.n_iter_
    True
    """

    _remembered = ("bounds", "temperatures", "seconds", "validation_scores")

    def __init__(self, *, validation: ArrayLike | None = None) -> None:
        self.validation = validation
        self.bounds: list[float] = []
        self.temperatures: list[float] = []
        self.seconds: list[float] = []
        self.validation_scores: list[float] = []
        self.every_iteration = validation is not None

    def begin(self, estimator: Any) -> None:
        """Forget the last fit."""
        self.bounds, self.temperatures, self.seconds, self.validation_scores = [], [], [], []
        self._began, self._timed = time.monotonic(), False

    def after(self, iteration: Iteration) -> None:
        """Take note."""
        self.bounds.append(iteration.bound)
        self.temperatures.append(iteration.temperature)
        if not self._timed:
            # The clock of a resumed fit goes on from where it was.
            self._began -= self.seconds[-1] if self.seconds else 0.0
            self._timed = True
        self.seconds.append(time.monotonic() - self._began)
        if self.validation is not None:
            self.validation_scores.append(iteration.model().score(self.validation))
