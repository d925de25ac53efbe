"""Log-likelihood of the generating parameters of bars: the level that learning should reach."""

from __future__ import annotations

import warnings
from typing import Any

from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning


def generating_bound(model: Any, bars: Any) -> float:
    """Compute the mean log evidence of bars under the parameters that generated them, with a model's noise."""
    truth = clone(model).set_params(
        n_components=len(bars.causes),
        init=bars.causes,
        activity=bars.activity,
        learn=(),
        annealing=None,
        repair=False,
        n_init=1,
        max_iter=1,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return float(truth.fit(bars.data).lower_bound_)
