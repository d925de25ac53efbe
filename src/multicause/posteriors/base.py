"""The interface of a posterior."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from multicause.arrays import Array
from multicause.compatibility import Expectation, Likelihood, Link, Requirements, Support
from multicause.expectations import Inference
from multicause.generative import GenerativeModel
from multicause.parts import Part
from multicause.posteriors.log_joint_search import LogJointSearch
from multicause.records import Block, Parameters

#: Requirements of posteriors over lists of states, and the expectations that they offer.
OF_STATES = Requirements(
    supports=frozenset({Support.BINARY, Support.ONE_HOT}),
    links=frozenset({Link.MEAN}),
    likelihoods=frozenset({Likelihood.OF_MEANS}),
)
EXPECTATIONS_OF_STATES = frozenset(
    {Expectation.MOMENTS, Expectation.CREDIT, Expectation.LIKELIHOOD, Expectation.RESIDUALS}
)


class Posterior(Part):
    """A rule that determines which states are considered for each row, and their probabilities."""

    #: Expectations that this posterior can compute.
    offers: frozenset[Expectation] = frozenset()
    #: Whether EM with this posterior and a monotone update never lowers the bound: the states must stay the same.
    monotone = False
    #: Whether EM steps are meant to raise the bound, so that a step that lowers it was too long.
    ascends_bound = True
    #: Whether states of rows are kept between iterations: it has ``first_states`` and ``evolve``.
    keeps_states = False
    #: Share of the rows explainable by the posterior that learning finally uses; None uses all rows.
    keep: float | None = None
    #: Maximum number of active causes of a state; None if there is no limit.
    max_active: int | None = None

    @property
    def bound_label(self) -> str:
        """Description of the bound of a row, for reports and plots."""
        return "lower bound of the log evidence"

    @property
    def evidence_label(self) -> str:
        """Description of ``log_evidence`` of a row, for reports and plots."""
        return self.bound_label

    def bind(self, model: GenerativeModel, n_components: int, n_features: int, n_rows: int) -> Posterior:
        """Return this posterior with numbers for all settings left open; ``model`` contains the unbound posterior."""
        return self

    def shares_states(self, n_components: int) -> bool:
        """Return whether all rows have the same states, so that scores are matrix products and EM is monotone."""
        return False

    def with_fewer_states(self, candidates: int, max_active: int) -> Posterior | None:
        """Return this posterior with fewer candidates and active causes; None if it selects no candidates."""
        return None

    def log_joint_search(self) -> LogJointSearch | None:
        """Return a search that needs only the log joint of a model; None if this posterior needs more."""
        return None

    def initialize(self) -> dict[str, np.ndarray]:
        """Return the initial values of the posterior's own parameters, ``Parameters.posterior``."""
        return {}

    def statistics(self, inference: Inference) -> dict[str, Array]:
        """Return the sums over rows that an update of the posterior's own parameters needs."""
        return {}

    def maximize(
        self, model: GenerativeModel, parameters: Parameters, statistics: dict[str, Array], weight: Array
    ) -> dict[str, Array]:
        """Return new values of the posterior's own parameters; ``parameters.prior`` is already updated."""
        return parameters.posterior

    def diagnose(self, model: GenerativeModel, parameters: Parameters) -> str:
        """Return a warning about the learned parameters for the user, or an empty string if there is none."""
        return ""

    def validate_on(self, components: np.ndarray, rows: np.ndarray) -> None:
        """Raise ValueError if functions given by the user fail on some rows of the data."""
        return

    def log_mass(self, model: GenerativeModel, parameters: Parameters) -> Array | None:
        """Return log Σ_{s ∈ K} p(s), the share of rows that can be explained; None if every state is considered."""
        return None

    @abstractmethod
    def n_states(self, n_components: int) -> int:
        """Return the number of states that are considered for one row."""

    @abstractmethod
    def check(self, n_components: int) -> None:
        """Raise ValueError if this posterior does not support the given number of causes."""

    @abstractmethod
    def bytes_per_row(self, n_components: int, n_features: int, itemsize: int, linear: bool = False) -> int:
        """Return the memory that one row takes inside :meth:`infer`, from which the engine computes block sizes.

        ``linear`` says that scores of states follow from projections, without means (sums under Gaussian noise).
        """

    def bytes_of_mask(self, n_components: int, n_features: int, itemsize: int) -> int:
        """Return the additional memory that one row takes if values may be missing."""
        return itemsize * 3 * n_features

    @abstractmethod
    def bytes_of_states(self, n_components: int, n_features: int, itemsize: int) -> int:
        """Return the memory that :meth:`infer` takes independently of the number of rows."""

    @abstractmethod
    def infer(self, model: GenerativeModel, parameters: Parameters, block: Block, temperature: Array) -> Inference:
        """Return expectations under q_n(s) ∝ p(s, y_n)^{1/temperature} over the states considered."""
