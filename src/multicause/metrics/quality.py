"""Quality of truncated posteriors: the probability mass of the states that they consider."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from multicause.parts import resolve
from multicause.posteriors import NAMES, Exact, Posterior

# Number of machine epsilons of the log evidence by which a truncated sum may exceed the exact one.
ROUNDINGS = 100


def approximation_quality(model: Any, X: ArrayLike, *, reference: str | Posterior | None = None) -> np.ndarray:
    """Compute Q^(n) of ET10 eq. 21: the posterior probability of the states considered, for each row.

    −log Q^(n) is the Kullback–Leibler divergence of the approximate from the exact posterior. Rows with more active
    causes than the posterior allows have values near zero, all others near one.

    Parameters
    ----------
    model : fitted estimator
        A causal model of this library.
    X : array-like of shape (n_samples, n_features)
        Data.
    reference : Posterior or its name, optional
        Posterior that is treated as exact. By default all 2^H states, for up to 16 causes; for more causes pass a
        richer posterior, such as ``Preselected(12, 6)``.

    Returns
    -------
    ndarray of shape (n_samples,)
        Values between 0 and 1.
    """
    check_is_fitted(model)
    n_components = len(model.components_)
    whole = Exact() if reference is None else resolve(reference, NAMES, "reference", Posterior)
    try:
        whole.check(n_components)
    except ValueError as error:
        if reference is not None:
            raise
        raise ValueError(
            f"approximation_quality compares with all 2^{n_components} states, which are too many. Give "
            "reference=Preselected(candidates, max_active) with more candidates than the model's own posterior has."
        ) from error
    exact = model.score_samples_under(X, whole)
    missing = model.score_samples(X) - exact
    if (missing > ROUNDINGS * np.finfo(exact.dtype).eps * (1 + np.abs(exact))).any():
        own = model.fitted_model_.recognizer.posterior
        raise ValueError(
            f"reference={reference!r} finds less evidence than the model's own posterior {own!r} does, "
            "so it cannot serve as the exact one. Pass a reference with more candidates and active causes."
        )
    # Apart from rounding errors, the truncated sum cannot exceed the exact one.
    return np.exp(np.minimum(missing, 0))
