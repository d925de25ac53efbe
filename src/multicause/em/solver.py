"""Interface of solvers, which learn the parameters of a model from all data or from one more batch of a stream.

A solver holds settings and nothing else. It gets a :class:`FitProblem`, whose data are already prepared and arranged in
blocks, and returns a :class:`multicause.em.results.FitResult`. Its loop is that of :mod:`multicause.em.driver`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from multicause.annealing import Annealing, NoAnnealing
from multicause.em import online
from multicause.em.driver import Watch
from multicause.em.results import FitResult, batch_result, is_finite, start_of
from multicause.engines.base import Data
from multicause.model import Model
from multicause.persistence.journal import Journal
from multicause.records import Parameters


class FitProblem(NamedTuple):
    """Model, data and initial parameters of one fit, or of one batch of a stream."""

    model: Model
    recognizer: Model  # model with which causes will be inferred, usually the same
    data: Data
    starts: Parameters  # with a leading axis of starts; in a stream, the parameters learned so far
    random: np.random.RandomState
    record: Mapping[str, np.ndarray] = {}  # record of the preparation, such as the covariance of the data
    watch: Watch | None = None
    journal: Journal | None = None
    results: Mapping[str, Any] = {}  # ``FitResult.results`` of the batches so far
    n_batches: int = 0  # batches of the stream, or iterations, so far
    known_causes: np.ndarray | None = None  # true causes (n_causes, D), if the user knows them, as in a benchmark

    @property
    def loop(self) -> dict[str, Any]:
        """Return the arguments of a loop that the driver needs."""
        return {"watch": self.watch, "journal": self.journal}


@dataclass(frozen=True, kw_only=True)
class Solver(ABC):
    """Base class of solvers."""

    max_iter: int = 1
    tol: float = 0.0
    n_starts: int = 1
    #: Whether batches of a stream are averaged. They are not where the data of a batch represent all batches so far, or
    #: where each batch is one step of a learning rule.
    averages_batches: bool = True

    #: Whether learning needs single rows again and again, which are then loaded into the memory of this process.
    needs_rows_in_memory: ClassVar[bool] = False
    #: Why no value may be missing, as part of an error message; empty if values may be missing.
    needs_complete: ClassVar[str] = ""

    @abstractmethod
    def learn(self, problem: FitProblem) -> FitResult:
        """Learn from all data, and return the result of the best start."""

    def learn_batch(self, problem: FitProblem, before: online.Online | None) -> tuple[FitResult, online.Online | None]:
        """Learn from one more batch, by default by a step of online EM; return the result and the new averages.

        Parameters that are not finite are not returned: the result then has those from before.
        """
        old = start_of(problem.starts)
        after, new, bound = online.step(problem.model, problem.data, old, before if self.averages_batches else None)
        finite = bool(np.isfinite(bound)) and is_finite(new)
        n_before = 0 if before is None else before.n_batches
        if finite:
            after = after._replace(n_batches=n_before + 1)
        else:
            after = online.Online(after.averages, 0) if before is None else before
        return batch_result(new if finite else old, bound, after.n_batches, finite=finite), after

    @property
    def result_names(self) -> tuple[str, ...]:
        """Return the names in ``FitResult.results``, which become fitted attributes and are saved with the model."""
        return ()

    def recognizer(self, model: Model, n_components: int, n_features: int) -> Model:
        """Return the model that infers causes of rows, given the learned one: by default the same."""
        return model

    @property
    def schedule(self) -> Annealing:
        """Return the annealing schedule as far as it is known before learning."""
        return NoAnnealing()

    def most_iterations(self, problem: FitProblem) -> int:
        """Return the largest number of iterations that ``learn`` may report."""
        return self.max_iter

    def most_starts(self, model: Model, n_components: int) -> int:
        """Return the largest number of starts that are learned at the same time."""
        return self.n_starts
