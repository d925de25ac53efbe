"""Components that a fitted model does not need: backward elimination by the evidence of rows.

A model with more components than there are causes uses the others for causes that often coincide, or has a cause
twice. Such a component may be active in more rows than a rare cause, so ``activity_`` does not tell which it is; how
well rows are explained without it does.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from multicause.arrays import double_precision
from multicause.posteriors import Posterior
from multicause.selection.differences import is_by_chance, mean_and_error
from multicause.wiring import with_posterior

# EM steps of the activities after a component was removed: those of components that take its place rise at once.
STEPS = 3
# Number of components, those that are missed least first, that are tried one after the other at each size.
ATTEMPTS = 3
# Smallest probability left to states without a component: rounding leaves none where a component is certain.
LEAST_REMAINING = 1e-12


@dataclass(frozen=True)
class SurplusComponents:
    """Components that a model does not need.

    Attributes
    ----------
    surplus : ndarray of bool, shape (n_components,)
        Which components can be left out together.
    losses : ndarray of shape (n_components,)
        By how much the mean score of a row falls without the component. Surplus components are left out one after the
        other, and each loss is measured without those before it; it is negative if rows are explained better. NaN
        for components that were not tried, because others that are missed less are needed.
    errors : ndarray of shape (n_components,)
        Standard errors of the losses.
    """

    surplus: np.ndarray
    losses: np.ndarray
    errors: np.ndarray


def surplus_components(
    model: Any, X: ArrayLike, *, posterior: str | Posterior | None = None, sample_weight: ArrayLike | None = None
) -> SurplusComponents:
    """Find components of a fitted model without which rows are explained as well.

    The component that the posterior misses least is left out, activities of the others are learned again from ``X``,
    and scores of the same rows are compared. If the mean score falls by less than two standard errors of the
    difference, or by less than a thousandth of the standard error of the score, the component is surplus and stays
    out. The search ends if none of the three components that are missed least is surplus. The others keep their
    weights, and the noise its parameters.

    A component that explains fewer than about five rows cannot lower the mean by two standard errors, and counts as
    surplus.

    Parameters
    ----------
    model : fitted estimator
        A causal model whose causes are independently on or off, such as ``MaximalCauses`` or ``LinearCauses``. It is
        not changed.
    X : array-like of shape (n_samples, n_features)
        Data, preferably rows that the model has not learned from: a component that represents a few rows by heart helps
        with no others.
    posterior : Posterior or its name, optional
        Posterior with which rows are scored, by default the model's own. Where rows have more active causes than that
        considers, components for several causes at once are needed; a richer one, such as "exact" for up to 16 causes
        or ``Preselected(10, 10, keep=None)``, shows whether they still are.
    sample_weight : array-like of shape (n_samples,), optional
        Weights of rows.

    Returns
    -------
    SurplusComponents
        Which components are surplus, and by how much scores fall without them.

    Examples
    --------
    >>> import numpy as np
    >>> from multicause import MaximalCauses
    >>> from multicause.datasets import make_bars
    >>> from multicause.selection import surplus_components
    >>> bars = make_bars(200, size=3, noise="poisson", random_state=0)
    >>> both = bars.causes[[0, 3]].max(axis=0, keepdims=True)  # two bars that coincide
    >>> model = MaximalCauses(7, noise="poisson", init=np.concatenate([bars.causes, both]), annealing=None)
    >>> surplus_components(model.fit(bars.data), bars.data).surplus
    array([False, False, False, False, False, False,  True])
    """
    check_is_fitted(model)
    learned = getattr(model, "fitted_model_", None)
    if learned is None or not learned.parts.prior.independent:
        raise TypeError(
            "surplus_components needs a causal model whose causes are independently on or off, such as MaximalCauses; "
            f"got {type(model).__name__}. Use component_curve to compare numbers of components."
        )
    n_components = len(model.components_)
    rows = np.asarray(X)
    weights = np.ones(len(rows)) if sample_weight is None else np.asarray(sample_weight, dtype=float)
    if weights.shape != (len(rows),) or not (np.isfinite(weights).all() and weights.min() >= 0 and weights.any()):
        raise ValueError(
            f"sample_weight must be {len(rows)} finite numbers, one for each row, not negative and not all zero; got "
            f"{'an array of shape ' + str(weights.shape) if weights.shape != (len(rows),) else 'others'}."
        )
    rows, weights = rows[weights > 0], weights[weights > 0]
    losses, errors = np.full(n_components, np.nan), np.full(n_components, np.nan)
    left = np.arange(n_components)  # components of the current model
    current = _in_double_precision(model if posterior is None else _richer(model, posterior, rows))
    rows = rows.astype(float)
    current = _adapted(current, rows, weights)
    scores = current.score_samples(rows)
    order, tried = _least_missed(current, rows, weights), 0
    while tried < min(ATTEMPTS, len(left)) and _allows(current, len(left) - 1):
        place = order[tried]
        smaller = _adapted(_without(current, place), rows, weights)
        without = smaller.score_samples(rows)
        (loss,), (error,) = mean_and_error((scores - without)[None], weights)
        losses[left[place]], errors[left[place]] = loss, error
        if not is_by_chance(loss, error, mean_and_error(scores[None], weights)[1][0]):
            tried += 1
            continue
        current, scores, left = smaller, without, np.delete(left, place)
        order, tried = _least_missed(current, rows, weights), 0
    surplus = np.ones(n_components, dtype=bool)
    surplus[left] = False
    return SurplusComponents(surplus, losses, errors)


def _in_double_precision(model: Any) -> Any:
    """Return a copy of a fitted model whose scores do not differ by the rounding errors of single precision."""
    parts, _, parameters = model.fitted_model_
    return model.with_fitted_model(parts, jax.tree.map(partial(np.asarray, dtype=float), parameters))


def _richer(model: Any, posterior: str | Posterior, rows: np.ndarray) -> Any:
    """Return a copy of a fitted model with another posterior."""
    fitted = model.fitted_model_
    size = (*fitted.parameters.components.shape, len(rows))
    parts = with_posterior(fitted.parts, posterior, size, type(model))
    return model.with_fitted_model(parts, fitted.parameters._replace(posterior=parts.posterior.initialize()))


def _allows(model: Any, n_components: int) -> bool:
    """Return whether the posterior can have so few causes."""
    if n_components < 1:
        return False
    try:
        _posterior(model, n_components).check(n_components)
    except ValueError:
        return False
    return True


def _posterior(model: Any, n_components: int) -> Any:
    """Return the posterior of a model, with at most as many candidates as there are causes."""
    posterior = model.fitted_model_.parts.posterior
    return posterior.with_fewer_states(n_components, n_components) or posterior


def _without(model: Any, place: int) -> Any:
    """Return a copy of a fitted model without one of its components."""
    parts, _, parameters = model.fitted_model_
    others = np.delete(np.arange(len(parameters.components)), place)
    components: Any = np.asarray(parameters.components)[others]
    prior: Any = {name: np.asarray(values)[others] for name, values in parameters.prior.items()}
    fewer = replace(parts, posterior=_posterior(model, len(others)))
    return model.with_fitted_model(fewer, parameters._replace(components=components, prior=prior))


def _adapted(model: Any, rows: np.ndarray, weights: np.ndarray) -> Any:
    """Return a copy of a fitted model after some EM steps of its activities, if these are learned."""
    parts, total = model.fitted_model_.parts, weights.sum()
    for _ in range(STEPS if "activity" in parts.learn else 0):
        active, parameters = weights @ model.transform(rows), model.fitted_model_.parameters
        with double_precision():
            prior = parts.prior.maximize(parameters.prior, {"active": active}, total)
        model = model.with_fitted_model(parts, parameters._replace(prior=prior))
    return model


def _least_missed(model: Any, rows: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the components ordered by how much the evidence falls without the states in which they are active.

    It is Σ_n w_n log(1 − ⟨s_h⟩_n) − Σ_n w_n log(1 − π_h), see :func:`multicause.search.variants.falls_without`. Without
    activities learned again, and without candidates selected again, it serves only to order components.
    """
    remaining = np.maximum(1 - model.transform(rows), LEAST_REMAINING)
    activity = np.minimum(np.asarray(model.activity_, dtype=float), 1 - LEAST_REMAINING)
    change = weights @ np.log(remaining) - weights.sum() * np.log1p(-activity)
    return np.argsort(-change, kind="stable")
