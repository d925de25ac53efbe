"""Base class of all estimators of the library: validation, score, saving, tags."""

from __future__ import annotations

from abc import abstractmethod
from contextlib import AbstractContextManager
from copy import copy
from functools import partial
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import check_is_fitted, validate_data

from multicause.arrays import bytes_from
from multicause.callbacks.adapter import CallbackSupportMixin, FitSession, fit_session
from multicause.engines import Data, Engine, Local, default_engine
from multicause.engines.base import LazyResults
from multicause.engines.missing import check_finite, without_mask
from multicause.engines.source import Source
from multicause.engines.sparse_source import SparseSource
from multicause.estimators.advice import Advice, advice_on, warn_of_convergence
from multicause.estimators.columns import with_names
from multicause.estimators.settings import ConstrainedSettings
from multicause.outcomes import Outcome
from multicause.parts import PartChoice
from multicause.persistence import save
from multicause.runtime.scikit_learn import check_sample_weight, validate_settings
from multicause.runtime.user_warnings import warn_user

#: Models that can learn from rows with missing values, as listed in error messages.
MODELS_FOR_MISSING = (
    "MaximalCauses, LinearCauses, NonnegativeCauses, MixtureOfGaussians, KMeans, FactorAnalysis and "
    "PrincipalComponents, among others,"
)


class ValueLabels(NamedTuple):
    """Descriptions of the values that a model computes for each row, for reports and plots."""

    bound: str  # describes the value whose mean is ``lower_bound_``
    history: str  # describes ``lower_bounds_``
    score: str  # describes ``score_samples``


class BaseModel(ClassNamePrefixFeaturesOutMixin, TransformerMixin, CallbackSupportMixin, ConstrainedSettings):
    """Base class of the library's scikit-learn estimators, which are fitted once they have ``components_``."""

    #: ``out`` of ``transform`` is not metadata that scikit-learn should route.
    __metadata_request__transform = {"out": UNUSED}
    components_: np.ndarray
    engine: Engine | None

    @abstractmethod
    def score_samples(self, X: ArrayLike) -> np.ndarray:
        """Return a number for each row that says how well the model explains it: (n_samples,)."""

    def score(self, X: ArrayLike, y: None = None, sample_weight: ArrayLike | None = None) -> float:
        """Return the mean of :meth:`score_samples`, weighted by ``sample_weight`` (n_samples,) if given."""
        scores = np.asarray(self.score_samples(X), dtype=np.float64)
        weights = None if sample_weight is None else validate_weights(sample_weight, scores[:, None])
        return float(np.average(scores, weights=weights))

    def check_settings(self) -> None:
        """Raise an error for constructor arguments that no data would suit."""
        validate_settings(self)

    @property
    def has_states(self) -> bool:
        """Return whether causes are on or off, so that ``recognize`` of a fitted model lists states."""
        return False

    @property
    def has_probabilities(self) -> bool:
        """Return whether ``transform`` returns probabilities of causes rather than real values."""
        return False

    @property
    def adds_strengths(self) -> bool:
        """Return whether causes have a strength of any size and add up."""
        return False

    def _part_choices(self) -> dict[str, PartChoice]:
        """Return the parts that names and None stand for."""
        return {**super()._part_choices(), "engine": PartChoice(defaults=lambda: (Local(),))}

    def _result_names(self) -> tuple[str, ...]:
        """Return the names of fitted attributes that only this model has, which are saved with it."""
        return ()

    def _needs_complete(self) -> str:
        """Return why no value may be missing, as part of an error message; empty if values may be missing."""
        return "learns from complete rows"

    @abstractmethod
    def value_labels(self) -> ValueLabels:
        """Return descriptions of the values of a fitted model, for reports and plots."""

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted model to a file, which :func:`multicause.load` reads."""
        check_is_fitted(self)
        save(self, path)

    def _fit_session(
        self, resume: str | PathLike[str] | None, *data: np.ndarray | Data | None
    ) -> AbstractContextManager[FitSession]:
        """Return the session of one fit to the given data, resumed from a checkpoint if ``resume`` is given."""
        return fit_session(self, data, resume)

    def explain_outcome(self, outcome: Outcome) -> Advice | None:
        """Return what the outcome of a fit means, with advice for the user; None if there is nothing to improve."""
        return advice_on(outcome, self)

    def _warn_of(self, outcome: Outcome) -> None:
        """Warn about the outcome of a fit if there is advice on it."""
        warn_of_convergence(outcome, self.explain_outcome(outcome))

    @abstractmethod
    def _state(self) -> dict[str, Any]:
        """Return the state that :meth:`_restore` needs in addition to constructor arguments and history."""

    def _set(self, attributes: dict[str, Any]) -> None:
        """Set each of the attributes, as results of learning have them, to its value."""
        for name, value in attributes.items():
            setattr(self, name, value)

    def _engine(self, X: Any = None) -> Engine:
        """Return the engine that the user has chosen, or the default engine for the type of X."""
        return default_engine(X) if self.engine is None else self.engine

    def _load(self, X: Any, sample_weight: ArrayLike | None, *, reset: bool) -> Data:
        """Validate rows and weights given by the user, and return them as data of the engine."""
        engine = self._engine(X)
        source = engine.source(X)
        if source is None:
            rows = self._validate_rows(X, reset=reset)
            return engine.load(rows, validate_weights(sample_weight, rows))
        if sample_weight is not None:
            sample_weight = np.asarray(sample_weight)
            sample_weight = validate_weights(sample_weight, np.broadcast_to(0.0, (len(sample_weight), 1)))
        refusal = self._refusal_of_missing() if self._needs_complete() else None
        data = engine.load(source, sample_weight, refusal)
        least = 2 if reset else 1
        if data.n_rows < least:
            raise ValueError(f"Found array with {data.n_rows} sample(s) while a minimum of {least} is required.")
        self._validate_columns(with_names(data.rows(np.array([0])), source), reset=reset)
        return data

    def _validate_columns(self, row: Any, *, reset: bool) -> None:
        """Let scikit-learn store or compare the number and the names of the features, for which one row is enough."""
        validate_data(self, row, reset=reset, dtype=[np.float64, np.float32], ensure_all_finite="allow-nan")

    def _lazily(self, lazy: LazyResults, function: partial[Any], X: Any, *arguments: Any, out: Any = None) -> Any:
        """Return a function's results for rows of X that are computed later, where the rows are."""
        n_columns = lazy.n_columns(X)
        if n_columns is not None:
            self._validate_columns(with_names(np.zeros((1, n_columns), self._fitted_dtype), X), reset=False)
        row = np.zeros((1, self.n_features_in_), dtype=self._fitted_dtype)
        refusal = self._refusal_of_missing() if self._needs_complete() else None
        return lazy.compute_later(self._for_chunks(function), X, *arguments, row=row, out=out, refusal=refusal)

    def _for_chunks(self, method: partial[Any]) -> partial[Any]:
        """Return a method of this model, given with arguments, as one of a copy that is used for chunks in workers.

        A task that waited for other tasks of the same cluster could cause a deadlock. Chunks have no names of columns,
        which have been compared before; scikit-learn would warn of each.
        """
        model = copy(self)
        model.engine = Local(memory_budget=self._engine().memory_budget, n_jobs=1)
        model.__dict__.pop("feature_names_in_", None)
        return partial(getattr(model, method.func.__name__), *method.args, **method.keywords)

    def _rows_in_memory(self, X: Any, sample_weight: ArrayLike | None) -> tuple[np.ndarray, np.ndarray]:
        """Return validated rows and weights for models that learn from single rows in random order.

        Of rows that are in files or on a cluster, a random sample is taken, the same each time, if all rows do not fit
        into the memory budget of the engine.
        """
        engine: Any = self._engine(X)
        if engine.source(X) is None:
            rows = self._validate_rows(X, reset=True)
            return rows, validate_weights(sample_weight, rows)
        data = self._load(X, sample_weight, reset=True)
        most = max(2, bytes_from(engine.memory_budget) // (data.n_features * data.dtype.itemsize))
        if data.n_rows > most:
            warn_user(
                f"{type(self).__name__} learns from single rows in the memory of this process. The memory budget of "
                f"{engine.memory_budget!r} holds a random sample of {most:,} rows, of {data.n_rows:,}. For a larger "
                f"sample, use engine={type(engine).__name__}(memory_budget=...)."
            )
        return data.sample_rows(most, np.random.RandomState(0))

    def _validate_rows(self, X: ArrayLike, *, reset: bool) -> np.ndarray:
        if issparse(X):
            X = np.asarray(SparseSource(X))
        elif isinstance(X, Source):
            X = with_names(np.asarray(X), X)
        X = without_mask(X)
        rows = validate_data(
            self,
            X,
            reset=reset,
            dtype=[np.float64, np.float32],
            order="C",
            ensure_min_samples=2 if reset else 1,
            ensure_all_finite="allow-nan",
        )
        if self._needs_complete():
            check_finite(rows, 0, "", refusal=self._refusal_of_missing())
        return rows

    def _refusal_of_missing(self) -> str:
        """Return why no value may be missing, and which models support missing values."""
        return (
            f"{type(self).__name__} {self._needs_complete()}, so that no value may be missing. Leave such rows or "
            f"columns out, or fill the values in: {MODELS_FOR_MISSING} learn from the observed values alone, and "
            "their method impute fills the others in."
        )

    @property
    def _fitted_dtype(self) -> np.dtype:
        """Return the precision in which the model was learned."""
        return self.components_.dtype

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "components_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        tags.input_tags.allow_nan = not self._needs_complete()
        tags.input_tags.sparse = True
        return tags


def validate_weights(sample_weight: ArrayLike | None, X: np.ndarray) -> np.ndarray:
    """Return weights of rows (N,) in the dtype of X; raise ValueError if any is negative."""
    return check_sample_weight(sample_weight, X, dtype=X.dtype, ensure_non_negative=True)
