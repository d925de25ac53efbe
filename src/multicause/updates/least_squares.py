"""The least-squares update of causes that add up: ET10 eq. 26."""

import jax
import jax.numpy as jnp

from multicause.arrays import Array, matmul
from multicause.combinations.base import Combination
from multicause.compatibility import Expectation, Link, Requirements, Rule, Spread
from multicause.expectations import Inference
from multicause.generative import GenerativeModel
from multicause.records import Parameters
from multicause.updates.base import Update

# Damping of each cause in rounding errors of its entry of Σ⟨ssᵀ⟩, which is singular if causes are dead or duplicates.
ROUNDINGS = 64


#: Requirements of updates that minimize squared errors of sums.
OF_SQUARES = Requirements(
    rules=frozenset({Rule.SUM}),
    links=frozenset({Link.MEAN}),
    spreads=frozenset({Spread.CONSTANT}),
    expectations=frozenset({Expectation.MOMENTS}),
)


def linear_sums(inference: Inference) -> dict[str, Array]:
    """Return Σ_n w_n ⟨s⟩ yᵀ (H, D) and Σ_n w_n ⟨s sᵀ⟩ (H, H), the statistics of linear Gaussian updates."""
    return {"cause_data": inference.cause_data, "cause_pairs": inference.cause_pairs}


def slope_of(statistics: dict[str, Array], components: Array) -> Array:
    """Return Σ_n w_n ⟨s (y − W s)ᵀ⟩ (H, D), with the difference in the precision of the sums, which may be higher."""
    return (statistics["cause_data"] - matmul(statistics["cause_pairs"], components)).astype(components.dtype)


class LeastSquares(Update):
    """The least-squares solution W = (Σ⟨ssᵀ⟩)⁻¹ Σ⟨s⟩yᵀ, as a damped step from the old W.

    In this form, components of unused causes do not change. Non-negative components are clamped at zero afterwards, as
    ET10 §4.1 proposes; the bound may then fall.
    """

    monotone = True
    requires = OF_SQUARES

    def is_monotone(self, combination: Combination) -> bool:
        """Return whether components are unbounded: clamping may lower the bound."""
        return not combination.bounded

    def statistics(self, model: GenerativeModel, parameters: Parameters, inference: Inference) -> dict[str, Array]:
        """Return first and second moments of the causes."""
        return linear_sums(inference)

    def maximize(self, model: GenerativeModel, parameters: Parameters, statistics: dict[str, Array]) -> Array:
        """Return the solution of the least-squares problem."""
        old = parameters.components
        slope = slope_of(statistics, old)
        pairs = statistics["cause_pairs"].astype(old.dtype)
        damping = ROUNDINGS * pairs.shape[0] * jnp.finfo(pairs.dtype).eps * jnp.diagonal(pairs)
        damped = pairs + jnp.diag(jnp.maximum(damping, jnp.finfo(pairs.dtype).tiny))
        solved = old + jax.scipy.linalg.cho_solve(jax.scipy.linalg.cho_factor(damped), slope)
        return model.combination.project(solved)
