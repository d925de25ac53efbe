"""One estimator, many data sets: all trials are begun, learned together, and kept one by one."""

from __future__ import annotations

from collections.abc import Sequence
from inspect import signature
from numbers import Integral
from typing import Any

import jax
import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from multicause.arrays import double_precision
from multicause.trials.base import BulkTrial


def fit_trials(
    estimator: Any, datasets: Sequence[ArrayLike], *, random_state: int = 0, causes: Sequence[ArrayLike] | None = None
) -> list[Any]:
    """Fit copies of an estimator to many data sets of one shape, as one compiled program on all cores.

    Trial t has the seed ``random_state + t``, and ends with the parameters that
    ``clone(estimator).set_params(random_state=random_state + t).fit(datasets[t])`` would find, with two exceptions for
    posteriors that climb a bound (all but ``Truncated``): no step is taken back where it falls, and learning ends when
    components rest, not by the size of ``tol``. Each of a hundred small fits takes a fraction of a second that way.

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
    if isinstance(estimator, type) or not hasattr(estimator, "_bulk_trial"):
        name = estimator.__name__ + ", a class" if isinstance(estimator, type) else type(estimator).__name__
        raise ValueError(f"fit_trials serves objects of the causal models of multicause; got {name}.")
    if not isinstance(random_state, Integral) or isinstance(random_state, bool) or random_state < 0:
        raise ValueError(
            "random_state of fit_trials must be a whole number of at least 0, to which each trial adds its number; "
            f"got {random_state!r}."
        )
    datasets = list(datasets)
    _check_datasets([np.asarray(dataset) for dataset in datasets])
    known: list[dict[str, np.ndarray]] = [{} for _ in datasets]
    if causes is not None:
        if "causes" not in signature(type(estimator).fit).parameters:
            raise ValueError(f"{type(estimator).__name__} does not use causes; leave causes=None.")
        known = [{"causes": np.asarray(each)} for each in causes]
        _check_causes([each["causes"].shape for each in known], len(datasets))
    kind: type[BulkTrial] | None = estimator._bulk_trial
    if kind is None:
        raise ValueError(f"{type(estimator).__name__} does more than the fixed program of fit_trials; use fit instead.")
    fitted = [clone(estimator).set_params(random_state=int(random_state) + t) for t in range(len(datasets))]
    with double_precision():
        trials = [kind(one, X, **own) for one, X, own in zip(fitted, datasets, known, strict=True)]
        _learn_together(trials)
    return fitted


def _learn_together(trials: Sequence[BulkTrial]) -> None:
    given = jax.tree.map(lambda *leaves: np.concatenate(leaves), *(trial.given for trial in trials))
    found = trials[0].learn(given)
    n_starts = len(jax.tree.leaves(given)[0]) // len(trials)
    for t, trial in enumerate(trials):
        own = slice(t * n_starts, (t + 1) * n_starts)
        trial.keep(jax.tree.map(lambda leaf, own=own: leaf[own], found))


def _check_causes(shapes: list[tuple[int, ...]], n_trials: int) -> None:
    if len(shapes) != n_trials or len(set(shapes)) > 1:
        raise ValueError(
            f"causes must be one array for each of the {n_trials} trials, all of one shape; got {len(shapes)} "
            f"with shapes {sorted(set(shapes))}."
        )


def _check_datasets(arrays: list[np.ndarray]) -> None:
    """One shape and one precision, because one program serves all."""
    shapes, singles = {array.shape for array in arrays}, {array.dtype == np.float32 for array in arrays}
    if len(shapes) != 1 or arrays[0].ndim != 2:
        raise ValueError(
            "datasets must have shape (n_trials, n_samples, n_features), with at least one trial, all of one shape; "
            f"got {len(arrays)} with shapes {sorted(shapes)}."
        )
    if len(singles) > 1:
        raise ValueError("datasets must all have one dtype; got some in float32 and others not. Convert them first.")
