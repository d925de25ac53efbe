"""Callback that records the components while they are learned."""

from __future__ import annotations

from typing import Any

import numpy as np

from multicause.callbacks.adapter import Iteration, IterationCallback
from multicause.callbacks.checkpoint import check_every


class FieldRecorder(IterationCallback):
    """Record ``components_`` every few iterations, for example for an animation.

    Parameters
    ----------
    every : int, default=1
        Number of iterations between records.

    Attributes
    ----------
    fields : list of ndarrays of shape (n_components, n_features)
        Components of the best start so far, in the last fit. They are not saved in checkpoints: the records of a
        resumed fit begin where it resumed.
    iterations : list of int
        Iteration of each record, counted from one.

    Examples
    --------
    >>> import numpy as np
    >>> from multicause import MixtureOfGaussians
    >>> from multicause.callbacks import FieldRecorder
    >>> X = np.random.RandomState(0).normal(size=(50, 2))
    >>> recorder = FieldRecorder(every=5)
    >>> model = MixtureOfGaussians(2, tol=0, max_iter=12, random_state=0).set_callbacks(recorder).fit(X)
    >>> recorder.iterations, recorder.fields[0].shape
    ([5, 10], (2, 2))
    """

    def __init__(self, *, every: int = 1) -> None:
        self.every = check_every(every)
        self.fields: list[np.ndarray] = []
        self.iterations: list[int] = []

    def begin(self, estimator: Any) -> None:
        """Clear the records of the last fit."""
        self.fields, self.iterations = [], []

    def after(self, iteration: Iteration) -> None:
        """Record the components, if it is due."""
        if iteration.number % self.every == 0:
            self.fields.append(np.array(iteration.model().components_))
            self.iterations.append(iteration.number)
