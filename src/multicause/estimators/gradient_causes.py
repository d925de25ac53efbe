"""Base class of models that learn from their log joint alone: states are searched, parameters follow its gradient.

A model declares its log joint (``_joint_model``), initial parameters (``_initial``), the sizes to which steps are
relative (``_sizes``), and attributes that follow from its parameters (``_derived``).
"""

from __future__ import annotations

from abc import abstractmethod
from functools import partial
from numbers import Integral
from os import PathLike
from typing import Any, NamedTuple, Self

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import _fit_context
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from multicause import posteriors
from multicause.arrays import double_precision, key_from
from multicause.callbacks.adapter import History
from multicause.engines.dask import is_distributed
from multicause.estimators import joint_inference as inference
from multicause.estimators.advice import MEANINGS, Advice
from multicause.estimators.base import BaseModel, ValueLabels, outcome_of_batch, validate_weights, warn_of
from multicause.outcomes import Outcome
from multicause.parts import PartChoice, resolve
from multicause.persistence.row_writing import check_out, write_rows
from multicause.posteriors import Beam, Evolved, Posterior
from multicause.solvers import optimizers
from multicause.solvers.joint_learning import GradientProgress, GradientState, Method, Schedule, begin, learn, searched
from multicause.solvers.joint_model import JointModel
from multicause.solvers.optimizers import Optimizer

SEARCHES = {"evolved": Evolved, "beam": Beam}


class StateRecognition(NamedTuple):
    """The most probable states of each row, best first, with probabilities among the states considered."""

    states: np.ndarray  # (n, K, H)
    probabilities: np.ndarray  # (n, K)
    log_evidence: np.ndarray  # (n,)


class GradientCauses(BaseModel):
    """Binary causes of a model whose log joint can be computed and differentiated."""

    n_components: int
    posterior: str | Posterior
    optimizer: str | Optimizer
    learning_rate: float
    schedule: str
    batch_size: int
    max_iter: int
    tol: float
    random_state: Any
    parameters_: Any
    lower_bounds_: np.ndarray
    n_iter_: int
    _moments: tuple[Any, ...]  # state of the optimizer, with which ``partial_fit`` goes on
    _sums: Any  # sums over rows from which parameters follow in closed form

    # ---------------------------------------------------------------------------------------------- declaration

    @abstractmethod
    def _joint_model(self) -> JointModel:
        """Return the log joint."""

    @abstractmethod
    def _initial(self, X: np.ndarray, weights: np.ndarray, random: np.random.RandomState) -> Any:
        """Return the first parameters, a tree of arrays, and check whatever a user has given."""

    @abstractmethod
    def _sizes(self, parameters: Any) -> Any:
        """Return the size of each array of the first parameters, to which steps are relative."""

    def _derived(self, parameters: Any) -> dict[str, Any]:
        """Return fitted attributes that only this model has, as a function of its parameters."""
        return {}

    # ------------------------------------------------------------------------------------------------- learning

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self,
        X: ArrayLike,
        y: None = None,
        sample_weight: ArrayLike | None = None,
        *,
        resume: str | PathLike[str] | None = None,
    ) -> Self:
        """Learn the parameters from X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data; float32 stays float32, all other types become float64. Of data in files or on a cluster that exceed
            the memory budget of the engine, a random sample is learned from, with a warning.
        y : None
            Ignored, for compatibility with pipelines.
        sample_weight : array-like of shape (n_samples,), optional
            Passes over the data show each row as often as its weight says.
        resume : path-like, optional
            Checkpoint of this fit, or the folder with its checkpoints, from which to resume.
        """
        rows, weights = self._rows_in_memory(X, sample_weight)
        with double_precision(), self._watched(resume, rows, weights) as session:
            parameters = self._cast(self._initial(rows, weights, session.random), rows.dtype)
            sizes, key = self._cast(self._sizes(parameters), rows.dtype), key_from(session.random)
            method, schedule = self._method(), self._schedule()
            session.watch(
                rows,
                y,
                None if sample_weight is None else weights,
                partial(self._so_far, sizes),
                bound=lambda progress: progress.bound,
                summarize=_summary,
            )
            found = learn(
                method,
                rows,
                weights,
                lambda: begin(method, parameters, rows, int(self.n_components), int(self.batch_size)),
                schedule,
                sizes=sizes,
                n_components=int(self.n_components),
                key=key,
                watch=session,
                journal=session.journal,
            )
        outcome = Outcome.MAX_ITER if found.outcome is None else found.outcome
        self._set(self._fitted(found, sizes, outcome))
        warn_of(outcome, self)
        return self

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: ArrayLike, y: None = None, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from one more batch of a stream by one pass over it, at the first learning rate.

        The first batch determines the initial parameters (so it should be typical).
        """
        first = not hasattr(self, "parameters_")
        X = self._validate_rows(X, reset=first)
        X = X if first else X.astype(self._fitted_dtype, copy=False)
        weights, H = validate_weights(sample_weight, X), int(self.n_components)
        seed = self.random_state
        if isinstance(seed, Integral) and not first:
            seed = np.random.RandomState([int(seed), self.n_iter_])
        random, method = check_random_state(seed), self._method()
        with double_precision():
            if first:
                parameters = self._cast(self._initial(X, weights, random), X.dtype)
                sizes = self._cast(self._sizes(parameters), X.dtype)
                before = begin(method, parameters, X, H, int(self.batch_size))
            else:
                parameters, sizes = self._cast(self.parameters_, X.dtype), self._relative
                states = searched(method, parameters, X, H, int(self.batch_size))
                before = GradientState(parameters, self._moments, states, self._sums)
            schedule = self._schedule()._replace(max_iter=1, tol=0.0, schedule="constant")
            settings = {"sizes": sizes, "n_components": H, "key": key_from(random), "running": True}
            found = learn(method, X, weights, lambda: before, schedule, **settings)
        outcome = outcome_of_batch(found.outcome is not Outcome.NON_FINITE)
        bounds = found.bounds if first else (*self.lower_bounds_, *found.bounds)
        self._set(self._fitted(found._replace(bounds=bounds), sizes, outcome))
        if outcome is Outcome.NON_FINITE:
            warn_of(outcome, self)
        return self

    # -------------------------------------------------------------------------------------------- fitted models

    def transform(self, X: ArrayLike, *, out: Any = None) -> np.ndarray:
        """Return the probability of each cause: (n_samples, n_components).

        ``out`` is an array of that shape or the name of a ``.npy`` file, to which they are written block by block.
        """
        return self._by_rows(inference.mean_states, X, out)

    def score_samples(self, X: ArrayLike) -> np.ndarray:
        """Return the lower bound log Σ p(s, y) over the states considered: (n_samples,)."""
        return self._by_rows(inference.log_evidence, X)

    def recognize(self, X: ArrayLike, top: int | None = 16) -> StateRecognition:
        """Return the ``top`` most probable states of each row, or all that were considered, with the log evidence."""
        if top is not None and (not isinstance(top, Integral) or top < 1):
            raise ValueError(f"top must be a positive number of states, or None for all; got {top!r}.")
        states, probabilities, evidence = self._by_rows(inference.best_states, X)
        return StateRecognition(states[:, :top], probabilities[:, :top], evidence)

    # ---------------------------------------------------------------------------------------------- internals

    def _by_rows(self, function: Any, X: Any, out: Any = None) -> Any:
        """Apply a function of :mod:`joint_inference` to the rows of X, block by block."""
        check_is_fitted(self)
        if out is not None:
            check_out(out)
        if is_distributed(X):
            return self._lazily(partial(self._by_rows, function), X, out=out)
        data, method, H = self._load(X, None, reset=False), self._method(), int(self.n_components)
        with double_precision():
            data = inference.arranged(method, self.parameters_, data, self._fitted_dtype, H)

            def own(block: Any) -> Any:
                return inference.of_block(function, method, H, self.parameters_, block)

            return data.collect(data.map(own)) if out is None else write_rows(out, data.n_rows, data.results(own))

    def _method(self) -> Method:
        """Return model, search and optimizer; raise an error if the search needs more than a log joint."""
        posterior = resolve(self.posterior, posteriors.NAMES, "posterior", Posterior)
        if not isinstance(posterior, Evolved | Beam):
            raise TypeError(
                f"posterior of {type(self).__name__} must be 'evolved' or 'beam', which need nothing but a log joint; "
                f"got {posterior!r}. With Evolved(population) of at least 2^n_components states the posterior is exact."
            )
        return Method(self._joint_model(), posterior, resolve(self.optimizer, optimizers.NAMES, "optimizer", Optimizer))

    def _schedule(self) -> Schedule:
        numbers = int(self.batch_size), int(self.max_iter), float(self.tol), float(self.learning_rate)
        return Schedule(*numbers, self.schedule)

    @staticmethod
    def _cast(parameters: Any, dtype: Any) -> Any:
        return jax.tree.map(lambda leaf: jnp.asarray(leaf, dtype), parameters)

    def _fitted(self, state: GradientState, sizes: Any, outcome: Outcome) -> dict[str, Any]:
        """Return all attributes that a result of learning sets."""
        parameters, moments, sums, sizes = jax.device_get((state.parameters, state.moments, state.sums, sizes))
        return {
            "parameters_": parameters,
            "_moments": moments,
            "_sums": sums,
            "_relative": sizes,
            "lower_bound_": state.bounds[-1],
            "lower_bounds_": np.array(state.bounds),
            "n_iter_": len(state.bounds),
            "outcome_": outcome.value,
            "converged_": outcome is Outcome.CONVERGED,
            **self._derived(parameters),
        }

    def _so_far(self, sizes: Any, progress: GradientProgress, history: History) -> dict[str, Any]:
        return self._fitted(progress.state._replace(bounds=history.bounds), sizes, Outcome.STOPPED)

    def _state(self) -> dict[str, Any]:
        return {
            "parameters": self.parameters_,
            "moments": self._moments,
            "sums": self._sums,
            "sizes": self._relative,
        }

    def _restore(self, state: dict[str, Any]) -> None:
        parameters = state["parameters"]
        method, H = self._method(), int(self.n_components)
        with double_precision():
            inference.check_parameters(method, parameters, H, self.n_features_in_, state["moments"])
        self._set({"parameters_": parameters, "_moments": state["moments"], "_sums": state["sums"]})
        self._set({"_relative": state["sizes"], **self._derived(parameters)})

    @property
    def _fitted_dtype(self) -> np.dtype:
        return np.asarray(jax.tree.leaves(self.parameters_)[0]).dtype

    @property
    def _n_features_out(self) -> int:
        return int(self.n_components)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "parameters_")

    def _needs_complete(self) -> str:
        return ""

    def _part_choices(self) -> dict[str, PartChoice]:
        own = {"posterior": PartChoice(SEARCHES), "optimizer": PartChoice(optimizers.NAMES)}
        return {**super()._part_choices(), **own}

    def _value_labels(self) -> ValueLabels:
        return ValueLabels("lower bound", "lower bound", "lower bound")

    def _advice(self, outcome: Outcome) -> Advice | None:
        remedies = {
            Outcome.MAX_ITER: ("raise max_iter", "raise tol if the last values of lower_bounds_ hardly differ"),
            Outcome.BOUND_FELL: ("lower learning_rate", "raise batch_size"),
            Outcome.CAUSE_DIED: ("lower n_components", "change random_state"),
            Outcome.NON_FINITE: ("lower learning_rate", "bound the log joint", "scale X to moderate values"),
        }
        return Advice(MEANINGS[outcome], remedies[outcome]) if outcome in remedies else None


def _summary(progress: GradientProgress) -> str:
    """Return the line of a pass for the terminal."""
    return f"pass {len(progress.state.bounds):4d}  bound {progress.bound:.6f}"
