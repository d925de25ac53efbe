"""The natural gradient of models without noise: TN10 eq. 10.37."""

import jax.numpy as jnp
import numpy as np

from multicause.arrays import Array
from multicause.compatibility import Expectation, Likelihood, Requirements, Rule, Support
from multicause.expectations import Inference
from multicause.generative import GenerativeModel
from multicause.records import Parameters
from multicause.updates.base import Update


class NaturalGradient(Update):
    """The natural-gradient step W ← W + ε (1 + ⟨g′(v) vᵀ⟩) W, for W = G⁻¹.

    Parameters
    ----------
    rate : float, default=0.5
        Learning rate ε.
    """

    requires = Requirements(
        supports=frozenset({Support.REAL, Support.GAUSSIAN}),
        rules=frozenset({Rule.SUM}),
        likelihoods=frozenset({Likelihood.NONE}),
        expectations=frozenset({Expectation.SLOPES}),
        unbounded=True,
    )

    def __init__(self, *, rate: float = 0.5) -> None:
        self.rate = rate

    def validate(self) -> None:
        """Raise ValueError unless the rate is between 0 and 1; longer steps could make W singular."""
        if not (np.isfinite(self.rate) and 0 < self.rate < 1):
            raise ValueError(f"rate of NaturalGradient must lie between 0 and 1; got {self.rate!r}.")

    def statistics(self, model: GenerativeModel, parameters: Parameters, inference: Inference) -> dict[str, Array]:
        """Return Σ g′(v_a) v_b and Σ g″(v_a) v_b²; second-order methods need both."""
        return {
            "slope_causes": inference.slope_causes,
            "curvature_squares": inference.curvature_squares,
            "weight": jnp.sum(inference.row_weights),
        }

    def maximize(self, model: GenerativeModel, parameters: Parameters, statistics: dict[str, Array]) -> Array:
        """Return the components after one natural-gradient step."""
        slopes = statistics["slope_causes"] / statistics["weight"]
        identity = jnp.eye(len(slopes), dtype=slopes.dtype)
        return moved(parameters.components, self.rate * (identity + slopes))


def moved(components: Array, change: Array) -> Array:
    """Return components Gᵀ after W ← (1 + change) W: Gᵀ ← (1 + change)⁻ᵀ Gᵀ."""
    return jnp.linalg.solve(jnp.eye(len(change), dtype=change.dtype) + change.T, components)
