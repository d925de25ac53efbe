"""Trials in bulk: one estimator, many data sets and starts, one program."""

from __future__ import annotations

from collections.abc import Sequence
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone


def fit_trials(
    estimator: Any, datasets: Sequence[ArrayLike], *, random_state: int = 0, causes: Sequence[ArrayLike] | None = None
) -> list[Any]:
    """Fit copies of an estimator to many data sets of one shape, as one compiled program on all cores.

    Trial t has the seed ``random_state + t``, and ends with the parameters that
    ``clone(estimator).set_params(random_state=random_state + t).fit(datasets[t])`` would find, except that no step is
    ever taken back where the bound falls. Each of a hundred small fits takes a fraction of a second that way.

    Parameters
    ----------
    estimator : CausalEstimator
        One of the models whose learning is a fixed program: ``annealing`` must be a schedule or None (not "auto"), one
        start, no repair, and no data cut (``Preselected(keep=None)``); or a ``SoftmaxNetwork``.
    datasets : sequence of array-like, or array of shape (n_trials, n_samples, n_features)
        Data of each trial.
    random_state : int, default=0
        Seed of the first trial.
    causes : sequence of array-like of shape (n_causes, n_features), optional
        True causes of each trial, for the stopping rule of ``SoftmaxNetwork.fit``.

    Returns
    -------
    list of fitted estimators
        One for each trial; their histories hold nothing but the end.
    """
    sets = [np.asarray(dataset) for dataset in datasets]
    if not sets or any(dataset.shape != sets[0].shape or dataset.ndim != 2 for dataset in sets):
        shapes = sorted({dataset.shape for dataset in sets})
        raise ValueError(
            "datasets must have shape (n_trials, n_samples, n_features), with at least one trial, all of one shape; "
            f"got {len(sets)} with shapes {shapes}."
        )
    fitted = [clone(estimator).set_params(random_state=random_state + t) for t in range(len(sets))]
    if not hasattr(estimator, "_fit_trials"):
        raise ValueError(f"fit_trials serves the causal models of multicause; got {type(estimator).__name__}.")
    if causes is not None and "causes" not in signature(type(estimator).fit).parameters:
        raise ValueError(f"{type(estimator).__name__} does not use causes; leave causes=None.")
    known = {} if causes is None else {"causes": [np.asarray(each) for each in causes]}
    type(estimator)._fit_trials(fitted, sets, **known)
    return fitted
