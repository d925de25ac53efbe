"""The prior of mixtures, with one active cause per row: TN10 eq. 10.15."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from multicause.arrays import Array, matmul
from multicause.compatibility import Support
from multicause.expectations import Inference
from multicause.priors.base import Prior

# Minimum proportion, so that a cluster without rows has a finite log γ.
MARGIN = 1e-12


class Categorical(Prior):
    """One active cause per row: p(s) = γ_h if only cause h is active, and zero for every other state.

    Parameters
    ----------
    uniform : bool, default=False
        Whether all causes keep the same proportion 1/H, as in K-means.
    """

    support = Support.ONE_HOT
    repairable = True

    def __init__(self, *, uniform: bool = False) -> None:
        self.uniform = uniform

    def initialize(self, n_components: int, activity: ArrayLike | None) -> dict[str, np.ndarray]:
        """Return equal proportions, unless the user gives ``activity`` (H,), which must sum to one."""
        if activity is None:
            return {"activity": np.full(n_components, 1 / n_components)}
        values = np.asarray(activity, dtype=float)
        if values.shape != (n_components,):
            raise ValueError(
                f"activity must hold one proportion per cause, shape ({n_components},); got shape {values.shape}."
            )
        if not (np.isfinite(values).all() and (values > 0).all() and np.isclose(values.sum(), 1)):
            raise ValueError(
                f"activity must be positive and sum to one (exactly one cause makes each row); got {activity!r}. "
                "Divide it by its sum."
            )
        if self.uniform and np.ptp(values) > 0:
            raise ValueError("Categorical(uniform=True) has equal proportions; leave activity None.")
        return {"activity": values / values.sum()}

    def log_probability(self, states: Array, parameters: dict[str, Array]) -> Array:
        """Return log γ_h of states with one active cause; −∞ for all others."""
        alone = jnp.sum(states, axis=-1) == 1
        return jnp.where(alone, matmul(states, jnp.log(parameters["activity"])), -jnp.inf)

    def log_probability_of_singles(self, parameters: dict[str, Array]) -> Array:
        """Return −∞ for the empty state, followed by log γ: (1 + H,)."""
        log_activity = jnp.log(parameters["activity"])
        return jnp.concatenate([jnp.full(1, -jnp.inf, log_activity.dtype), log_activity])

    def activity(self, parameters: dict[str, Array]) -> Array:
        """Return the proportions γ: (H,)."""
        return parameters["activity"]

    def sample(self, key: Array, parameters: dict[str, Array], n_samples: int) -> Array:
        """Draw states with one active cause each."""
        activity = parameters["activity"]
        chosen = jax.random.categorical(key, jnp.log(activity), shape=(n_samples,))
        return jax.nn.one_hot(chosen, len(activity), dtype=activity.dtype)

    def statistics(self, inference: Inference) -> dict[str, Array]:
        """Return Σ_n w_n q_n, the sum of the responsibilities: (H,)."""
        return {"active": inference.total_causes}

    def maximize(
        self, parameters: dict[str, Array], statistics: dict[str, Array], weight: Array, max_active: int | None = None
    ) -> dict[str, Array]:
        """Return the proportions γ = ⟨P[v|u]⟩ (TN10 eq. 10.3)."""
        if self.uniform:
            return parameters
        activity = jnp.maximum(statistics["active"] / weight, MARGIN)
        return {"activity": (activity / jnp.sum(activity)).astype(parameters["activity"].dtype)}

    def copied(self, parameters: dict[str, Any], source: int, target: int) -> dict[str, Any]:
        """Return parameters in which source and target share the proportion of the source."""
        activity = parameters["activity"].copy()
        activity[source] = activity[target] = activity[source] / 2
        return {"activity": activity / activity.sum()}
