"""Fits of one estimator to many data sets, which share compiled programs and all cores."""

from __future__ import annotations

from collections.abc import Sequence
from inspect import signature
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from multicause.estimators.base import BaseModel
from multicause.runtime.parallel import number_of_jobs, run_all


def fit_trials(
    estimator: Any,
    datasets: Sequence[ArrayLike],
    *,
    random_state: int = 0,
    causes: Sequence[ArrayLike] | None = None,
    n_jobs: int | None = None,
) -> list[Any]:
    """Fit copies of an estimator to many data sets of one shape, in parallel on all cores.

    Trial t is ``clone(estimator).set_params(random_state=random_state + t).fit(datasets[t])``. All trials share
    compiled programs, and each runs on one core.

    Parameters
    ----------
    estimator : estimator of this library
        Any model with a ``random_state``.
    datasets : sequence of array-like, or array of shape (n_trials, n_samples, n_features)
        Data of each trial.
    random_state : int, default=0
        Seed of the first trial.
    causes : sequence of array-like of shape (n_causes, n_features), optional
        True causes of each trial, for the stopping rule of ``SoftmaxNetwork.fit``.
    n_jobs : int, optional
        Number of trials that run at the same time, as in :class:`multicause.engines.Local`.

    Returns
    -------
    list of fitted estimators
        One for each trial.
    """
    if not isinstance(estimator, BaseModel):
        name = estimator.__name__ + ", a class" if isinstance(estimator, type) else type(estimator).__name__
        raise ValueError(f"fit_trials expects an instance of a multicause estimator; got {name}.")
    if not isinstance(random_state, Integral) or isinstance(random_state, bool) or random_state < 0:
        raise ValueError(
            "random_state of fit_trials must be a whole number of at least 0, to which each trial adds its number; "
            f"got {random_state!r}."
        )
    arrays = [np.asarray(dataset) for dataset in datasets]
    _check_datasets(arrays)
    known: list[dict[str, np.ndarray]] = [{} for _ in arrays]
    if causes is not None:
        if "causes" not in signature(type(estimator).fit).parameters:
            raise ValueError(f"{type(estimator).__name__} does not use causes; leave causes=None.")
        known = [{"causes": np.asarray(of_trial)} for of_trial in causes]
        _check_causes([of_trial["causes"].shape for of_trial in known], len(arrays))
    models = [clone(estimator).set_params(random_state=int(random_state) + t) for t in range(len(arrays))]
    tasks = list(zip(models, arrays, known, strict=True))
    # The first trial compiles the programs that all others use.
    run_all(_fit, tasks[:1], 1)
    run_all(_fit, tasks[1:], number_of_jobs(n_jobs))
    return models


def _fit(model: Any, X: np.ndarray, known: dict[str, np.ndarray]) -> None:
    model.fit(X, **known)


def _check_causes(shapes: list[tuple[int, ...]], n_trials: int) -> None:
    if len(shapes) != n_trials or len(set(shapes)) > 1:
        raise ValueError(
            f"causes must be one array for each of the {n_trials} trials, all of one shape; got {len(shapes)} "
            f"with shapes {sorted(set(shapes))}."
        )


def _check_datasets(arrays: list[np.ndarray]) -> None:
    """Raise ValueError unless all data sets have one shape and one precision, as one program serves all."""
    shapes, singles = {array.shape for array in arrays}, {array.dtype == np.float32 for array in arrays}
    if len(shapes) != 1 or arrays[0].ndim != 2:
        raise ValueError(
            "datasets must have shape (n_trials, n_samples, n_features), with at least one trial, all of one shape; "
            f"got {len(arrays)} with shapes {sorted(shapes)}."
        )
    if len(singles) > 1:
        raise ValueError("datasets must all have one dtype; got some in float32 and others not. Convert them first.")
