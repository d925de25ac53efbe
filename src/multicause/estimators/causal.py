"""Base class of all causal models as scikit-learn estimators: a fit from validated rows to fitted attributes.

A named model is a declaration: parts (``_parts``), preparation of rows (``_preparer``), solver (``_solver``), initial
parameters (``_starts``) and attributes that follow from parameters (``_derived``). None of these changes the estimator;
fitted attributes are set in one place, after learning.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from os import PathLike
from typing import Any, Self

import jax
import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from multicause.annealing import NoAnnealing
from multicause.arrays import double_precision
from multicause.callbacks.adapter import History
from multicause.em import online
from multicause.em.results import BoundChange, FitResult, Progress, one_start
from multicause.em.solver import FitProblem, Solver
from multicause.engines import Data, Local
from multicause.engines.missing import check_columns
from multicause.estimators.advice import Advice, warn
from multicause.estimators.base import validate_weights
from multicause.estimators.declaration import DeclaredModel
from multicause.inference import arrange
from multicause.initialization.conditions import InitialConditions, first_moments
from multicause.initialization.data_checks import check_noise, contradicting_signs, lost_digits
from multicause.model import Model, interned
from multicause.outcomes import Outcome
from multicause.preparation.base import Learned, PreparationRecord
from multicause.runtime.scikit_learn import fit_context

# Number of rows on which a user's own functions are tested before learning begins.
ROWS_TO_TRY = 64


class CausalEstimator(DeclaredModel):
    """Base class of directed models of hidden causes. A named model adds its parts, defaults and reference."""

    lower_bounds_: np.ndarray
    temperatures_: np.ndarray
    rows_kept_: np.ndarray | None
    bound_changes_: tuple[BoundChange, ...]

    # ---------------------------------------------------------------------------------------------- learning

    @fit_context(prefer_skip_nested_validation=True)
    def fit(
        self,
        X: ArrayLike,
        y: None = None,
        sample_weight: ArrayLike | None = None,
        *,
        resume: str | PathLike[str] | None = None,
    ) -> Self:
        """Learn the model's parameters from X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training data; float32 is computed in float32, all other dtypes in float64. NaN marks missing values: causes
            are learned from the likelihood of the observed values only.
        y : None
            Ignored, for compatibility with pipelines.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows; a weight of k is equivalent to k repetitions of the row.
        resume : path-like, optional
            Checkpoint of this fit (see :class:`multicause.callbacks.Checkpoint`), or the folder with its checkpoints.
            Learning resumes from it and ends as if it had never been interrupted. A checkpoint of another model, other
            settings or other data raises an error.
        """
        return self._fit(X, y, sample_weight, resume)

    def _fit(self, X: Any, y: Any, sample_weight: Any, resume: Any, known_causes: np.ndarray | None = None) -> Self:
        """Run the solver on X; causes that are known are part of the identity of the fit, which a checkpoint has."""
        solver = self._solver()
        data = self._load_for(solver, X, sample_weight)
        self._check_columns(data)
        self._threshold = None
        rows, weights = data.look()
        warn(lost_digits(rows))
        causes = () if known_causes is None else (known_causes,)
        with double_precision(), self._fit_session(resume, data, *causes) as session:
            preparer, random = self._preparer(), session.random
            record = preparer.measure(data)
            data = preparer.prepare(record, data)
            model = self._wire(data)
            check_noise(model.noise, data)
            warn(contradicting_signs(model, rows))
            n_components = self._n_causes(data)
            n_starts = solver.most_starts(model, n_components)
            data = arrange(model, data, n_components, n_starts)
            problem = self._problem(solver, solver.n_starts, model, data, record, random)
            problem = problem._replace(known_causes=known_causes)
            so_far, n_tasks = partial(self._so_far, solver, model, record), solver.most_iterations(problem)
            session.start_reporting(rows, y, None if sample_weight is None else weights, so_far, n_tasks=n_tasks)
            result = solver.learn(problem._replace(watch=session, journal=session.journal))
            self._set(self._fitted(model, record, result))
            self._warn_of(result.outcome)
            self._set_threshold(data)
            warn(model.posterior.diagnose(model, result.parameters))
        return self

    @fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: ArrayLike, y: None = None, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from one more batch of a stream, by default by a step of online EM at temperature one.

        The first batch determines the initial values (so it should be typical), later ones update running averages of
        the statistics; see :mod:`multicause.em.online`. A fitted model is learned further from its current parameters.
        """
        first, solver, preparer = not hasattr(self, "components_"), self._solver(), self._preparer()
        data = self._load_batch(X, sample_weight, first)
        with double_precision():
            before = (None, None) if first else (self._preparation, self._parameters)
            record, data = preparer.prepare_batch(before[0], data, before[1])
            model = self._wire(data) if first else self._with_missing(data)
            check_noise(model.noise, data)
            random = check_random_state(self.random_state)
            n_components = self._n_causes(data) if first else len(self.components_)
            data = arrange(model, data, n_components)
            if first:
                problem = self._problem(solver, 1, model, data, record, random)
            else:
                recognizer = solver.recognizer(model, *self._parameters.components.shape)
                results = {name: getattr(self, name) for name in solver.result_names if hasattr(self, name)}
                problem = FitProblem(model, recognizer, data, one_start(self._parameters), random, record)
                problem = problem._replace(results=results, n_batches=self.n_iter_)
            batch, averages = solver.learn_batch(problem, None if first else self._online)
            if not first:
                bounds, temperatures = (self.lower_bounds_, batch.bounds), (self.temperatures_, batch.temperatures)
                batch = batch._replace(bounds=np.concatenate(bounds), temperatures=np.concatenate(temperatures))
                batch = batch._replace(
                    kept=getattr(self, "rows_kept_", None), bound_changes=getattr(self, "bound_changes_", ())
                )
            self._set({**self._fitted(model, record, batch), "_online": averages})
            self._set_threshold(data)
        if batch.outcome is Outcome.NON_FINITE:
            self._warn_of(batch.outcome)
        return self

    # ---------------------------------------------------------------------------------------------- internals

    def _fitted(self, model: Model, record: PreparationRecord, result: FitResult) -> dict[str, Any]:
        """Return all attributes that a result of learning sets: the only place where results become attributes."""
        learned = self._preparer().finish(Learned(model, result.parameters, result.statistics, record))
        statistics, n_iter = learned.statistics, result.n_rounds
        return {
            **self._attributes(learned.model, learned.parameters, learned.record),
            **result.results,
            "_online": None if statistics is None else online.continued(statistics, n_iter),
            "annealing_": NoAnnealing() if result.annealing is None else result.annealing,
            "lower_bound_": result.bound,
            "lower_bounds_": result.bounds,
            "temperatures_": result.temperatures,
            "rows_kept_": result.kept,
            "bound_changes_": result.bound_changes,
            "n_iter_": n_iter,
            "converged_": result.converged,
            "outcome_": result.outcome.value,
        }

    def _so_far(
        self, solver: Solver, model: Model, record: PreparationRecord, progress: Progress, history: History
    ) -> dict[str, Any]:
        """Return fitted attributes of the current state of learning, for a copy of this estimator."""
        best, n_iter = progress.best, history.n_iterations
        parameters, statistics = jax.tree.map(
            lambda leaf: np.asarray(leaf)[best], (progress.parameters, progress.statistics)
        )
        result = FitResult(
            parameters=parameters,
            bound=float(progress.bound[best]),
            bounds=np.array(history.bounds),
            temperatures=np.array(history.temperatures),
            n_iter=n_iter,
            n_rounds=n_iter,
            converged=False,
            outcome=Outcome.STOPPED,
            statistics=statistics,
            annealing=solver.schedule,
            results=progress.results,
        )
        return self._fitted(model, record, result)

    def _with_missing(self, data: Data) -> Model:
        """Return the learned model for a further batch; once values were missing, statistics allow for it."""
        return interned(replace(self._model, missing=self._model.missing or data.has_missing))

    def _problem(
        self,
        solver: Solver,
        n_starts: int,
        model: Model,
        data: Data,
        record: PreparationRecord,
        random: np.random.RandomState,
    ) -> FitProblem:
        """Return the problem of a fit, with initial parameters."""
        initial = InitialConditions(model, first_moments(data), data, random, n_starts, record)
        starts = self._preparer().add_parameters(self._starts(initial), model)
        first_rows = np.nan_to_num(data.rows(np.arange(min(ROWS_TO_TRY, data.n_rows))))
        model.posterior.validate_on(np.asarray(starts.components)[0], first_rows)
        recognizer = solver.recognizer(model, *starts.components.shape[1:])
        return FitProblem(model, recognizer, data, starts, random, record)

    def _load_for(self, solver: Solver, X: Any, sample_weight: ArrayLike | None) -> Data:
        """Return validated rows and weights as data of the engine, in memory if the solver needs single rows."""
        if not solver.needs_rows_in_memory:
            return self._load(X, sample_weight, reset=True)
        rows, weights = self._rows_in_memory(X, sample_weight)
        engine: Any = self._engine(rows)
        # A cluster would get the rows, and give back a sample of them.
        local = engine if engine.in_this_process else Local(memory_budget=engine.memory_budget)
        return local.load(rows, weights)

    def _load_batch(self, X: ArrayLike, sample_weight: ArrayLike | None, first: bool) -> Data:
        X = self._validate_rows(X, reset=first)
        weights = validate_weights(sample_weight, X)
        if first:
            warn(lost_digits(X))
        else:
            X, weights = X.astype(self.components_.dtype), weights.astype(self.components_.dtype)
        data = self._engine().load(X, weights)
        if first:
            self._check_columns(data)
        return data

    def _check_columns(self, data: Data) -> None:
        """Raise ValueError if a column has no observed value, so that nothing could be learned about it."""
        if data.has_missing and data.n_weighted:
            check_columns(data.missing, getattr(self, "feature_names_in_", None))

    def explain_outcome(self, outcome: Outcome) -> Advice | None:
        """Return advice on an outcome, with that of the noise if the data do not suit it."""
        advice = super().explain_outcome(outcome)
        more = self._model.noise.remedy(self.components_) if hasattr(self, "_model") else ""
        return advice._replace(remedies=(*advice.remedies, more)) if advice and more else advice
