"""The delta rule with control of the lengths of components: the table of TN10's appendix for sparse coding."""

import jax.numpy as jnp
import numpy as np

from multicause.arrays import Array, largest_eigenvalue, matmul
from multicause.compatibility import Support
from multicause.expectations import Inference
from multicause.generative import GenerativeModel
from multicause.records import Parameters
from multicause.updates.base import Update
from multicause.updates.least_squares import OF_SQUARES, linear_sums

# Fraction of the target variance below which a cause counts as inactive in a batch.
SILENT = 1e-2


class DeltaRule(Update):
    """The delta rule G ← G + ε ⟨(u − G·v) v⟩, followed by |G_a|² ← |G_a|² (⟨v_a²⟩ − ⟨v_a⟩²)^α / σ^{2α}.

    With deterministic recognition, large components with small causes would satisfy any prior; the second rule drives
    the variances of all causes to about the same value σ² instead, by lengthening the components of those that vary
    more.

    Parameters
    ----------
    rate : float, default=0.5
        ε, as a fraction of the longest step that cannot overshoot: it is divided by a bound of the largest eigenvalue
        of ⟨v vᵀ⟩.
    variance : float, default=0.5
        σ², the target variance of every cause.
    exponent : float, default=0.05
        α, the rate at which lengths change; the chapter uses 0.01.
    """

    requires = OF_SQUARES.also(supports=frozenset({Support.REAL, Support.GAUSSIAN}), unbounded=True)

    def __init__(self, *, rate: float = 0.5, variance: float = 0.5, exponent: float = 0.05) -> None:
        self.rate = rate
        self.variance = variance
        self.exponent = exponent

    def validate(self) -> None:
        """Raise ValueError unless rate and variance are positive and the exponent is not negative."""
        for name in ("rate", "variance", "exponent"):
            value = getattr(self, name)
            if not (np.isfinite(value) and (value > 0 or (value == 0 and name == "exponent"))):
                raise ValueError(f"{name} of DeltaRule must be a positive number; got {value!r}.")

    def statistics(self, model: GenerativeModel, parameters: Parameters, inference: Inference) -> dict[str, Array]:
        """Return first and second moments of the causes, and the weight of the rows."""
        return {
            **linear_sums(inference),
            "causes": inference.total_causes,
            "weight": jnp.sum(inference.row_weights),
        }

    def maximize(self, model: GenerativeModel, parameters: Parameters, statistics: dict[str, Array]) -> Array:
        """Return the components after one step of the delta rule and of the control of lengths."""
        weight, old = statistics["weight"], parameters.components
        pairs = statistics["cause_pairs"] / weight
        # The rate of each cause is scaled by its variance; correlations among causes limit it further.
        size = jnp.sqrt(jnp.maximum(jnp.diagonal(pairs), SILENT * self.variance))
        largest = largest_eigenvalue(pairs / (size[:, None] * size))
        gradient = (statistics["cause_data"] / weight - matmul(pairs, old)) / size[:, None] ** 2
        moved = old + self.rate / jnp.maximum(largest, 1) * gradient
        variance = jnp.diagonal(pairs) - (statistics["causes"] / weight) ** 2
        relative = variance / self.variance
        # The length of a cause that is inactive in this batch does not change; it would otherwise shrink until the
        # cause is never active again.
        relative = jnp.where(relative > SILENT, jnp.minimum(relative, 1 / SILENT), 1)
        return (moved * relative[:, None] ** (0.5 * self.exponent)).astype(old.dtype)
