"""The least-squares update of linearly added causes: ET10 eq. 26."""

import jax
import jax.numpy as jnp

from multicause.arrays import Array, matmul
from multicause.combinations.base import Combination
from multicause.learning.updates.base import Update, keep_nonnegative
from multicause.model import Model, Parameters
from multicause.noises.base import Noise
from multicause.posteriors.base import Inference

# Damping of each cause in roundings of its own entry of Σ⟨ssᵀ⟩, which is singular when causes die or are duplicates.
ROUNDINGS = 64


def linear_sums(inference: Inference) -> dict[str, Array]:
    """Σ_n w_n ⟨s⟩ yᵀ (H, D) and Σ_n w_n ⟨s sᵀ⟩ (H, H): all that linear Gaussian updates need."""
    return {"cause_data": inference.cause_data, "cause_pairs": inference.cause_pairs}


def missing_for_squares(combination: Combination, noise: Noise) -> list[str]:
    """What these parts lack for an update that minimises squared errors of sums."""
    lacking = [] if combination.linear else ["a linear combination"]
    return lacking + ([] if noise.linear else ["a noise of constant variance"])


def slope_of(statistics: dict[str, Array], components: Array) -> Array:
    """Σ_n w_n ⟨s (y − W s)ᵀ⟩ (H, D); the difference is taken in the precision of the sums, which may be higher."""
    return (statistics["cause_data"] - matmul(statistics["cause_pairs"], components)).astype(components.dtype)


class LeastSquares(Update):
    """W = (Σ⟨ssᵀ⟩)⁻¹ Σ⟨s⟩yᵀ, written as a damped step from the old W, so that unused causes stay as they are.

    Non-negative components are clamped at zero afterwards, as ET10 §4.1 proposes; the bound may then fall.
    """

    monotone = True

    def missing(self, combination: Combination, noise: Noise) -> list[str]:
        """Serves linear combinations under noise of constant variance."""
        return missing_for_squares(combination, noise)

    def is_monotone(self, combination: Combination) -> bool:
        """Not where components are clamped."""
        return not combination.nonnegative

    def statistics(self, model: Model, parameters: Parameters, inference: Inference) -> dict[str, Array]:
        """First and second moments of the causes."""
        return linear_sums(inference)

    def maximize(self, model: Model, parameters: Parameters, statistics: dict[str, Array]) -> Array:
        """One solve."""
        old = parameters.components
        slope = slope_of(statistics, old)
        pairs = statistics["cause_pairs"].astype(old.dtype)
        damping = ROUNDINGS * pairs.shape[0] * jnp.finfo(pairs.dtype).eps * jnp.diagonal(pairs)
        damped = pairs + jnp.diag(jnp.maximum(damping, jnp.finfo(pairs.dtype).tiny))
        solved = old + jax.scipy.linalg.cho_solve(jax.scipy.linalg.cho_factor(damped), slope)
        return keep_nonnegative(model.combination, solved)
