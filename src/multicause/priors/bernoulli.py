"""The prior of independent binary causes: MCA08 eq. 1, ET10 eq. 22."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from multicause.arrays import Array, matmul
from multicause.expectations import Inference
from multicause.priors import truncation
from multicause.priors.base import Prior

# Minimum distance of activities from 0 and 1, so that log p(s) is finite for every state.
MARGIN = 1e-6


class Bernoulli(Prior):
    """Independent binary causes, p(s) = Π_h π_h^{s_h} (1 − π_h)^{1 − s_h}.

    Parameters
    ----------
    shared : bool, default=False
        Whether all causes have the same probability (ET10) instead of one each (MCA08).
    """

    independent = True
    selectable = True
    repairable = True

    def __init__(self, *, shared: bool = False) -> None:
        self.shared = shared

    def initialize(self, n_components: int, activity: ArrayLike | None) -> dict[str, np.ndarray]:
        """Return two active causes per row on average, or the user's ``activity`` (one number or (H,))."""
        if activity is None:
            activity = min(2 / n_components, 0.5)
        values = np.asarray(activity, dtype=float)
        if values.shape not in ((), (n_components,)):
            raise ValueError(
                f"activity must be one number or one per cause, shape ({n_components},); got shape {values.shape}."
            )
        if not (np.isfinite(values).all() and (values > 0).all() and (values < 1).all()):
            raise ValueError(f"activity must lie strictly between 0 and 1 (it is a probability); got {activity!r}.")
        if self.shared and values.size > 1 and np.ptp(values) > 0:
            raise ValueError(
                "Bernoulli(shared=True) has one activity for all causes; got different values. "
                "Give one number, or use Bernoulli(shared=False)."
            )
        return {"activity": np.full(n_components, values)}

    def log_probability(self, states: Array, parameters: dict[str, Array]) -> Array:
        """Return log p(s) = Σ_h log(1 − π_h) + s·logit(π), which is linear in the states (S, H): (S,)."""
        log_on, log_off = jnp.log(parameters["activity"]), jnp.log1p(-parameters["activity"])
        return matmul(states, log_on - log_off) + log_off.sum()

    def log_probability_of_singles(self, parameters: dict[str, Array]) -> Array:
        """Return Σ_h log(1 − π_h) for the empty state, and logit(π) added to it for single causes: (1 + H,)."""
        log_on, log_off = jnp.log(parameters["activity"]), jnp.log1p(-parameters["activity"])
        return log_off.sum() + jnp.concatenate([jnp.zeros(1, log_on.dtype), log_on - log_off])

    def log_probability_among(self, candidates: Array, states: np.ndarray, parameters: dict[str, Array]) -> Array:
        """Return Σ_h log(1 − π_h) plus logit(π) of the active candidates: (S, n)."""
        log_on, log_off = jnp.log(parameters["activity"]), jnp.log1p(-parameters["activity"])
        return matmul(jnp.asarray(states, dtype=log_on.dtype), (log_on - log_off)[candidates]) + log_off.sum()

    def log_mass(self, parameters: dict[str, Array], max_active: int) -> Array:
        """Return log P(|s| ≤ max_active), ET10 eq. 23 for causes of different activities: ()."""
        return truncation.log_mass(parameters["activity"], max_active)

    def activity(self, parameters: dict[str, Array]) -> Array:
        """Return the probabilities π of the causes: (H,)."""
        return parameters["activity"]

    def sample(self, key: Array, parameters: dict[str, Array], n_samples: int) -> Array:
        """Draw causes, each active with its own probability."""
        activity = parameters["activity"]
        draws = jax.random.uniform(key, (n_samples, activity.shape[0]), dtype=activity.dtype)
        return (draws < activity).astype(activity.dtype)

    def statistics(self, inference: Inference) -> dict[str, Array]:
        """Return Σ_n w_n ⟨s⟩, the expected number of rows with each cause: (H,)."""
        return {"active": inference.total_causes}

    def maximize(
        self, parameters: dict[str, Array], statistics: dict[str, Array], weight: Array, max_active: int | None = None
    ) -> dict[str, Array]:
        """Return π_h = (1/N) Σ_n ⟨s_h⟩ (MCA08 eq. 11).

        If rows were excluded, it is the π_h for which the truncated prior has these means (ET10 algorithm 2).
        """
        activity = (statistics["active"] / weight).astype(parameters["activity"].dtype)
        if self.shared:
            activity = jnp.full_like(activity, activity.mean())
        if max_active is not None:
            activity = truncation.untruncated(activity, parameters["activity"], max_active)
            # Make them exactly equal, not only up to rounding errors.
            activity = jnp.full_like(activity, activity.mean()) if self.shared else activity
        return parameters | {"activity": jnp.clip(activity, MARGIN, 1 - MARGIN)}

    def copied(self, parameters: dict[str, Any], source: int, target: int) -> dict[str, Any]:
        """Return parameters in which the target has the probability π of the source."""
        activity = parameters["activity"].copy()
        activity[target] = activity[source]
        return parameters | {"activity": activity}

    def silenced(self, parameters: dict[str, Any], causes: np.ndarray) -> dict[str, Any] | None:
        """Return parameters with the smallest probability π for the given causes; None if all causes share one."""
        if self.shared:
            return None
        activity = np.array(parameters["activity"])
        activity[causes] = MARGIN
        return parameters | {"activity": activity}
