"""Base class of energy-based models as scikit-learn estimators: a fit from validated rows to fitted attributes.

A named model adds its reference and its constructor. What is learned from rows is in ``estimators/energy_fitting.py``,
and methods of the fitted model are in ``estimators/fitted_energy.py``.
"""

from __future__ import annotations

from numbers import Integral, Real
from os import PathLike
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from multicause import energies, samplers
from multicause.arrays import double_precision
from multicause.energies import NONLINEARITIES, Expert
from multicause.estimators import energy_density as density
from multicause.estimators import energy_fitting as fitting
from multicause.estimators.advice import Advice, energy_advice_on, is_single_precision, warn
from multicause.estimators.base import validate_weights
from multicause.estimators.fitted_energy import FittedEnergy
from multicause.estimators.settings import COUNT, NOT_NEGATIVE, POSITIVE, Named
from multicause.outcomes import Outcome
from multicause.preparation.whitening import KINDS
from multicause.runtime.scikit_learn import Interval, Options, StrOptions, fit_context
from multicause.samplers import Sampler
from multicause.solvers.energy_problem import method_of


class EnergyEstimator(FittedEnergy):
    """Base class of models that are defined by energies and learned by contrastive divergence."""

    _constraints = {
        "expert": [Named(energies.NAMES), Expert, callable],
        "nonlinearity": [StrOptions(set(NONLINEARITIES))],
        "sampler": [Named(samplers.NAMES), Sampler],
        "n_steps": [COUNT],
        "whiten": [Options(str, set(KINDS))],
        "n_whitened": [COUNT],
        "final_learning_rate": [POSITIVE],
        "momentum": [Interval(Real, 0, 1, closed="left")],
        "weight_decay": [NOT_NEGATIVE],
        "init": [str, "array-like"],
    }
    estimate_partition: bool
    random_state: int | np.random.RandomState | None
    lower_bound_: float
    n_rejected_: int
    n_iter_: int
    outcome_: str

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
            data = self._engine().load(rows, weights)
            problem = fitting.begin(settings, data, rows, self._memory_budget, session.random)
            self._set(fitting.learn_from_rows(settings, problem, rows, weights, session, y=y, weighted=weighted))
            reason = density.why_improper(self._problem) if self.estimate_partition else ""
            if self.log_partition_ is None and self.estimate_partition and not reason:
                self.estimate_log_partition(random_state=session.random)
            known, mean = self.log_partition_, np.nan
            if known is not None:
                mean = problem.whitening.log_volume - known.value - density.mean_energy(self._problem, data)
            self.lower_bound_ = float(mean)
        warn(reason)
        warn(fitting.warning_of_rejections(self.n_rejected_, single_precision=is_single_precision(self)))
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
        random = check_random_state(self.random_state if first else self._stream_seed())
        with double_precision():
            X = X if first else X.astype(self.components_.dtype, copy=False)
            weights = validate_weights(sample_weight, X)
            if first:
                data = self._engine().load(X, weights)
                problem, n_rejected = fitting.begin(settings, data, X, self._memory_budget, random), 0
            else:
                problem, n_rejected = self._problem, self.n_rejected_
            attributes = fitting.learn_from_batch(settings, problem, X, weights, random)
        for name in ("lower_bounds_", "contrasts_", "acceptance_rates_"):
            attributes[name] = np.append([] if first else getattr(self, name), attributes[name])
        self._set(attributes)
        n_rejected = self.n_rejected_ - n_rejected
        warn(fitting.warning_of_rejections(n_rejected, single_precision=is_single_precision(self)))
        if self.outcome_ == Outcome.NON_FINITE.value:
            self._warn_of(Outcome.NON_FINITE)
        return self

    # ---------------------------------------------------------------------------------------------- internals

    def _stream_seed(self) -> np.random.RandomState | int | None:
        """Return the random state of a later batch; an integer seed gives each batch different numbers."""
        if isinstance(self.random_state, Integral):
            return np.random.RandomState([int(self.random_state), self.n_iter_])
        return self.random_state

    def _result_names(self) -> tuple[str, ...]:
        return ("contrasts_", "acceptance_rates_", "drift_")

    def explain_outcome(self, outcome: Outcome) -> Advice | None:
        """Return what the outcome of a fit means, with advice for the user; None if there is nothing to improve."""
        return energy_advice_on(outcome, self)
