"""What every estimator of the library shares, whatever its family: validation, score, saving, tags."""

from __future__ import annotations

import warnings
from contextlib import AbstractContextManager
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from multicause.callbacks.adapter import CallbackSupportMixin, Fitting, fitting
from multicause.engines import Engine, Local
from multicause.learning.convergence import Outcome
from multicause.persistence import save


class Shell(ClassNamePrefixFeaturesOutMixin, TransformerMixin, CallbackSupportMixin, BaseEstimator):
    """A scikit-learn estimator of this library; it is fitted once it has ``components_``."""

    #: Attributes with a fit's results that only this model has; they are saved with it.
    _results: tuple[str, ...] = ()
    components_: np.ndarray
    engine: Engine | None

    def score_samples(self, X: ArrayLike) -> np.ndarray:
        """A number for each row that says how well the model explains it: (n_samples,)."""
        raise NotImplementedError

    def score(self, X: ArrayLike, y: None = None, sample_weight: ArrayLike | None = None) -> float:
        """Mean of :meth:`score_samples`, weighted by ``sample_weight`` (n_samples,) if it is given."""
        scores = np.asarray(self.score_samples(X), dtype=np.float64)
        weights = None if sample_weight is None else validate_weights(sample_weight, scores[:, None])
        return float(np.average(scores, weights=weights))

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted model into one file, which :func:`multicause.load` reads."""
        check_is_fitted(self)
        save(self, path)

    def _watched(self, resume: str | PathLike[str] | None, *data: np.ndarray | None) -> AbstractContextManager[Fitting]:
        """One fit to rows, weights and whatever else it learns from, perhaps from a checkpoint on."""
        return fitting(self, data, resume)

    def _state(self) -> dict[str, Any]:
        """What :meth:`_restore` needs beyond constructor arguments and history."""
        raise NotImplementedError

    def _engine(self) -> Engine:
        return Local() if self.engine is None else self.engine

    def _validate_rows(self, X: ArrayLike, *, reset: bool) -> np.ndarray:
        return validate_data(
            self,
            X,
            reset=reset,
            dtype=[np.float64, np.float32],
            order="C",
            ensure_min_samples=2 if reset else 1,
        )

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "components_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def warn_of(outcome: Outcome, more: str = "") -> None:
    """Warn of an end that a person can do something about, with one more remedy if there is one."""
    remedy = f"{outcome.remedy} (4) {more}" if more else outcome.remedy
    warn(f"outcome_={outcome.value!r}: {remedy}" if outcome.remedy else "", stacklevel=6)


def warn(message: str, stacklevel: int = 4) -> None:
    """Warn of something that keeps learning from being all it could be; an empty message is none."""
    if message:
        warnings.warn(message, ConvergenceWarning, stacklevel=stacklevel)


def validate_weights(sample_weight: ArrayLike | None, X: np.ndarray) -> np.ndarray:
    """Weights of rows (N,) in the dtype of X, none of them negative."""
    return _check_sample_weight(sample_weight, X, dtype=X.dtype, ensure_non_negative=True)
