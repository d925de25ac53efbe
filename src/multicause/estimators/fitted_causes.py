"""Methods of a fitted causal model: recognition, scores, reconstruction, imputation and sampling."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from multicause import inference
from multicause.arrays import double_precision, key_from
from multicause.engines.missing import filled
from multicause.estimators.arguments import validate_causes, validate_n_samples
from multicause.estimators.row_results import RowResults
from multicause.posteriors import Posterior
from multicause.wiring import with_posterior

# Default number of states that ``recognize`` lists for each row.
DEFAULT_TOP = 16


class Recognition(NamedTuple):
    """The most probable states of causes for each row, best first.

    Probabilities are relative to all states that the posterior considers; if not all of them are listed, a row's
    probabilities sum to less than one. If a row has fewer states than others, its list is padded with zeros.
    """

    states: np.ndarray  # (n, K, H) of zeros and ones
    probabilities: np.ndarray  # (n, K)
    log_evidence: np.ndarray  # (n,)


class SlabRecognition(NamedTuple):
    """The most probable states for each row, as in :class:`Recognition`, with the strengths of the causes."""

    states: np.ndarray  # (n, K, H) of zeros and ones, the spikes
    probabilities: np.ndarray  # (n, K)
    log_evidence: np.ndarray  # (n,)
    slabs: np.ndarray  # (n, K, H) posterior mean of s∘z given each state; zero for inactive spikes


class FittedCauses(RowResults):
    """Base class with the methods of a fitted causal model."""

    def transform(self, X: ArrayLike, *, out: Any = None) -> np.ndarray:
        """Return the posterior mean of the causes, for binary causes their probabilities: (n_samples, n_components).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data.
        out : array or path-like, optional
            Where to write the result, block by block, if it is too large for memory: an array of its shape, such as a
            writable memory map, or the name of a ``.npy`` file. The file is created when it is complete, and is
            returned as a memory map.
        """
        return self._by_rows(inference.mean_causes, X, out=out)

    def reconstruct(self, X: ArrayLike, *, out: Any = None) -> np.ndarray:
        """Return the posterior mean of the data, X as explained by its causes: (n_samples, n_features).

        ``out`` is an array of that shape or the name of a ``.npy`` file, as in :meth:`transform`.
        """
        return self._by_rows(inference.mean_data, X, out=out, finish=lambda means, rows: self._unprepared(means))

    def impute(self, X: ArrayLike, *, out: Any = None) -> np.ndarray:
        """Return X with missing values replaced by their posterior means: (n_samples, n_features).

        Observed values are unchanged, and the result has the dtype of X if that is a floating-point one.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data, in which NaN marks missing values.
        out : array or path-like, optional
            Where to write the result, as in :meth:`transform`.
        """

        def finish(means: np.ndarray, rows: Callable[[], np.ndarray]) -> np.ndarray:
            return filled(rows(), self._unprepared(means))

        return self._by_rows(inference.imputed_data, X, out=out, finish=finish)

    def recognize(self, X: ArrayLike, top: int | None = DEFAULT_TOP) -> Recognition | SlabRecognition:
        """Return the most probable states of each row, with their probabilities and the log evidence.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data.
        top : int or None, default=16
            Number of states to list for each row; None lists all that the posterior considers.
        """
        check_is_fitted(self)
        n_states = self._recognizer.posterior.n_states(len(self.components_))
        if top is not None and (not isinstance(top, Integral) or top < 1):
            raise ValueError(f"top must be a positive number of states, or None for all; got {top!r}.")
        top = n_states if top is None else min(int(top), n_states)
        recognized = self._by_rows(inference.best_states, X, top)
        return Recognition(*recognized) if len(recognized) == len(Recognition._fields) else SlabRecognition(*recognized)

    def score_samples(self, X: ArrayLike) -> np.ndarray:
        """Return the log evidence log p(y) of each row if the posterior is exact, else its lower bound: (n_samples,).

        If the posterior is a point estimate of causes v, as in sparse coding and K-means, it is log p(v, y).
        """
        return self._by_rows(inference.log_evidence, X)

    def score_samples_under(self, X: ArrayLike, posterior: str | Posterior) -> np.ndarray:
        """Return what :meth:`score_samples` would return with another posterior: (n_samples,).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data.
        posterior : Posterior or its name
            Posterior, such as ``Preselected(12, 6)``. Numbers that it leaves open suit the number of rows of ``X``.
        """
        fitted = self.fitted_model_
        # Rows of Dask may have an unknown number; what is no table is refused below.
        n_rows: Any = next(iter(np.shape(X)), None)
        size = (*fitted.parameters.components.shape, int(n_rows) if isinstance(n_rows, Integral) else 1)
        model = with_posterior(fitted.recognizer, posterior, size, type(self))
        return self._by_rows(inference.log_evidence, X, model=model)

    def free_energy(self, X: ArrayLike) -> np.ndarray:
        """Return F = ⟨log p(s, y)⟩ + H(q) of each row, which learning maximizes (TN10 eq. 10.6): (n_samples,).

        It equals :meth:`score_samples` if recognition is exact. In physics, −F is called the free energy.
        """
        return self._by_rows(inference.free_energy, X)

    def is_explained(self, X: ArrayLike) -> np.ndarray:
        """Return which rows are explained as well as those that the model has learned from: (n_samples,).

        The others probably have more active causes than the posterior considers (the classes of ET10 §3.1). With the
        exact posterior, all rows are explained. After ``partial_fit``, rows are compared with the last batch.
        """
        check_is_fitted(self)
        if not hasattr(self, "evidence_threshold_"):
            raise ValueError(
                "A model that is still learning, as in a checkpoint, does not know how well it explains its data. "
                "Finish it with fit(X, resume=...)."
            )
        return self.score_samples(X) >= self.evidence_threshold_

    def score_single_causes(self, X: ArrayLike) -> np.ndarray:
        """Return log p(s_h, y) of the states with one active cause, up to a constant per row: (n_samples, H).

        If causes have several levels, it is that of the best one.
        Causes that are not binary, or whose probability depends on higher causes, have no such states.
        """
        check_is_fitted(self)
        if not self._model.prior.has_singles:
            raise TypeError(
                f"{type(self).__name__} has no states with a single active cause under its prior, "
                f"{self._model.prior!r}. Use transform for its causes."
            )
        return self._by_rows(inference.single_causes, X)

    def inverse_transform(self, S: ArrayLike) -> np.ndarray:
        """Return the mean of the data for given causes (n_samples, n_components): (n_samples, n_features)."""
        check_is_fitted(self)
        causes = validate_causes(S, len(self.components_), self.components_.dtype)
        with double_precision():
            means = inference.combine(self._model, self._parameters, causes)
        return self._unprepared(np.asarray(means))

    def sample(
        self, n_samples: int = 1, random_state: int | np.random.RandomState | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Draw new data from the model: rows (n_samples, n_features) and their causes (n_samples, n_components)."""
        check_is_fitted(self)
        n_rows = validate_n_samples(n_samples, sum(self.components_.shape), self.components_.dtype)
        with double_precision():
            key = key_from(check_random_state(random_state))
            rows, causes = inference.sample(self._model, self._parameters, key, n_rows)
        return self._unprepared(np.asarray(rows)), np.asarray(causes)
