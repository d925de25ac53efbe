"""Callback that records the bound."""

from __future__ import annotations

import time
from typing import Any

from numpy.typing import ArrayLike

from multicause.callbacks.adapter import Iteration, IterationCallback


class BoundMonitor(IterationCallback):
    """Record the bound and the time of every iteration, and optionally the score of held-out rows.

    Parameters
    ----------
    validation : array-like of shape (n_samples, n_features), optional
        Held-out rows. Computing their mean score after every iteration takes as long as scoring them.

    Attributes
    ----------
    bounds, temperatures, seconds : lists of float
        Mean bound per row, temperature, and time since the fit began, after every iteration of the last fit. A resumed
        fit continues the lists that its checkpoint holds.
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

    _saved_attributes = ("bounds", "temperatures", "seconds", "validation_scores")

    def __init__(self, *, validation: ArrayLike | None = None) -> None:
        self.validation = validation
        self.bounds: list[float] = []
        self.temperatures: list[float] = []
        self.seconds: list[float] = []
        self.validation_scores: list[float] = []
        self.every_iteration = validation is not None

    def begin(self, estimator: Any) -> None:
        """Clear the records of the last fit."""
        self.bounds, self.temperatures, self.seconds, self.validation_scores = [], [], [], []
        self._began, self._timed = time.monotonic(), False

    def after(self, iteration: Iteration) -> None:
        """Record the bound, temperature, time and score of an iteration."""
        self.bounds.append(iteration.bound)
        self.temperatures.append(iteration.temperature)
        if not self._timed:
            # The clock of a resumed fit continues from the saved time.
            self._began -= self.seconds[-1] if self.seconds else 0.0
            self._timed = True
        self.seconds.append(time.monotonic() - self._began)
        if self.validation is not None:
            self.validation_scores.append(iteration.model().score(self.validation))
