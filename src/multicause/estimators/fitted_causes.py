"""Methods of a fitted causal model: recognition, scores, reconstruction, imputation, sampling and saving."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from numbers import Integral
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from multicause import inference
from multicause.arrays import check_room, double_precision, key_from
from multicause.combinations import Combination
from multicause.em import online
from multicause.em.e_step import evidence_threshold
from multicause.em.initialization import check_noise
from multicause.engines import Data
from multicause.engines.dask import is_distributed
from multicause.engines.missing import filled
from multicause.estimators.base import BaseModel, ValueLabels
from multicause.model import Model, Parameters, interned
from multicause.noises import Noise
from multicause.persistence.row_writing import check_out, write_rows
from multicause.posteriors import Posterior
from multicause.preparation.base import Preparation
from multicause.priors import Prior
from multicause.updates import Update
from multicause.wiring import check

ROLES_OF_PARTS = {"prior": Prior, "combination": Combination, "noise": Noise, "posterior": Posterior, "update": Update}
#: Function of results of some rows, and of a function that returns these rows.
Finish = Callable[[np.ndarray, Callable[[], np.ndarray]], np.ndarray]
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


class FittedCauses(BaseModel):
    """Base class with the methods of a fitted causal model."""

    n_components: int
    _model: Model
    _parameters: Parameters
    _preparation: dict[str, np.ndarray] = {}
    _threshold: float | Data | None  # evidence_threshold_, or the data from which it will be computed
    _online: online.Online | None  # None if a model has no statistics, such as one that is still learning

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
        found = self._by_rows(inference.best_states, X, top)
        return Recognition(*found) if len(found) == len(Recognition._fields) else SlabRecognition(*found)

    def score_samples(self, X: ArrayLike) -> np.ndarray:
        """Return the log evidence log p(y) of each row if the posterior is exact, else its lower bound: (n_samples,).

        If the posterior is a point estimate of causes v, as in sparse coding and K-means, it is log p(v, y).
        """
        return self._by_rows(inference.log_evidence, X)

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
        S = np.asarray(S, dtype=self.components_.dtype)
        if not np.isfinite(S).all():
            raise ValueError("Causes must be finite; they hold NaN or infinity.")
        if S.ndim != 2 or S.shape[1] != len(self.components_):
            raise ValueError(
                f"Causes must have shape (n_samples, {len(self.components_)}), one column per cause; got {S.shape}."
            )
        with double_precision():
            means = inference.combine(self._model, self._parameters, jnp.asarray(S))
        return self._unprepared(np.asarray(means))

    def sample(
        self, n_samples: int = 1, random_state: int | np.random.RandomState | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Draw new data from the model: rows (n_samples, n_features) and their causes (n_samples, n_components)."""
        check_is_fitted(self)
        if not isinstance(n_samples, Integral) or n_samples < 1:
            raise ValueError(f"n_samples must be a positive integer; got {n_samples!r}.")
        check_room(int(n_samples), sum(self.components_.shape), self.components_.dtype)
        with double_precision():
            key = key_from(check_random_state(random_state))
            rows, causes = inference.sample(self._model, self._parameters, key, int(n_samples))
        return self._unprepared(np.asarray(rows)), np.asarray(causes)

    # ---------------------------------------------------------------------------------------------- internals

    def _preparer(self) -> Preparation:
        """Return how rows are prepared before learning and recognition."""
        return Preparation()

    def _recognition_model(self, model: Model, n_components: int, n_features: int) -> Model:
        """Return the model that infers causes of rows, given the learned one."""
        return model

    def _derived(self, parameters: Parameters) -> dict[str, Any]:
        """Return fitted attributes that only this model has, as a function of its parameters."""
        return {}

    @property
    def _recognizer(self) -> Model:
        return self._recognition_model(self._model, *self._parameters.components.shape)

    def _unprepared(self, rows: np.ndarray) -> np.ndarray:
        return self._preparer().undo(self._preparation, rows)

    def _value_labels(self) -> ValueLabels:
        """Return labels of bounds and scores, from the posteriors of learning and recognition."""
        bound = self._model.posterior.bound_label
        return ValueLabels(bound, bound, self._recognizer.posterior.evidence_label)

    def _attributes(self, model: Model, parameters: Parameters, record: dict[str, np.ndarray]) -> dict[str, Any]:
        """Return the attributes of a fitted model, which follow from model, parameters and the record of preparation.

        Parameters are stored on the host: JAX arrays would lose their double precision in a pickle. Attributes are
        computed from them on the host too, so that those of a loaded model are identical.
        """
        parameters, preparer = jax.device_get(parameters), self._preparer()
        components, variance = np.array(parameters.components), parameters.noise.get("variance")
        return {
            "_model": model,
            "_parameters": parameters,
            "_preparation": record,
            "components_": preparer.components_of(record, components),
            "activity_": np.array(model.prior.activity(parameters.prior)),
            "noise_variance_": None if variance is None else np.asarray(variance)[()],
            **model.prior.fitted(parameters.prior),
            "posterior_": clone(model.posterior),
            "update_": clone(model.update),
            **preparer.attributes(record, components.dtype),
            **self._derived(parameters),
        }

    def _set(self, attributes: dict[str, Any]) -> None:
        for name, value in attributes.items():
            setattr(self, name, value)

    def _set_threshold(self, data: Data) -> None:
        """Store the data from which :attr:`evidence_threshold_` is computed; none, if all states are considered."""
        self._threshold = -np.inf if self._recognizer.posterior.max_active is None else data.released()

    @property
    def evidence_threshold_(self) -> float:
        """Log evidence reached by the share of training rows that the states considered should explain.

        It is computed by a pass over these rows when it is first accessed; until then the model keeps a reference to
        them.
        """
        threshold = self.__dict__.get("_threshold")
        if threshold is None:
            raise AttributeError(
                f"This {type(self).__name__} has no evidence_threshold_, because it is still learning."
            )
        if isinstance(threshold, Data):
            with double_precision():
                self._threshold = threshold = self._evidence_threshold(threshold)
        return threshold

    @evidence_threshold_.setter
    def evidence_threshold_(self, threshold: float) -> None:
        self._threshold = threshold

    def __getstate__(self) -> dict[str, Any]:
        """Compute values that need the training data, which are not part of a pickle, and return the state."""
        if isinstance(self.__dict__.get("_threshold"), Data):
            _ = self.evidence_threshold_
        return super().__getstate__()

    def _evidence_threshold(self, data: Data) -> float:
        recognizer = self._recognizer
        data = inference.arrange(recognizer, data, len(self.components_))
        return evidence_threshold(recognizer, data, self._parameters)

    def _by_rows(
        self,
        function: Any,
        X: ArrayLike,
        *arguments: Any,
        model: Model | None = None,
        out: Any = None,
        finish: Finish | None = None,
    ) -> Any:
        """Apply a compiled inference function to X, block by block, with this or another model.

        ``finish`` is applied to results of some rows, and to a function that returns these rows of X.
        """
        check_is_fitted(self)
        model = self._recognizer if model is None else model
        if out is not None:
            check_out(out)
        if is_distributed(X):
            return self._lazily(partial(self._by_rows, function, model=model, finish=finish), X, *arguments, out=out)
        original = data = self._load(X, None, reset=False)
        if data.dtype != self.components_.dtype:
            data = data.transformed(partial(np.asarray, dtype=self.components_.dtype))
        data = self._preparer().transform(self._preparation, data)
        check_noise(model.noise, data)
        model = interned(replace(model, missing=data.has_missing))
        with double_precision():
            data = inference.arrange(model, data, len(self.components_))

            def own(block: Any) -> Any:
                return function(model, block, self._parameters, *arguments)

            if out is not None:
                return write_rows(out, data.n_rows, _finished(finish, original, data.results(own)))
            (found,) = _finished(finish, original, [data.collect(data.map(own))])
            return found

    def _state(self) -> dict[str, Any]:
        """Return the state that :meth:`_restore` needs in addition to constructor arguments and history."""
        return {
            "parts": {name: getattr(self._model, name) for name in ROLES_OF_PARTS},
            "learn": self._model.learn,
            "missing": self._model.missing,
            "components": self._parameters.components,
            "prior": self._parameters.prior,
            "noise": self._parameters.noise,
            "posterior": self._parameters.posterior,
            "preparation": self._preparation,
            "online": online.saved(self._online),
        }

    def _restore(self, state: dict[str, Any]) -> None:
        """Set the attributes of the fitted model with the given :meth:`_state`."""
        model = Model(**state["parts"], learn=frozenset(state["learn"]), missing=bool(state.get("missing", False)))
        for name, base in ROLES_OF_PARTS.items():
            if not isinstance(getattr(model, name), base):
                raise TypeError(f"{name} must be a {base.__name__}; got {getattr(model, name)!r}")
            getattr(model, name).validate()
        check(model, type(self))
        with double_precision():
            preparer, record = self._preparer(), state["preparation"]
            parameters = Parameters(state["components"], state["prior"], state["noise"], state["posterior"])
            model.posterior.check(len(parameters.components))
            inside, outside = (1, parameters.components.shape[1]), (1, self.n_features_in_)
            row = preparer.apply(record, np.zeros(outside, dtype=parameters.components.dtype))
            if row.shape != inside or preparer.undo(record, row).shape != outside:
                raise ValueError(f"rows of {self.n_features_in_} features do not fit its components")
            self._online = online.restored(model, parameters, **(state["online"] or {"averages": None, "n_batches": 0}))
            self._set(self._attributes(model, parameters, record))


def _finished(finish: Finish | None, data: Data, parts: Iterable[Any]) -> Iterator[Any]:
    """Yield results of consecutive rows of the data, to which a function is applied."""
    start = 0
    for part in parts:
        if finish is None:
            yield part
            continue
        own = np.arange(start, start + len(part))
        yield finish(part, partial(data.rows, own))
        start += len(part)
