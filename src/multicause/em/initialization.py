"""Initial conditions of learning: moments and checks of the data, initial parameters, and the annealing schedule."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter

from multicause.annealing import Annealing, NoAnnealing
from multicause.compatibility import Support
from multicause.engines.base import Data
from multicause.engines.missing import filled_with_means, with_any_value
from multicause.model import Model, Moments, Parameters
from multicause.noises import Noise
from multicause.parts import resolve

INITS = ("random", "mean", "data")
# Number of rows from which the distance of the data from zero is estimated.
ROWS_TO_MEASURE = 10_000
# Spacing of floating-point numbers that is too coarse for the data, relative to their standard deviation, and the
# distance of data from zero, in standard deviations, up to which likelihoods are accurate in double precision.
COARSEST = 0.01
FARTHEST = 1e9
# Number of standard errors by which the mean of a column must exceed zero to count as positive.
SURELY_POSITIVE = 2.0


class InitialConditions(NamedTuple):
    """Model, data and random state from which initial parameters of all starts are drawn."""

    model: Model
    moments: Moments
    data: Data
    random: np.random.RandomState
    n_starts: int
    record: Mapping[str, np.ndarray] = {}  # what preparation of the data has found


def first_moments(data: Data) -> Moments:
    """Return the weighted mean of each dimension, the variance of all values together, and that within dimensions."""
    mean, spread = data.overview.mean, data.overview.spread
    with np.errstate(over="ignore", invalid="ignore"):
        variance = spread + float(np.var(mean))
    return Moments(mean, variance, spread, float(np.finfo(data.dtype).eps))


def lost_digits(X: np.ndarray) -> str:
    """Return a warning if rows are too far from zero for the precision of their dtype; empty otherwise."""
    rows = filled_with_means(X[:: -(-len(X) // ROWS_TO_MEASURE)].astype(float))
    mean = rows.mean(axis=0)
    with np.errstate(over="ignore"):  # values that are too large raise another error
        spread, farthest = float(np.sqrt(np.mean((rows - mean) ** 2))), float(np.abs(mean).max())
    step = float(np.spacing(X.dtype.type(farthest)))
    if spread == 0 or not np.isfinite(spread) or (step < COARSEST * spread and farthest < FARTHEST * spread):
        return ""
    other = ", or use float64 data" if X.dtype == np.float32 else ""
    return (
        f"The values of X lie {farthest / spread:.1e} standard deviations from zero, where {X.dtype} has steps of "
        f"{step / spread:.1e} standard deviations: too few digits are left for what varies, and likelihoods are not "
        f"reliable. Subtract the mean of the data{other}."
    )


def contradicting_signs(model: Model, rows: np.ndarray) -> str:
    """Return a warning if components must be non-negative but data are centred or negative; empty otherwise.

    Means of such a model are non-negative, so that most columns should have a mean above zero. Data that were centred
    by a scaler have none, and components learned from them only explain positive values.
    """
    if model.combination.bounds[0] < 0 or not (rows < 0).any():
        return ""
    mean, error = np.nanmean(rows, axis=0), np.nanstd(rows, axis=0) / np.sqrt(len(rows))
    varying = error > 0
    below = mean[varying] < SURELY_POSITIVE * error[varying]
    if not (varying.any() and below.mean() > 0.5):
        return ""
    return (
        f"Components of {model.combination!r} are not negative, but {below.sum()} of {varying.sum()} columns of X have "
        "no mean above zero, as if they were centred: values below zero cannot be explained. (1) Leave the data as "
        "they are, without StandardScaler or subtracted means; (2) scale them with MaxAbsScaler or MinMaxScaler, which "
        "keep zero or the smallest value at zero; (3) use LinearCauses, whose components have either sign."
    )


def check_values(data: Data) -> tuple[float, float]:
    """Return the smallest and the largest value.

    Raise ValueError if all values are equal, or if their squares overflow or underflow in their dtype.
    """
    (low, high), limits = data.overview.limits, np.finfo(data.dtype)
    largest = max(-low, high)
    if largest > np.sqrt(float(limits.max) / data.n_features):
        raise ValueError(
            f"The largest value of X, {largest:.3g}, is too large to be squared in {data.dtype}. Scale X down."
        )
    if low == high:
        raise ValueError(
            f"All values of X are equal ({low:.6g}), so there are no causes to find. "
            "X needs at least two different values."
        )
    if largest < np.sqrt(float(limits.tiny)):
        raise ValueError(
            f"The largest value of X, {largest:.3g}, is too small to be squared in {data.dtype}. Scale X up."
        )
    return low, high


def check_noise(noise: Noise, data: Data) -> None:
    """Raise ValueError if some values are impossible under a noise.

    Extreme values are enough to find that out; the error is that of all rows together.
    """
    extreme_rows = data.overview.extreme_rows
    try:
        if len(extreme_rows):
            noise.check_data(extreme_rows)
    except ValueError:
        data.each(partial(_check_rows, noise))
        raise


def _check_rows(noise: Noise, rows: np.ndarray, weights: np.ndarray) -> None:
    noise.check_data(with_any_value(rows))


def starting_parameters(
    initial: InitialConditions,
    n_components: int,
    *,
    init: str | ArrayLike,
    activity: float | ArrayLike | None,
    noise_scale: float | None,
) -> Parameters:
    """Return initial parameters of all starts, in the dtype of the data; starts differ in their components."""
    model, dtype, n_starts = initial.model, initial.data.dtype, initial.n_starts
    _, largest = check_values(initial.data)
    if largest <= model.combination.bounds[0]:
        raise ValueError(
            f"X has no positive value (its largest is {largest:.6g}), so components that are not negative cannot "
            "explain it. Change the sign of X, or use LinearCauses, whose components may be negative."
        )
    components = [_starting_components(initial, n_components, init) for _ in range(n_starts)]

    def repeated(values: dict[str, np.ndarray]) -> dict[str, Any]:
        return {name: np.stack([value] * n_starts).astype(dtype) for name, value in values.items()}

    start: Any = np.stack(components).astype(dtype)
    return Parameters(
        components=start,
        prior=repeated(model.prior.initialize(n_components, activity)),
        noise=repeated(model.noise.initialize_for(n_components, initial.moments, noise_scale)),
        posterior=repeated(model.posterior.initialize()),
    )


def _starting_components(initial: InitialConditions, n_components: int, init: str | ArrayLike) -> np.ndarray:
    """Return initial components (H, D): random, with or without the mean row, rows, the user's, or another model's."""
    model, moments, data, random = initial[:4]
    n_features = data.n_features
    if isinstance(init, str):
        if init in ("random", "mean"):
            draws = model.combination.initialize(random, n_components, moments)
            return draws if init == "random" else _around_mean(draws, moments.mean, model)
        if init == "data":
            X, weights = data.look()
            X = filled_with_means(X, weights)
            possible = np.flatnonzero(weights > 0)
            if model.prior.support is Support.SPIKE_SLAB and X[possible].any():
                # A component of zeros has no effect whatever its strength, and would stay as it is.
                possible = possible[X[possible].any(axis=1)]
            chances = weights[possible] / weights[possible].sum(dtype=float)
            few = n_components > len(possible)
            chosen = X[random.choice(possible, n_components, replace=few, p=chances / chances.sum(dtype=float))]
            return model.combination.reflect(chosen)
        raise ValueError(f"Unknown init {init!r}. Known: {', '.join(map(repr, INITS))}, an array, or a model.")
    components = np.asarray(
        _components_of(init, n_components, data, random) if hasattr(init, "fit") else init, dtype=float
    )
    if components.shape != (n_components, n_features):
        raise ValueError(
            f"init must have shape (n_components, n_features) = ({n_components}, {n_features}); got {components.shape}."
        )
    if not np.isfinite(components).all():
        raise ValueError("init must be finite; it holds NaN or infinity.")
    lower, upper = model.combination.bounds
    if components.min() < lower or components.max() > upper:
        raise ValueError(
            f"init must have values between {lower:g} and {upper:g}, as components of {model.combination!r} have; "
            f"its values lie between {components.min():.6g} and {components.max():.6g}."
        )
    return components


def _around_mean(draws: np.ndarray, mean: np.ndarray, model: Model) -> np.ndarray:
    """Return random components (H, D), half of each value flat and half in proportion to the mean row.

    Without the flat half, a feature that is zero in all rows so far would have zero weight. Negative means count as
    zero.
    """
    if model.combination.bounds[0] < 0:
        raise ValueError(
            "init='mean' is for components that are not negative, but here they may be. Use init='random'."
        )
    positive = np.maximum(mean, 0)
    return draws * (1 + positive / positive.mean()) / 2 if positive.any() else draws


def _components_of(estimator: Any, n_components: int, data: Data, random: np.random.RandomState) -> np.ndarray:
    """Return the components that another estimator learns from the data, with sample weights if it supports them."""
    X, weights = data.look()
    model = clone(estimator)
    settings = model.get_params(deep=False)
    if settings.get("n_components", n_components) != n_components:
        raise ValueError(
            f"init={type(estimator).__name__}(n_components={settings['n_components']}) must have as many components as "
            f"the model that starts from it, n_components={n_components}."
        )
    if "random_state" in settings and settings["random_state"] is None:
        model.set_params(random_state=random.randint(np.iinfo(np.int32).max))
    weighted = weights.min() < weights.max() and has_fit_parameter(model, "sample_weight")
    if not get_tags(model).input_tags.allow_nan:
        X = filled_with_means(X, weights)
    model.fit(X, **({"sample_weight": weights} if weighted else {}))
    if not hasattr(model, "components_"):
        raise ValueError(f"init must have components_ after fit; {type(estimator).__name__} has none.")
    return model.components_


def choose_annealing(annealing: str | Annealing | None) -> Annealing:
    """Return the user's annealing schedule, or ``NoAnnealing()`` for None."""
    return NoAnnealing() if annealing is None else resolve(annealing, {}, "annealing", Annealing)
