"""The interfaces of a posterior and of what it infers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import jax.numpy as jnp
import numpy as np

from multicause.arrays import Array, matmul
from multicause.compatibility import Expectation, Likelihood, Link, Requirements, Support
from multicause.parts import Part

if TYPE_CHECKING:
    from multicause.model import Block, Model, Parameters

#: A function of the means of some states (S, D), of how many causes share each mean, Σ_h ∂w̄_d/∂W_hd (S, 1), and of the
#: noise's parameters, of which those of features may be those of one feature alone.
Function = Callable[[Array, Array, dict[str, Array]], Array]
#: Functions f and g that say what is pulled to the components: f(w̄)·y + g(w̄); None is zero.
Term = tuple[Function | None, Function | None]


#: What posteriors over lists of states need, and what they offer.
OF_STATES = Requirements(
    supports=frozenset({Support.BINARY, Support.ONE_HOT}),
    links=frozenset({Link.MEAN}),
    likelihoods=frozenset({Likelihood.OF_MEANS}),
)
EXPECTATIONS_OF_STATES = frozenset(
    {Expectation.MOMENTS, Expectation.CREDIT, Expectation.LIKELIHOOD, Expectation.RESIDUALS}
)


class Recognized(NamedTuple):
    """The most probable states of some rows, best first. Probabilities are of all states considered."""

    states: Array  # (n, K, H)
    probabilities: Array  # (n, K)
    log_evidence: Array  # (n,)


class Inference(ABC):
    """q_n(s) for some rows, and the expectations under it that parts ask for. Lives inside one compiled program."""

    rows: Array  # (n, D) y_n, NaN where a value was not observed
    observed: Array | None = None  # (n, D) ones, and zeros where a value was not observed; None if all were
    row_weights: Array  # (n,) w_n, zero for rows from which nothing is to be learned
    total_bound: Array  # () Σ_n w_n F_n of all rows, F_n = ⟨log p(s, y_n)⟩ + H(q_n) ≤ log p(y_n), in double precision
    total_log_likelihood: Array  # () Σ_n w_n ⟨log p(y_n | s)⟩, in double precision
    total_free_energy: Array  # () Σ_n w_n (⟨log p(s, y_n)⟩ + T H(q_n)), which EM at temperature T raises
    magnitude: Array  # () Σ_n w_n |b(y_n)|, in double precision
    total_causes: Array  # (H,) Σ_n w_n ⟨s⟩
    cause_data: Array  # (H, D) Σ_n w_n ⟨s⟩ y_nᵀ; missing values are latent (posteriors/observed.py)
    cause_pairs: Array  # (H, H) Σ_n w_n ⟨s sᵀ⟩
    mean_causes: Array  # (n, H) ⟨s⟩
    log_evidence: Array  # (n,) log Σ p(s, y_n) over the states considered; only at temperature one
    free_energy: Array  # (n,) ⟨log p(s, y_n)⟩ + T H(q_n)

    #: Whether causes add up under noise that does not depend on the mean, so that moments tell all about residuals.
    linear = False

    # What only some posteriors offer (:class:`multicause.compatibility.Expectation`).
    residuals: Array  # (D,) Σ_n w_n ⟨(y_nd − w̄_d)²⟩, in double precision
    weighted: Array  # (H, n) w_n q_n(h)
    slope_causes: Array  # (H, H) Σ_n w_n g′(v_a) v_b
    curvature_squares: Array  # (H, H) Σ_n w_n g″(v_a) v_b²
    total_effects: Array  # (H,) how much each real cause changes the log-likelihood of all rows together
    #: ``pull(*terms)`` is Σ_n w_n ⟨∂w̄_d/∂W_hd · (f(w̄_d)·y_nd + g(w̄_d))⟩ for each term (f, g): (terms, H, D). ∂w̄/∂W is
    #: the credit that a cause gets for a mean: s_h where causes add up, A_hd under the max rule. Data y and means w̄ are
    #: relative to the noise's origin, if it has one. Terms that share a function share its work, if it is the same
    #: object.
    pull: Callable[..., Array]

    @property
    def observed_causes(self) -> Array:
        """Σ_n w_n ⟨s⟩ over the rows in which each dimension was observed: (H, D). Only where values may be missing."""
        assert self.observed is not None
        return matmul((self.mean_causes * self.row_weights[:, None]).T.astype(jnp.float64), self.observed)

    @property
    def observed_cause_data(self) -> Array:
        """Σ_n w_n ⟨s⟩ y_nᵀ over the observed values: (H, D). Only where values may be missing."""
        data = jnp.where(jnp.isnan(self.rows), 0, self.rows).astype(jnp.float64)
        return matmul((self.mean_causes * self.row_weights[:, None]).T, data)

    @abstractmethod
    def mean_data(self) -> Array:
        """⟨w̄(s)⟩, the reconstruction of each row: (n, D)."""

    def imputed_data(self) -> Array:
        """⟨y⟩ of values that were not observed, given those that were; anything in other places: (n, D)."""
        return self.mean_data()

    @abstractmethod
    def recognize(self, top: int) -> Recognized:
        """The ``top`` most probable states of each row."""

    @property
    def total_active(self) -> Array:
        """Σ_n w_n of the probability that each cause is on, which is ``total_causes`` of binary causes: (H,)."""
        return self.total_causes


class Posterior(Part):
    """Which states are considered for one row, and how they are weighted."""

    #: Expectations that can be asked for.
    offers: frozenset[Expectation] = frozenset()
    #: Whether every state that the prior allows is considered, whatever their number.
    exhaustive = False
    #: Whether EM with this posterior raises the bound of an update that is monotone: the states must stay the same.
    monotone = False
    #: Whether EM steps are meant to raise the bound, so that one that lowers it went too far.
    ascends_bound = True
    #: Share of the rows that it should explain from which finally is learned; None learns from all rows.
    keep: float | None = None
    #: Most active causes of a state; None if there is no limit.
    max_active: int | None = None

    @property
    def bound_label(self) -> str:
        """What the bound of a row is in words, for reports and plots."""
        return "lower bound of the log evidence"

    @property
    def evidence_label(self) -> str:
        """What ``log_evidence`` of a row is in words."""
        return self.bound_label

    def bind(self, model: Model, n_components: int, n_features: int, n_rows: int) -> Posterior:
        """The same with numbers for all that its user left open; ``model`` has it in its unresolved form."""
        return self

    def leaner(self, candidates: int, max_active: int) -> Posterior | None:
        """The same with fewer candidates and active causes; None if it selects none."""
        return None

    def initialize(self) -> dict[str, np.ndarray]:
        """Numbers of its own before learning: ``Parameters.posterior``."""
        return {}

    def statistics(self, inference: Inference) -> dict[str, Array]:
        """Sums over rows that these numbers need."""
        return {}

    def maximize(
        self, model: Model, parameters: Parameters, statistics: dict[str, Array], weight: Array
    ) -> dict[str, Array]:
        """Its own new numbers, given the sums; the prior's in ``parameters`` are new already."""
        return parameters.posterior

    def diagnose(self, model: Model, parameters: Parameters) -> str:
        """What a person should know about learned parameters; empty where nothing is amiss."""
        return ""

    def validate_on(self, components: np.ndarray, rows: np.ndarray) -> None:
        """Raise ValueError if what a user has given does not work on some rows of the data."""
        return

    def log_mass(self, model: Model, parameters: Parameters) -> Array | None:
        """log Σ_{s ∈ K} p(s), the part of all rows that it can explain; None if it considers every state."""
        return None

    @abstractmethod
    def n_states(self, n_components: int) -> int:
        """How many states are considered for one row."""

    @abstractmethod
    def check(self, n_components: int) -> None:
        """Raise ValueError if this posterior cannot serve so many causes."""

    @abstractmethod
    def bytes_per_row(self, n_components: int, n_features: int, itemsize: int, linear: bool = False) -> int:
        """Memory that one row takes inside :meth:`infer`; the engine sizes its blocks by it.

        ``linear`` says that scores of states follow from projections, without means (sums under Gaussian noise).
        """

    def bytes_of_mask(self, n_components: int, n_features: int, itemsize: int) -> int:
        """Memory that one row takes in addition where values may be missing."""
        return itemsize * 3 * n_features

    @abstractmethod
    def bytes_of_states(self, n_components: int, n_features: int, itemsize: int) -> int:
        """Memory that :meth:`infer` takes however few rows there are."""

    @abstractmethod
    def infer(self, model: Model, parameters: Parameters, block: Block, temperature: Array) -> Inference:
        """q_n(s) ∝ p(s, y_n)^{1/temperature} over the states considered."""
