"""Callback that stops a fit before it converges."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from multicause.callbacks.adapter import Iteration, IterationCallback


class EarlyStopping(IterationCallback):
    """Stop a fit whose bound, or whose score of held-out rows, has not risen for a while.

    ``outcome_`` is then "stopped". Iterations before the end of annealing do not count. With ``annealing="auto"`` the
    bound does not rise while repair tries variants, which takes some dozens of iterations; a smaller patience disables
    repair.

    Parameters
    ----------
    patience : int, default=10
        Number of iterations without a rise after which the fit stops.
    min_rise : float, default=1e-3
        Smallest increase that counts as a rise, in mean log evidence per row.
    validation : array-like of shape (n_samples, n_features), optional
        Held-out rows, whose mean score is used instead of the bound.

    Examples
    --------
    >>> import numpy as np
    >>> from multicause import MixtureOfGaussians
    >>> from multicause.callbacks import EarlyStopping
    >>> X = np.random.RandomState(0).normal(size=(50, 2))
    >>> model = MixtureOfGaussians(2, tol=0, random_state=0).set_callbacks(EarlyStopping(patience=3, min_rise=0.1))
    >>> model.fit(X).outcome_
    'stopped'
    """

    _saved_attributes = ("_best", "_waited")

    def __init__(self, *, patience: int = 10, min_rise: float = 1e-3, validation: ArrayLike | None = None) -> None:
        if not isinstance(patience, Integral) or isinstance(patience, bool) or patience < 1:
            raise ValueError(f"patience must be a whole number of iterations of at least 1; got {patience!r}.")
        if not isinstance(min_rise, Real) or not np.isfinite(float(min_rise)) or min_rise < 0:
            raise ValueError(f"min_rise must be a number of at least 0; got {min_rise!r}.")
        self.patience: int = int(patience)
        self.min_rise: float = float(min_rise)
        self.validation: ArrayLike | None = validation

    def begin(self, estimator: Any) -> None:
        """Reset the counts before a new fit."""
        self._best, self._waited = -np.inf, 0

    def after(self, iteration: Iteration) -> bool:
        """Return whether the bound has not risen for ``patience`` iterations."""
        if not iteration.cooled:
            self._best, self._waited = -np.inf, 0
            return False
        score = iteration.bound if self.validation is None else iteration.model().score(self.validation)
        if np.isnan(score):
            raise ValueError(
                "EarlyStopping needs a bound, but this model has none during learning, because its partition function "
                "is unknown. Remove the callback, or lower max_iter."
            )
        if score > self._best + self.min_rise:
            self._best, self._waited = score, 0
        else:
            self._waited += 1
        return self._waited >= self.patience
