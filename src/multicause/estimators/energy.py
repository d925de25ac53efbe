"""Energy-based models as scikit-learn estimators: fit, methods of the fitted model, and what is saved.

A named model adds its reference and its constructor. What is learned from rows is in ``estimators/energy_fitting.py``,
and functions of the fitted density are in ``estimators/energy_density.py``.
"""

from __future__ import annotations

from functools import partial
from os import PathLike
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from multicause import energies, samplers
from multicause.arrays import double_precision
from multicause.energies import NONLINEARITIES, Expert
from multicause.engines import default_engine
from multicause.estimators import energy_density as density
from multicause.estimators import energy_fitting as fitting
from multicause.estimators.advice import Advice, energy_advice_on, is_single_precision, warn
from multicause.estimators.arguments import random_of_batch, validate_n_samples
from multicause.estimators.base import BaseModel, ValueLabels, validate_weights
from multicause.estimators.settings import COUNT, Named
from multicause.outcomes import Outcome
from multicause.persistence.row_writing import check_out
from multicause.preparation.whitening import KINDS
from multicause.runtime.scikit_learn import Options, StrOptions, fit_context
from multicause.runtime.user_warnings import warn_user
from multicause.samplers import Sampler
from multicause.samplers.annealed import LogPartition
from multicause.solvers import optimizers
from multicause.solvers.energy_problem import EnergyProblem, method_of, restored, saved


class EnergyEstimator(BaseModel):
    """Base class of models that are defined by energies and learned by contrastive divergence."""

    _constraints = {
        "expert": [Named(energies.NAMES), Expert, callable],
        "nonlinearity": [StrOptions(set(NONLINEARITIES))],
        "sampler": [Named(samplers.NAMES), Sampler],
        "whiten": [Options(str, set(KINDS))],
        "n_whitened": [COUNT],
        "init": [str, "array-like"],
    }
    momentum: float
    random_state: int | np.random.RandomState | None
    mean_: np.ndarray
    mixing_: np.ndarray
    log_partition_: LogPartition | None
    n_features_in_: int
    n_iter_: int
    outcome_: str
    _problem: EnergyProblem  # parts, learned parameters and whitening; ``partial_fit`` continues from it

    def check_settings(self) -> None:
        """Raise an error for constructor arguments, or parts made of them, that no data would suit."""
        super().check_settings()
        method_of(self.get_params(deep=False))

    @fit_context(prefer_skip_nested_validation=True)
    def fit(
        self,
        X: ArrayLike,
        y: None = None,
        sample_weight: ArrayLike | None = None,
        *,
        resume: str | PathLike[str] | None = None,
    ) -> Self:
        """Learn the filters from X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data; float32 stays float32, all other types become float64. Of data in files or on a cluster that exceed
            the memory budget of the engine, a random sample is learned from, with a warning.
        y : None
            Ignored, for compatibility with pipelines.
        sample_weight : array-like of shape (n_samples,), optional
            Rows are drawn in proportion to their weights; with ``batch_size=None`` means are weighted by them.
        resume : path-like, optional
            Checkpoint of this fit, or the folder with its checkpoints, from which to resume.
        """
        rows, weights = self._rows_in_memory(X, sample_weight)
        settings, weighted = self.get_params(deep=False), sample_weight is not None
        with double_precision(), self._fit_session(resume, rows, weights) as session:
            data, budget, random = self._engine().load(rows, weights), self._memory_budget, session.random
            begun = fitting.begin(settings, data, rows, budget, random)
            self._set(fitting.learn_from_rows(settings, begun, rows, weights, session, y=y, weighted=weighted))
            attributes, reason = fitting.normalize(settings, self._problem, data, budget, random)
            self._set(attributes)
        warn(reason)
        warn(fitting.warning_of_rejections(begun, self._problem, single_precision=is_single_precision(self)))
        self._warn_of(Outcome(self.outcome_))
        return self

    @fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: ArrayLike, y: None = None, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from more rows of a stream: one update for each ``batch_size`` rows of X, drawn as in ``fit``.

        Rows with weights count as in a pass of other models: as many as the sum of the weights, but at least as many as
        have a weight, and at most 16 times as many.

        The first call sets mean and whitening, so it should have enough typical rows; number of components, expert,
        layers, sampler and optimizer are also those of the first call. Learning rates fall over the first ``max_iter``
        updates and stay constant from then on. The partition function is not estimated.
        """
        first, settings = not hasattr(self, "components_"), self.get_params(deep=False)
        X = self._validate_rows(X, reset=first)
        random = check_random_state(self.random_state if first else random_of_batch(self.random_state, self.n_iter_))
        with double_precision():
            X = X if first else X.astype(self.components_.dtype, copy=False)
            weights = validate_weights(sample_weight, X)
            if first:
                data = self._engine().load(X, weights)
                before, history = fitting.begin(settings, data, X, self._memory_budget, random), {}
            else:
                before, history = self._problem, {name: getattr(self, name) for name in fitting.HISTORY}
            self._set(fitting.learn_from_batch(settings, before, X, weights, random, history))
        warn(fitting.warning_of_rejections(before, self._problem, single_precision=is_single_precision(self)))
        if self.outcome_ == Outcome.NON_FINITE.value:
            self._warn_of(Outcome.NON_FINITE)
        return self

    def transform(self, X: ArrayLike, *, out: Any = None) -> np.ndarray:
        """Return the hidden activities of all layers, concatenated: (n_samples, n_components + sum of layers).

        ``out`` is an array of that shape or the name of a ``.npy`` file, to which they are written block by block.
        """
        return self._by_rows(density.activities_of, X, out)

    def energy(self, X: ArrayLike) -> np.ndarray:
        """Compute the energy E(z) of each row: (n_samples,)."""
        return self._by_rows(density.energies_of, X)

    def score_samples(self, X: ArrayLike) -> np.ndarray:
        """Compute the log density of each row in the space of X: (n_samples,).

        If Z is neither known nor estimated (``log_partition_`` is None), the density is not normalized: rows can be
        compared, models cannot. :meth:`estimate_log_partition` or ``estimate_partition=True`` normalizes it.
        """
        energy = self.energy(X)
        log_partition = 0.0 if self.log_partition_ is None else self.log_partition_.value
        return (self._problem.whitening.log_volume - log_partition - energy).astype(energy.dtype)

    def score(self, X: ArrayLike, y: None = None, sample_weight: ArrayLike | None = None) -> float:
        """Return the mean of :meth:`score_samples`, weighted by ``sample_weight`` if it is given.

        It warns if densities are not normalized, as a grid search would compare them.
        """
        score = super().score(X, y, sample_weight)
        if self.log_partition_ is None:
            warn_user(
                "The density of this model is not normalized, so its score must not be compared with that of another "
                "model. Use estimate_partition=True, or estimate_log_partition() after the fit."
            )
        return score

    def inverse_transform(self, S: ArrayLike) -> np.ndarray:
        """Return rows (n_samples, n_features) with these first-layer activities, by the pseudo-inverse of the filters.

        Activities of further layers may be included; they follow from the first and are not used.
        """
        check_is_fitted(self)
        return density.rows_of_activities(S, self.mixing_, self.mean_, self._n_features_out)

    def estimate_log_partition(
        self,
        *,
        n_chains: int = density.CHAINS,
        n_temperatures: int = density.TEMPERATURES,
        random_state: int | np.random.RandomState | None = None,
    ) -> LogPartition:
        """Estimate log Z with its standard error by annealed importance sampling; exact if Z is known.

        The result is stored in ``log_partition_``, so that :meth:`score_samples` is normalized from now on. More
        temperatures improve each chain's estimate; use more if the standard error is not well below one.

        Raises ValueError if exp(−E) has no finite integral, which can happen with heavy tails in overcomplete models.
        """
        check_is_fitted(self)
        random, budget = check_random_state(random_state), self._memory_budget
        found = density.estimate_log_partition(self._problem, n_chains, n_temperatures, budget, random)
        self.log_partition_ = found
        return found

    def sample(
        self, n_samples: int = 1, random_state: int | np.random.RandomState | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Draw rows (n_samples, n_features) from the model, with their activities.

        If Z is known the rows are independent draws, else each is the end of a separate chain that followed a path of
        densities to the model. It warns if exp(−E) has no finite integral: the rows are then samples of no
        distribution.
        """
        check_is_fitted(self)
        n_rows = validate_n_samples(n_samples, sum(self.components_.shape), self.components_.dtype)
        if not density.draws_exactly(self._problem) and (reason := density.why_improper(self._problem)):
            warn_user(reason)
        X = density.draw_rows(self._problem, n_rows, self._memory_budget, check_random_state(random_state))
        data = self._engine().load(X, np.ones(n_rows, X.dtype))
        return X, np.asarray(density.results(density.activities_of, self._problem, data))

    def value_labels(self) -> ValueLabels:
        """Return descriptions of the values of a fitted model, for reports and plots."""
        known = "log density" if self.log_partition_ is not None else "log density without normalization"
        return ValueLabels("log density", "log density", known)

    def explain_outcome(self, outcome: Outcome) -> Advice | None:
        """Return what the outcome of a fit means, with advice for the user; None if there is nothing to improve."""
        return energy_advice_on(outcome, self)

    # ---------------------------------------------------------------------------------------------- internals

    @property
    def _memory_budget(self) -> str | int:
        return getattr(self._engine(), "memory_budget", "2GiB")

    def _by_rows(self, function: Any, X: ArrayLike, out: Any = None) -> Any:
        check_is_fitted(self)
        if out is not None:
            check_out(out, X)
        lazy = default_engine(X).lazy
        if lazy is not None:
            return self._lazily(lazy, partial(self._by_rows, function), X, out=out)
        return density.results(function, self._problem, self._load(X, None, reset=False), out)

    def _state(self) -> dict[str, Any]:
        return {**saved(self._problem), "log_partition": self.log_partition_}

    def _restore(self, state: dict[str, Any]) -> None:
        former = {"optimizer": optimizers.Momentum(self.momentum), "schedule": "linear"}
        with double_precision():
            problem = restored({**former, **state}, self.n_features_in_)
            self._set(density.fitted_attributes(problem, problem.updates))
        if state["log_partition"] is not None:
            self.log_partition_ = state["log_partition"]

    def _result_names(self) -> tuple[str, ...]:
        return ("contrasts_", "acceptance_rates_", "drift_")

    @property
    def _n_features_out(self) -> int:
        return density.n_activities(self._problem)
