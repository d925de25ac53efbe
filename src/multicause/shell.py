"""What every estimator of the library shares, whatever its family: validation, score, saving, tags."""

from __future__ import annotations

import warnings
from contextlib import AbstractContextManager
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from multicause.advice import Advice, advice_on
from multicause.callbacks.adapter import CallbackSupportMixin, Fitting, fitting
from multicause.engines import Dask, Data, Engine, Local
from multicause.engines.dask import is_distributed
from multicause.engines.missing import check_finite
from multicause.engines.sources import Source
from multicause.learning.convergence import Outcome
from multicause.parts import NestedParts, PartChoice
from multicause.persistence import save

#: Models that learn from rows with missing values, as errors name them.
MODELS_FOR_MISSING = (
    "MaximalCauses, LinearCauses, NonnegativeCauses, MixtureOfGaussians, KMeans, FactorAnalysis and "
    "PrincipalComponents, among others,"
)


class ValueLabels(NamedTuple):
    """What numbers of a row are in words."""

    bound: str  # the mean of which is ``lower_bound_``
    history: str  # of ``lower_bounds_``
    score: str  # of ``score_samples``


class Shell(ClassNamePrefixFeaturesOutMixin, TransformerMixin, CallbackSupportMixin, NestedParts):
    """A scikit-learn estimator of this library; it is fitted once it has ``components_``."""

    #: Where results are written is no metadata that scikit-learn should hand on.
    __metadata_request__transform = {"out": UNUSED}
    #: Attributes with a fit's results that only this model has; they are saved with it.
    _results: tuple[str, ...] = ()
    #: Whether NaN may stand for values that were not observed.
    _allows_missing = False
    #: Why it may not, where it may not.
    _needs_all_values = "learns from complete rows"
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

    def _part_choices(self) -> dict[str, PartChoice]:
        """Return what names and None stand for; a model adds its own parts."""
        return {"engine": PartChoice(defaults=lambda: (Local(),))}

    def _value_labels(self) -> ValueLabels:
        """What the numbers of a fitted model are, for reports and plots."""
        raise NotImplementedError

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted model into one file, which :func:`multicause.load` reads."""
        check_is_fitted(self)
        save(self, path)

    def _watched(
        self, resume: str | PathLike[str] | None, *data: np.ndarray | Data | None
    ) -> AbstractContextManager[Fitting]:
        """One fit to rows, weights and whatever else it learns from, perhaps from a checkpoint on."""
        return fitting(self, data, resume)

    def _advice(self, outcome: Outcome) -> Advice | None:
        """What a user of this fitted estimator can do about the end of a fit; None where all is well."""
        return advice_on(outcome, self)

    def _state(self) -> dict[str, Any]:
        """What :meth:`_restore` needs beyond constructor arguments and history."""
        raise NotImplementedError

    def _engine(self, X: Any = None) -> Engine:
        """Return the engine that the user has chosen, or one that suits the data."""
        if self.engine is not None:
            return self.engine
        return Dask() if is_distributed(X) else Local()

    def _load(self, X: Any, sample_weight: ArrayLike | None, *, reset: bool) -> Data:
        """Return the rows and weights that a user has given as data of the engine, after validation."""
        engine = self._engine(X)
        source = engine.source(X)
        if source is None:
            rows = self._validate_rows(X, reset=reset)
            return engine.load(rows, validate_weights(sample_weight, rows))
        if sample_weight is not None:
            sample_weight = np.asarray(sample_weight)
            sample_weight = validate_weights(sample_weight, np.broadcast_to(0.0, (len(sample_weight), 1)))
        refusal = None if self._allows_missing else self._refusal_of_missing()
        if isinstance(source, Source):
            source.refusal = refusal
        data = engine.load(source, sample_weight)
        if refusal is not None and not isinstance(source, Source) and data.has_missing:
            raise ValueError(f"Input X contains NaN, in {data.missing.n_missing:,} places. {refusal}")
        least = 2 if reset else 1
        if data.n_rows < least:
            raise ValueError(f"Found array with {data.n_rows} sample(s) while a minimum of {least} is required.")
        # Scikit-learn takes note of the number of features, or compares it, by one row.
        row = data.rows(np.array([0]))
        validate_data(self, row, reset=reset, dtype=[np.float64, np.float32], ensure_all_finite="allow-nan")
        return data

    def _validate_rows(self, X: ArrayLike, *, reset: bool) -> np.ndarray:
        rows = validate_data(
            self,
            X,
            reset=reset,
            dtype=[np.float64, np.float32],
            order="C",
            ensure_min_samples=2 if reset else 1,
            ensure_all_finite="allow-nan",
        )
        if not self._allows_missing:
            check_finite(rows, 0, "", refusal=self._refusal_of_missing())
        return rows

    def _refusal_of_missing(self) -> str:
        """Return why no value may be missing, and which models allow it."""
        return (
            f"{type(self).__name__} {self._needs_all_values}, so that no value may be missing. Leave such rows or "
            f"columns out, or fill the values in: {MODELS_FOR_MISSING} learn from the observed values alone, and "
            "their method impute fills the others in."
        )

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "components_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        tags.input_tags.allow_nan = self._allows_missing
        return tags


def warn_of(outcome: Outcome, estimator: Shell) -> None:
    """Warn of an end that a user of this fitted estimator can do something about."""
    advice = estimator._advice(outcome)
    warn("" if advice is None else f"outcome_={outcome.value!r}: {advice}", stacklevel=5)


def outcome_of_batch(finite: bool) -> Outcome:
    """Return how one call of ``partial_fit`` ended.

    Its steps are done ("max_iter", without a warning), or parameters became infinite and were not kept.
    """
    return Outcome.MAX_ITER if finite else Outcome.NON_FINITE


def warn(message: str, stacklevel: int = 4) -> None:
    """Warn of something that keeps learning from being all it could be; an empty message is none."""
    if message:
        warnings.warn(message, ConvergenceWarning, stacklevel=stacklevel)


def validate_weights(sample_weight: ArrayLike | None, X: np.ndarray) -> np.ndarray:
    """Weights of rows (N,) in the dtype of X, none of them negative."""
    return _check_sample_weight(sample_weight, X, dtype=X.dtype, ensure_non_negative=True)
