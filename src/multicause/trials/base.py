"""The interface of a trial in bulk: what :func:`multicause.fit_trials` asks of an estimator."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np

from multicause.engines import Blocks
from multicause.learning import online
from multicause.learning.annealing import Annealing
from multicause.learning.bulk import Trial
from multicause.learning.convergence import Outcome

if TYPE_CHECKING:
    from multicause.estimator import CausalEstimator


class BulkTrial(ABC):
    """One of many trials that are learned together, from data of its own.

    An estimator names its kind of trial in ``_bulk_trial``. Called with the estimator, its data and, where they are
    known, its ``causes``, the kind does everything that comes before learning. Estimators of one program differ in
    nothing but their seeds.
    """

    #: Arrays that are learned from, with a leading axis of starts.
    given: Any

    @abstractmethod
    def learn(self, given: Any) -> Any:
        """What is found from the arrays of all trials, joined along the axis of starts, which it has too."""

    @abstractmethod
    def keep(self, found: Any) -> None:
        """Make the estimator a fitted one, by what was found from this trial's own starts."""


def keep_end(estimator: CausalEstimator, end: Trial, annealing: Annealing, blocks: Blocks, *, died: bool) -> None:
    """Store what there is to say after learning without history; ``died`` says that a cause did."""
    bound = float(end.statistics.bound / end.statistics.seen)
    estimator._online = online.continued(end.statistics, int(end.n_iter))
    estimator.annealing_ = annealing
    estimator._keep_threshold(estimator._model, estimator._engine(), blocks, end.parameters)
    estimator.lower_bound_, estimator.lower_bounds_, estimator.temperatures_ = bound, np.array([bound]), np.ones(1)
    estimator.n_iter_, estimator.converged_ = int(end.n_iter), bool(end.converged)
    outcome = Outcome.CONVERGED if estimator.converged_ else Outcome.MAX_ITER
    outcome = Outcome.CAUSE_DIED if died else outcome
    estimator.outcome_ = (outcome if end.finite else Outcome.NON_FINITE).value
