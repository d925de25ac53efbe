"""Initial parameters of causal models: components by ``init`` (a name, an array or a model), others by the parts."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter

from multicause.engines.base import Data
from multicause.engines.missing import filled_with_means
from multicause.initialization.conditions import InitialConditions
from multicause.initialization.data_checks import check_values
from multicause.model import Model
from multicause.records import Parameters

INITS = ("random", "mean", "data")


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
            return rows_as_components(model, data, n_components, random)
        raise ValueError(f"Unknown init {init!r}. Known: {', '.join(map(repr, INITS))}, an array, or an estimator.")
    given = np.asarray(_components_of(init, n_components, data, random) if hasattr(init, "fit") else init)
    components = given.astype(float)
    if components.shape != (n_components, n_features):
        raise ValueError(
            f"init must have shape (n_components, n_features) = ({n_components}, {n_features}); got {components.shape}."
        )
    if not np.isfinite(components).all():
        raise ValueError("init must be finite; it holds NaN or infinity.")
    lower, upper = model.combination.bounds
    # Bounds in the precision of the components, so that those of a model in single precision lie within them.
    least, most = np.asarray((lower, upper), given.dtype if given.dtype.kind == "f" else float)
    if components.min() < least or components.max() > most:
        raise ValueError(
            f"init must have values between {lower:g} and {upper:g}, as components of {model.combination!r} have; "
            f"its values lie between {components.min():.6g} and {components.max():.6g}."
        )
    return model.combination.project(components)


def rows_as_components(model: Model, data: Data, n_components: int, random: np.random.RandomState) -> np.ndarray:
    """Return random rows as components (H, D), drawn in proportion to their weights."""
    X, weights = data.look()
    X = filled_with_means(X, weights)
    possible = np.flatnonzero(weights > 0)
    if model.prior.has_states and model.prior.has_strengths and X[possible].any():
        # A component of zeros has no effect whatever its strength, and would stay as it is.
        possible = possible[X[possible].any(axis=1)]
    chances = weights[possible] / weights[possible].sum(dtype=float)
    few = n_components > len(possible)
    chosen = X[random.choice(possible, n_components, replace=few, p=chances / chances.sum(dtype=float))]
    return model.combination.reflect(chosen)


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
