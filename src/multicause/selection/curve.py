"""Choice of the number of components by held-out scores.

Either rows are held out, or single entries of all rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.model_selection import KFold, check_cv
from sklearn.utils import check_array, check_random_state, get_tags

from multicause.engines.missing import without_mask
from multicause.outcomes import Outcome
from multicause.runtime.parallel import number_of_jobs, run_all
from multicause.selection.differences import is_by_chance, mean_and_error

HELD_OUT = ("rows", "entries")
# Part of the rows, those with the lowest scores, whose residuals become new components of a warm start.
WORST = 0.1


@dataclass(frozen=True, repr=False)
class ComponentCurve:
    """Held-out score for each number of components.

    Attributes
    ----------
    numbers : ndarray of shape (n_numbers,)
        Numbers of components, ascending.
    scores : ndarray of shape (n_numbers,)
        Mean score of a held-out row, or mean log density of the entries of a row that one fold holds out.
    errors : ndarray of shape (n_numbers,)
        Standard error of that mean.
    deficits : ndarray of shape (n_numbers,)
        By how much the score is below the highest one.
    deficit_errors : ndarray of shape (n_numbers,)
        Standard error of the deficit. Scores of the same rows are compared, so that it is usually far below ``errors``:
        rows differ in how easily any model explains them.
    fold_scores : ndarray of shape (n_numbers, n_folds)
        Mean score of the held-out rows of each fold; NaN where all of them have a weight of zero.
    best : int
        The smallest number of components whose score is not below the highest one by more than two standard errors of
        the difference, or by more than a thousandth of the standard error of the score: the elbow of the curve.
    """

    numbers: np.ndarray
    scores: np.ndarray
    errors: np.ndarray
    deficits: np.ndarray
    deficit_errors: np.ndarray
    fold_scores: np.ndarray
    best: int

    def __repr__(self) -> str:
        """Return a table, which notebooks and interpreters show."""
        lines = ["components  held-out score  below the highest"]
        for number, score, error, deficit, own in zip(
            self.numbers, self.scores, self.errors, self.deficits, self.deficit_errors, strict=True
        ):
            mark = "  <- best" if number == self.best else ""
            lines.append(f"{number:10d}  {score:.4g} ± {error:.2g}  {deficit:.3g} ± {own:.2g}{mark}")
        return "\n".join(lines)


def component_curve(
    model: Any,
    X: ArrayLike,
    numbers: Iterable[int],
    *,
    cv: Any = 5,
    held_out: str = "rows",
    warm_start: bool = False,
    sample_weight: ArrayLike | None = None,
    random_state: int | np.random.RandomState | None = None,
    n_jobs: int | None = None,
    progress: Callable[[int, float], None] | None = None,
) -> ComponentCurve:
    """Score models with different numbers of components on data that they have not learned from.

    For each number, copies of the model are fitted to all folds but one, and ``score_samples`` of the rows of the fold
    that was left out says how well they explain new data. If entries are held out, folds are of the values of each row:
    those of one fold are missing (NaN) while a model learns, and the score is their log density given the other values
    of the row, log p(y) − log p(y without them). All folds of one number share compiled programs and run side by side
    on all cores.

    Parameters
    ----------
    model : estimator with ``n_components`` and ``score_samples``
        Copies of it are fitted; it is not changed itself.
    X : array-like of shape (n_samples, n_features)
        Data.
    numbers : iterable of int
        Numbers of components to compare.
    cv : int, cross-validation generator or iterable, default=5
        Number of folds, of rows in random order, or how rows are split, as in scikit-learn. Entries take a number.
    held_out : {"rows", "entries"}, default="rows"
        Whether rows or single entries are held out. Entries need a model that supports missing values.
    warm_start : bool, default=False
        Whether a model begins with the components of the next smaller number, and with residuals of rows that these
        explain worst, instead of its own initial values. It is faster, but more likely to end in a local optimum.
    sample_weight : array-like of shape (n_samples,), optional
        Weights of rows, in learning as in scores.
    random_state : int, RandomState or None
        Seed of the folds and of all fits.
    n_jobs : int, optional
        Number of fits that run at the same time, as in :class:`multicause.engines.Local`.
    progress : callable, optional
        Function that is called with each number of components and its mean held-out score, as soon as it is known;
        ``print`` shows how far a long comparison has come.

    Returns
    -------
    ComponentCurve
        Numbers, scores, their errors, and the best number. ``multicause.plotting.ComponentCurveDisplay`` draws it.

    Examples
    --------
    >>> from multicause import MixtureOfPoissons
    >>> from multicause.datasets import make_bars
    >>> from multicause.selection import component_curve
    >>> bars = make_bars(100, size=3, noise="poisson", random_state=0)
    >>> component_curve(MixtureOfPoissons(), bars.data, [1, 2], cv=2, random_state=0).numbers
    array([1, 2])
    """
    wanted = _check_numbers(numbers)
    for name in ("fit", "score_samples", "get_params"):
        if isinstance(model, type) or not hasattr(model, name):
            raise TypeError(f"model must be an estimator with score_samples, such as LinearCauses(); got {model!r}.")
    if "n_components" not in model.get_params(deep=False):
        raise TypeError(f"model must have a parameter n_components; {type(model).__name__} has none.")
    rows = check_array(
        without_mask(X), dtype=[np.float64, np.float32], ensure_all_finite="allow-nan", ensure_min_samples=2
    )
    weights = None if sample_weight is None else np.asarray(sample_weight, dtype=float)
    if weights is not None and weights.shape != (len(rows),):
        raise ValueError(f"sample_weight must have shape ({len(rows)},), one for each row; got {weights.shape}.")
    if weights is not None and not (np.isfinite(weights).all() and weights.min() >= 0 and weights.any()):
        raise ValueError("sample_weight must be finite, not negative, and above zero for some rows.")
    if held_out not in HELD_OUT:
        raise ValueError(f"held_out must be one of {', '.join(map(repr, HELD_OUT))}; got {held_out!r}.")
    if warm_start and not {"init", "n_components"} <= set(model.get_params(deep=False)):
        raise TypeError(f"warm_start needs a model with a parameter init; {type(model).__name__} has none.")
    random = check_random_state(random_state)
    by_row = held_out == "rows"
    folds: list[Any] = list(_splits(cv, rows, random)) if by_row else _entry_folds(model, cv, rows, random)
    seeds = random.randint(np.iinfo(np.int32).max, size=(len(wanted), len(folds)))
    places = np.concatenate([test for _, test in folds] if by_row else [np.arange(len(rows))] * len(folds))
    scores = np.empty((len(wanted), len(places)))
    before: list[Any] = [None] * len(folds)
    for index, number in enumerate(wanted):
        models = [_copy(model, number, seed) for seed in seeds[index]]
        tasks = [
            (own, rows, weights, fold, last if warm_start else None)
            for own, fold, last in zip(models, folds, before, strict=True)
        ]
        score = _score_rows if by_row else _score_entries
        # The first fit compiles what the others use.
        scored = run_all(score, tasks[:1], 1) + run_all(score, tasks[1:], number_of_jobs(n_jobs))
        scores[index] = np.concatenate(scored)
        if progress is not None:
            weights_of_scores = None if weights is None else weights[places]
            progress(int(number), float(np.average(scores[index], weights=weights_of_scores)))
        before = models
    sizes = np.cumsum([len(part) for part in scored])[:-1]
    return _curve(wanted, scores, places, np.ones(len(rows)) if weights is None else weights, sizes)


def _check_numbers(numbers: Iterable[int]) -> np.ndarray:
    requested: list[Any] = list(numbers) if isinstance(numbers, Iterable) else [numbers]
    whole = all(
        isinstance(number, Integral) and not isinstance(number, bool) and int(number) > 0 for number in requested
    )
    if not requested or not whole or len(set(requested)) < len(requested):
        raise ValueError(
            f"numbers must be different whole numbers of at least 1, such as [5, 10, 20]; got {numbers!r}."
        )
    return np.sort(np.array([int(number) for number in requested]))


def _splits(cv: Any, rows: np.ndarray, random: np.random.RandomState) -> Iterable[tuple[np.ndarray, np.ndarray]]:
    if isinstance(cv, Integral):
        n_folds = int(cv)
        if not 2 <= n_folds <= len(rows):
            raise ValueError(f"cv must be between 2 and the number of rows, {len(rows)}; got {cv}.")
        return KFold(n_folds, shuffle=True, random_state=random).split(rows)
    return check_cv(cv).split(rows)


def _copy(model: Any, number: int, seed: int) -> Any:
    settings = {"n_components": int(number)}
    if "random_state" in model.get_params(deep=False):
        settings["random_state"] = int(seed)
    return clone(model).set_params(**settings)


def _entry_folds(model: Any, cv: Any, rows: np.ndarray, random: np.random.RandomState) -> list[np.ndarray]:
    """Return which entries each fold holds out: (N, D) each. Every row keeps some of its entries in every fold."""
    if not (isinstance(cv, Integral) and int(cv) >= 2):
        raise ValueError(f"cv must be a number of folds of at least 2 if entries are held out; got {cv!r}.")
    if not get_tags(model).input_tags.allow_nan:
        raise TypeError(f"held_out='entries' needs a model that takes missing values; {type(model).__name__} does not.")
    observed = ~np.isnan(rows)
    if observed.sum(axis=1).max() < 2:
        raise ValueError("held_out='entries' needs rows with at least two observed values; use held_out='rows'.")
    draws = np.where(observed, random.uniform(size=rows.shape), np.inf)
    order = np.argsort(np.argsort(draws, axis=1), axis=1)
    number = (order + random.randint(int(cv), size=(len(rows), 1))) % int(cv)
    possible = observed & (observed.sum(axis=1, keepdims=True) > 1)
    return [possible & (number == fold) for fold in range(int(cv))]


def _fit(model: Any, rows: np.ndarray, weights: np.ndarray | None, smaller: Any) -> None:
    """Fit a model, if there is a smaller one from its components and residuals of the rows that it explains worst."""
    if smaller is not None:
        scores = smaller.score_samples(rows)
        missing = model.n_components - len(smaller.components_)
        worst = np.argsort(scores)[: max(missing, int(WORST * len(rows)))]
        chosen = np.random.RandomState(model.random_state).choice(worst, missing, replace=missing > len(worst))
        left = np.nan_to_num(rows[chosen] - smaller.reconstruct(rows[chosen]))
        if smaller.components_.min() >= 0:
            left = np.maximum(left, 0) + smaller.components_.mean() / len(smaller.components_)
        model.set_params(init=np.concatenate([smaller.components_, left]).astype(rows.dtype))
    model.fit(rows, **({} if weights is None else {"sample_weight": weights}))
    if getattr(model, "outcome_", None) == Outcome.STOPPED:
        raise KeyboardInterrupt  # a curve of models that were stopped early would mislead


def _score_rows(
    model: Any, rows: np.ndarray, weights: np.ndarray | None, fold: tuple[np.ndarray, np.ndarray], smaller: Any
) -> np.ndarray:
    """Return the scores of the rows that are left out."""
    train, test = fold
    _fit(model, rows[train], None if weights is None else weights[train], smaller)
    return np.asarray(model.score_samples(rows[test]), dtype=float)


def _score_entries(
    model: Any, rows: np.ndarray, weights: np.ndarray | None, fold: np.ndarray, smaller: Any
) -> np.ndarray:
    """Return the log densities of the entries of each row that are left out, given the others."""
    known = np.where(fold, np.nan, rows)
    _fit(model, known, weights, smaller)
    return np.asarray(model.score_samples(rows), dtype=float) - np.asarray(model.score_samples(known), dtype=float)


def _curve(
    numbers: np.ndarray, scores: np.ndarray, held_out: np.ndarray, weights: np.ndarray, sizes: np.ndarray
) -> ComponentCurve:
    """Return the curve of scores (numbers, held-out rows).

    ``held_out`` says which row of the data each score belongs to, ``weights`` are those of all rows, and ``sizes`` the
    places where folds end. Scores of a row that is held out several times are averaged, as they are not independent.
    """
    known = np.unique(held_out[weights[held_out] > 0])
    by_row = np.zeros((len(numbers), len(weights)))
    np.add.at(by_row.T, held_out, scores.T)
    by_row = (by_row / np.maximum(np.bincount(held_out, minlength=len(weights)), 1))[:, known]
    means, errors = mean_and_error(by_row, weights[known])
    highest = int(np.argmax(np.where(np.isfinite(means), means, -np.inf)))
    deficits, deficit_errors = mean_and_error(by_row[highest] - by_row, weights[known])
    as_good = is_by_chance(deficits, deficit_errors, errors[highest])
    as_good[highest] = True
    fold_scores = np.stack(
        [
            np.average(own, axis=1, weights=shares) if shares.any() else np.full(len(numbers), np.nan)
            for own, shares in zip(np.split(scores, sizes, axis=1), np.split(weights[held_out], sizes), strict=True)
        ],
        axis=1,
    )
    best = int(numbers[np.flatnonzero(as_good)[0]])
    return ComponentCurve(numbers, means, errors, deficits, deficit_errors, fold_scores, best)
