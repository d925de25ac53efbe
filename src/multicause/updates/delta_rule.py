"""The delta rule with control of lengths: the table of TN10's appendix for sparse coding."""

import jax.numpy as jnp
import numpy as np

from multicause.arrays import Array, largest_eigenvalue, matmul
from multicause.compatibility import Support
from multicause.model import Model, Parameters
from multicause.posteriors.base import Inference
from multicause.updates.base import Update
from multicause.updates.least_squares import OF_SQUARES, linear_sums

# Part of the wanted variance below which a cause counts as silent in a batch.
SILENT = 1e-2


class DeltaRule(Update):
    """G ← G + ε ⟨(u − G·v) v⟩, and then |G_a|² ← |G_a|² (⟨v_a²⟩ − ⟨v_a⟩²)^α / σ^{2α}.

    With deterministic recognition, large components with small causes would satisfy any prior; the second rule lets
    all causes have about the same variance σ² instead, by lengthening the components of those that vary more.

    Parameters
    ----------
    rate : float, default=0.5
        ε, as part of the longest step that cannot overshoot: it is divided by a bound of the largest eigenvalue of
        ⟨v vᵀ⟩.
    variance : float, default=0.5
        σ², what the variance of every cause should be.
    exponent : float, default=0.05
        α, how fast lengths change; the chapter has 0.01.
    """

    requires = OF_SQUARES.also(supports=frozenset({Support.REAL, Support.GAUSSIAN}), unbounded=True)

    def __init__(self, *, rate: float = 0.5, variance: float = 0.5, exponent: float = 0.05) -> None:
        self.rate = rate
        self.variance = variance
        self.exponent = exponent

    def validate(self) -> None:
        """Positive numbers."""
        for name in ("rate", "variance", "exponent"):
            value = getattr(self, name)
            if not (np.isfinite(value) and (value > 0 or (value == 0 and name == "exponent"))):
                raise ValueError(f"{name} of DeltaRule must be a positive number; got {value!r}.")

    def statistics(self, model: Model, parameters: Parameters, inference: Inference) -> dict[str, Array]:
        """First and second moments of the causes."""
        return {
            **linear_sums(inference),
            "causes": inference.total_causes,
            "weight": jnp.sum(inference.row_weights),
        }

    def maximize(self, model: Model, parameters: Parameters, statistics: dict[str, Array]) -> Array:
        """One step."""
        weight, old = statistics["weight"], parameters.components
        pairs = statistics["cause_pairs"] / weight
        # Each cause learns at the rate that suits how much it varies; correlations among causes limit it further.
        size = jnp.sqrt(jnp.maximum(jnp.diagonal(pairs), SILENT * self.variance))
        largest = largest_eigenvalue(pairs / (size[:, None] * size))
        gradient = (statistics["cause_data"] / weight - matmul(pairs, old)) / size[:, None] ** 2
        moved = old + self.rate / jnp.maximum(largest, 1) * gradient
        variance = jnp.diagonal(pairs) - (statistics["causes"] / weight) ** 2
        relative = variance / self.variance
        # A cause that is silent in this batch says nothing of its length; it would shrink until it never spoke again.
        relative = jnp.where(relative > SILENT, jnp.minimum(relative, 1 / SILENT), 1)
        return (moved * relative[:, None] ** (0.5 * self.exponent)).astype(old.dtype)
