"""The interface of the expectations under a posterior, of which priors, noises and updates make their statistics."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp

from multicause.arrays import Array, matmul

#: Function of the means of some states (S, D), of the number of causes that share each mean, Σ_h ∂w̄_d/∂W_hd (S, 1),
#: and of the parameters of the noise; parameters with one value per feature may be given for a single feature.
Function = Callable[[Array, Array, dict[str, Array]], Array]
#: Functions f and g of a term f(w̄)·y + g(w̄) that is assigned to components by ``Inference.pull``; None is zero.
Term = tuple[Function | None, Function | None]


class Recognized(NamedTuple):
    """The most probable states of some rows, best first, with their probabilities among all states considered."""

    states: Array  # (n, K, H)
    probabilities: Array  # (n, K)
    log_evidence: Array  # (n,)


class Inference(ABC):
    """The distribution q_n(s) of some rows and its expectations that other parts need, inside one compiled program."""

    rows: Array  # (n, D) y_n, NaN for values that were not observed
    observed: Array | None = None  # (n, D) one for observed values and zero for missing ones; None if all were observed
    row_weights: Array  # (n,) w_n, zero for rows that are excluded from learning
    total_bound: Array  # () Σ_n w_n F_n of all rows, F_n = ⟨log p(s, y_n)⟩ + H(q_n) ≤ log p(y_n), in double precision
    total_log_likelihood: Array  # () Σ_n w_n ⟨log p(y_n | s)⟩, in double precision
    total_free_energy: Array  # () Σ_n w_n (⟨log p(s, y_n)⟩ + T H(q_n)), the objective of EM at temperature T
    magnitude: Array  # () Σ_n w_n |b(y_n)|, in double precision
    total_causes: Array  # (H,) Σ_n w_n ⟨s⟩
    cause_data: Array  # (H, D) Σ_n w_n ⟨s⟩ y_nᵀ; missing values are latent (posteriors/expectations/observed.py)
    cause_pairs: Array  # (H, H) Σ_n w_n ⟨s sᵀ⟩
    mean_causes: Array  # (n, H) ⟨s⟩
    log_evidence: Array  # (n,) log Σ p(s, y_n) over the states considered; only at temperature one
    free_energy: Array  # (n,) ⟨log p(s, y_n)⟩ + T H(q_n)

    #: Whether causes add up under noise that does not depend on the mean, so that moments determine the residuals.
    linear = False

    # Expectations that only some posteriors offer (:class:`multicause.compatibility.Expectation`).
    residuals: Array  # (D,) Σ_n w_n ⟨(y_nd − w̄_d)²⟩, in double precision
    weighted: Array  # (H, n) w_n q_n(h)
    slope_causes: Array  # (H, H) Σ_n w_n g′(v_a) v_b
    #: ``level_counts(levels)`` returns Σ_n w_n q_n(s_h = φ_k), the expected number of rows with each level: (H, K).
    level_counts: Callable[[tuple[float, ...]], Array]
    curvature_squares: Array  # (H, H) Σ_n w_n g″(v_a) v_b²
    total_effects: Array  # (H,) contribution of each real-valued cause to the log-likelihood of all rows
    #: ``pull(*terms)`` returns Σ_n w_n ⟨∂w̄_d/∂W_hd · (f(w̄_d)·y_nd + g(w̄_d))⟩ for each term (f, g): (terms, H, D).
    #: ∂w̄/∂W is the credit of a cause for a mean: s_h if causes add up, A_hd under the max rule. Data y and means w̄
    #: are relative to the origin of the noise, if it has one. A function that several terms share, as the same object,
    #: is evaluated once.
    pull: Callable[..., Array]

    @property
    def observed_causes(self) -> Array:
        """Σ_n w_n ⟨s⟩ over the rows in which each dimension was observed: (H, D). Only if values may be missing."""
        assert self.observed is not None
        return matmul((self.mean_causes * self.row_weights[:, None]).T.astype(jnp.float64), self.observed)

    @property
    def observed_cause_data(self) -> Array:
        """Σ_n w_n ⟨s⟩ y_nᵀ over the observed values: (H, D). Only if values may be missing."""
        data = jnp.where(jnp.isnan(self.rows), 0, self.rows).astype(jnp.float64)
        return matmul((self.mean_causes * self.row_weights[:, None]).T, data)

    @abstractmethod
    def mean_data(self) -> Array:
        """Return ⟨w̄(s)⟩, the reconstruction of each row: (n, D)."""

    def imputed_data(self) -> Array:
        """Return ⟨y⟩ of missing values given the observed ones: (n, D). Entries of observed values are arbitrary."""
        return self.mean_data()

    @abstractmethod
    def recognize(self, top: int) -> Recognized:
        """Return the ``top`` most probable states of each row."""

    @property
    def total_active(self) -> Array:
        """Σ_n w_n p(cause is active), which is ``total_causes`` for binary causes: (H,)."""
        return self.total_causes

    @property
    def mean_active(self) -> Array:
        """Probability that each cause is active, which is ``mean_causes`` for binary causes: (n, H)."""
        return self.mean_causes
