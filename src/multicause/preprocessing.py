"""Whitening: a linear map after which data have unit variance in every direction, TN10 §10.3."""

from __future__ import annotations

from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin, _fit_context
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from multicause.engines import Engine, Local
from multicause.learning.condensing import covariance_of


def whitening_matrices(covariance: np.ndarray, n_components: int | None) -> tuple[np.ndarray, np.ndarray]:
    """K (H, D) with K·C·Kᵀ = 1 along the H largest principal axes of a covariance, and its pseudo-inverse (D, H)."""
    values, vectors = np.linalg.eigh(covariance)
    values, vectors = values[::-1], vectors[:, ::-1]
    largest = max(values[0], 0)
    rank = int(np.sum(values > largest * len(values) * np.finfo(float).eps * 8)) if largest > 0 else 0
    wanted = len(values) if n_components is None else n_components
    if wanted > rank:
        raise ValueError(
            f"The data's covariance is singular: only {rank} of {len(values)} directions vary, too few for "
            f"n_components={n_components}. Lower n_components to at most {rank}, use more rows, or regularise with "
            "Whitening(epsilon=...)."
        )
    scale = np.sqrt(values[:wanted])
    return (vectors[:, :wanted] / scale).T, vectors[:, :wanted] * scale


class Whitening(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Subtract the mean and make the covariance the identity, turning the data as little as possible (ZCA).

    Parameters
    ----------
    epsilon : float, default=0.0
        Added to the variance of every principal axis, as part of the mean variance: regularisation that keeps
        directions of hardly any variance, such as noise of pixels, from being amplified.
    engine : Engine, optional
        Where data lies and how much memory its blocks may take.

    Attributes
    ----------
    mean_ : ndarray of shape (n_features,)
        Mean of the data.
    matrix_ : ndarray of shape (n_features, n_features)
        The symmetric matrix by which centred data are multiplied.
    inverse_matrix_ : ndarray of shape (n_features, n_features)
        Its inverse.

    Examples
    --------
    >>> import numpy as np
    >>> from multicause.preprocessing import Whitening
    >>> X = np.random.RandomState(0).normal(size=(500, 2)) @ [[2, 1], [0, 1]]
    >>> np.abs(np.cov(Whitening().fit_transform(X).T, bias=True)).round(6).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """

    _parameter_constraints: dict[str, list[Any]] = {
        "epsilon": [Interval(Real, 0, None, closed="left")],
        "engine": [Engine, None],
    }

    def __init__(self, *, epsilon: float = 0.0, engine: Engine | None = None) -> None:
        self.epsilon = epsilon
        self.engine = engine

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: ArrayLike, y: None = None, sample_weight: ArrayLike | None = None) -> Self:
        """Learn mean and covariance of X."""
        rows: np.ndarray = validate_data(self, X, dtype=[np.float64, np.float32], ensure_min_samples=2)
        weights = _check_sample_weight(sample_weight, rows, dtype=rows.dtype, ensure_non_negative=True)
        _, mean, covariance = covariance_of(Local() if self.engine is None else self.engine, rows, weights)
        lifted = covariance + self.epsilon * np.trace(covariance) / len(covariance) * np.eye(len(covariance))
        forward, backward = whitening_matrices(lifted, None)
        values = np.linalg.norm(backward, axis=0)
        self.matrix_ = (forward.T @ (forward * values[:, None])).astype(rows.dtype)
        self.inverse_matrix_ = (backward @ (backward / values).T).astype(rows.dtype)
        self.mean_ = mean.astype(rows.dtype)
        return self

    def transform(self, X: ArrayLike) -> np.ndarray:
        """White data."""
        check_is_fitted(self)
        rows: np.ndarray = validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
        return ((rows - self.mean_) @ self.matrix_).astype(rows.dtype)

    def inverse_transform(self, X: ArrayLike) -> np.ndarray:
        """The data that would be these after whitening."""
        check_is_fitted(self)
        return np.asarray(X) @ self.inverse_matrix_ + self.mean_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
