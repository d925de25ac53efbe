"""Base class of networks that learn restricted maximal causes row by row: a fit that may know the true causes."""

from __future__ import annotations

from os import PathLike
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from multicause.estimators.restricted_causes import RestrictedCauses
from multicause.runtime.scikit_learn import fit_context


class HebbianEstimator(RestrictedCauses):
    """Base class of Hebbian networks, which learn from single rows in memory."""

    @fit_context(prefer_skip_nested_validation=True)
    def fit(
        self,
        X: ArrayLike,
        y: None = None,
        sample_weight: ArrayLike | None = None,
        *,
        causes: ArrayLike | None = None,
        resume: str | PathLike[str] | None = None,
    ) -> Self:
        """Learn from the rows of X, epoch after epoch, until units no longer change the cause they represent.

        Parameters
        ----------
        X, y, sample_weight, resume
            As for :meth:`multicause.MaximalCauses.fit`; rows are shown in proportion to their weights. Of data that
            exceed the engine's memory budget, a random sample is learned from, with a warning.
        causes : array-like of shape (n_causes, n_features), optional
            True causes, if they are known, as in a benchmark: learning then ends when each of them, shown alone, has
            had its own unit for ``hold`` presentations (MCA08 appendix E.2).
        """
        known_causes = None if causes is None else np.asarray(causes, dtype=float)
        return self._fit(X, y, sample_weight, resume, known_causes)
