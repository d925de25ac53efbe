"""Base class of models that learn from their log joint alone: states are searched, parameters follow its gradient.

A model declares its log joint (``_joint_model``), initial parameters (``_initial``), the sizes to which steps are
relative (``_sizes``), and attributes that follow from its parameters (``_derived``).
"""

from __future__ import annotations

from abc import abstractmethod
from functools import partial
from os import PathLike
from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from multicause.arrays import double_precision, key_from
from multicause.callbacks.adapter import History
from multicause.estimators.advice import MEANINGS, Advice, outcome_of_batch
from multicause.estimators.arguments import random_of_batch
from multicause.estimators.base import validate_weights
from multicause.estimators.fitted_gradient_causes import SEARCHES, FittedGradientCauses
from multicause.estimators.settings import Named
from multicause.outcomes import Outcome
from multicause.posteriors import Posterior
from multicause.runtime.interruption import interruptible
from multicause.runtime.scikit_learn import fit_context
from multicause.solvers.joint_learning import GradientProgress, GradientState, PassSchedule, begin, learn, searched


class GradientCauses(FittedGradientCauses):
    """Binary causes of a model whose log joint can be computed and differentiated."""

    _constraints = {"posterior": [Named(SEARCHES), Posterior]}
    learning_rate: float
    schedule: str
    batch_size: int
    max_iter: int
    tol: float
    random_state: Any
    lower_bounds_: np.ndarray
    n_iter_: int

    # ---------------------------------------------------------------------------------------------- declaration

    @abstractmethod
    def _initial(self, X: np.ndarray, weights: np.ndarray, random: np.random.RandomState) -> Any:
        """Return initial parameters, a tree of arrays; raise an error if settings of the user are invalid."""

    @abstractmethod
    def _sizes(self, parameters: Any) -> Any:
        """Return the size of each array of the first parameters, to which steps are relative."""

    # ------------------------------------------------------------------------------------------------- learning

    @fit_context(prefer_skip_nested_validation=True)
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
        with double_precision(), self._fit_session(resume, rows, weights) as session:
            parameters = self._cast(self._initial(rows, weights, session.random), rows.dtype)
            sizes, key = self._cast(self._sizes(parameters), rows.dtype), key_from(session.random)
            method, schedule = self._method(), self._schedule()
            session.start_reporting(
                rows,
                y,
                None if sample_weight is None else weights,
                partial(self._so_far, sizes),
                bound=lambda progress: progress.bound,
                summarize=_summary,
            )
            state = learn(
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
        outcome = Outcome.MAX_ITER if state.outcome is None else state.outcome
        self._set(self._fitted(state, sizes, outcome))
        self._warn_of(outcome)
        return self

    @fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: ArrayLike, y: None = None, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from one more batch of a stream by one pass over it, at the first learning rate.

        The first batch determines the initial parameters (so it should be typical).
        """
        first = not hasattr(self, "parameters_")
        X = self._validate_rows(X, reset=first)
        X = X if first else X.astype(self._fitted_dtype, copy=False)
        weights, H = validate_weights(sample_weight, X), int(self.n_components)
        seed = self.random_state if first else random_of_batch(self.random_state, self.n_iter_)
        random, method = check_random_state(seed), self._method()
        with double_precision():
            if first:
                with interruptible() as interruption:
                    parameters = self._cast(self._initial(X, weights, random), X.dtype)
                if interruption.requested:
                    raise KeyboardInterrupt
                sizes = self._cast(self._sizes(parameters), X.dtype)
                before = begin(method, parameters, X, H, int(self.batch_size))
            else:
                parameters, sizes = self._cast(self.parameters_, X.dtype), self._relative
                states = searched(method, parameters, X, H, int(self.batch_size))
                before = GradientState(parameters, self._optimizer_state, states, self._sums)
            schedule = self._schedule()._replace(max_iter=1, tol=0.0, schedule="constant")
            settings = {"sizes": sizes, "n_components": H, "key": key_from(random), "running": True}
            state = learn(method, X, weights, lambda: before, schedule, **settings)
        outcome = outcome_of_batch(state.outcome is not Outcome.NON_FINITE)
        bounds = state.bounds if first else (*self.lower_bounds_, *state.bounds)
        self._set(self._fitted(state._replace(bounds=bounds), sizes, outcome))
        if outcome is Outcome.NON_FINITE:
            self._warn_of(outcome)
        return self

    # ---------------------------------------------------------------------------------------------- internals

    def _schedule(self) -> PassSchedule:
        numbers = int(self.batch_size), int(self.max_iter), float(self.tol), float(self.learning_rate)
        return PassSchedule(*numbers, self.schedule)

    @staticmethod
    def _cast(parameters: Any, dtype: Any) -> Any:
        return jax.tree.map(lambda leaf: jnp.asarray(leaf, dtype), parameters)

    def _fitted(self, state: GradientState, sizes: Any, outcome: Outcome) -> dict[str, Any]:
        """Return all attributes that a result of learning sets."""
        parameters, optimizer_state, sums, sizes = jax.device_get(
            (state.parameters, state.optimizer_state, state.sums, sizes)
        )
        return {
            "parameters_": parameters,
            "_optimizer_state": optimizer_state,
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

    def explain_outcome(self, outcome: Outcome) -> Advice | None:
        """Return what the outcome of a fit means, with advice for the user; None if there is nothing to improve."""
        remedies = {
            Outcome.MAX_ITER: ("raise max_iter", "raise tol if the last values of lower_bounds_ hardly differ"),
            Outcome.NON_FINITE: ("lower learning_rate", "bound the log joint", "scale X to moderate values"),
        }
        return Advice(MEANINGS[outcome], remedies[outcome]) if outcome in remedies else None


def _summary(progress: GradientProgress) -> str:
    """Return the line of a pass for the terminal."""
    return f"pass {len(progress.state.bounds):4d}  bound {progress.bound:.6f}"
