"""Whitening transformer for pipelines: TN10 §10.3."""

from __future__ import annotations

from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from multicause.engines import Engine, Local
from multicause.preparation.moments import covariance_of
from multicause.preparation.whitening import whitening_matrices
from multicause.runtime.scikit_learn import Interval, check_sample_weight, fit_context


class Whitening(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Center the data and transform its covariance to the identity by a symmetric matrix (ZCA whitening).

    Parameters
    ----------
    epsilon : float, default=0.0
        Regularization added to the variance of every principal axis, as a fraction of the mean variance. It keeps
        directions of very small variance, such as pixel noise, from being amplified.
    engine : Engine, optional
        Engine that holds the data and limits the memory of its blocks.

    Attributes
    ----------
    mean_ : ndarray of shape (n_features,)
        Mean of the data.
    matrix_ : ndarray of shape (n_features, n_features)
        Symmetric matrix by which centred data are multiplied.
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

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: ArrayLike, y: None = None, sample_weight: ArrayLike | None = None) -> Self:
        """Estimate the mean and covariance of X."""
        rows: np.ndarray = validate_data(self, X, dtype=[np.float64, np.float32], ensure_min_samples=2)
        weights = check_sample_weight(sample_weight, rows, dtype=rows.dtype, ensure_non_negative=True)
        _, mean, covariance = covariance_of((Local() if self.engine is None else self.engine).load(rows, weights))
        lifted = covariance + self.epsilon * np.trace(covariance) / len(covariance) * np.eye(len(covariance))
        remedy = "regularize with Whitening(epsilon=...), such as 1e-3"
        precision = float(np.finfo(rows.dtype).eps)
        matrix, inverse = whitening_matrices(lifted, "zca", None, remedy=remedy, precision=precision)
        self.matrix_, self.inverse_matrix_ = matrix.astype(rows.dtype), inverse.astype(rows.dtype)
        self.mean_ = mean.astype(rows.dtype)
        return self

    def transform(self, X: ArrayLike) -> np.ndarray:
        """Whiten X."""
        check_is_fitted(self)
        rows: np.ndarray = validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
        return ((rows - self.mean_) @ self.matrix_).astype(rows.dtype)

    def inverse_transform(self, X: ArrayLike) -> np.ndarray:
        """Map whitened data back to the original space."""
        check_is_fitted(self)
        return np.asarray(X) @ self.inverse_matrix_ + self.mean_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
