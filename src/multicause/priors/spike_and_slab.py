"""The prior of causes that are active or not, and have a normally distributed strength if they are active."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from multicause.arrays import Array
from multicause.compatibility import Capability, Expectation, Likelihood, Link, Requirements, Rule, Spread, Support
from multicause.expectations import Inference
from multicause.priors.bernoulli import MARGIN, Bernoulli

PRIOR_LEARNABLE = ("activity", "slab_mean", "slab_variance")
# Minimum learned variance of a slab, relative to its mean square, so that its posterior can be computed.
RELATIVE_FLOOR = 1e-4


class SpikeAndSlab(Bernoulli):
    """Spikes and slabs, p(s, z) = Π_h Bernoulli(s_h; π_h) N(z_h; μ_h, ψ_h); a cause is s_h z_h.

    Parameters
    ----------
    learn : tuple of str, default=("activity", "slab_mean", "slab_variance")
        Which of π, μ and ψ are learned; the others keep their initial values, zero for μ.
    """

    support = Support.NORMAL_SLABS
    repairable = False
    requires = Requirements(
        rules=frozenset({Rule.SUM}),
        links=frozenset({Link.MEAN}),
        likelihoods=frozenset({Likelihood.OF_MEANS}),
        spreads=frozenset({Spread.CONSTANT}),
        expectations=frozenset({Expectation.MOMENTS}),
        capabilities=frozenset({Capability.SLABS}),
    )

    def __init__(self, *, learn: tuple[str, ...] = PRIOR_LEARNABLE) -> None:
        self.learn = learn

    # Each cause has its own probability.
    shared = False

    def validate(self) -> None:
        """Raise ValueError if ``learn`` has unknown names."""
        unknown = [name for name in self.learn if name not in PRIOR_LEARNABLE]
        if isinstance(self.learn, str) or unknown:
            raise ValueError(
                f"learn of SpikeAndSlab must be a tuple of names from {PRIOR_LEARNABLE}; got {self.learn!r}."
            )

    def initialize(self, n_components: int, activity: ArrayLike | None) -> dict[str, np.ndarray]:
        """Return two active causes per row on average unless ``activity`` is given, and slabs N(0, 1)."""
        slabs = {"slab_mean": np.zeros(n_components), "slab_variance": np.ones(n_components)}
        return super().initialize(n_components, activity) | slabs

    def sample(self, key: Array, parameters: dict[str, Array], n_samples: int) -> Array:
        """Draw causes s∘z: (n_samples, H)."""
        key_spikes, key_slabs = jax.random.split(key)
        spikes = super().sample(key_spikes, parameters, n_samples)
        mean, variance = parameters["slab_mean"], parameters["slab_variance"]
        return spikes * (mean + jnp.sqrt(variance) * jax.random.normal(key_slabs, spikes.shape, spikes.dtype))

    def statistics(self, inference: Inference) -> dict[str, Array]:
        """Return sums over rows of ⟨s⟩, ⟨s z⟩ and ⟨s z²⟩: (H,) each."""
        squares = jnp.diagonal(inference.cause_pairs)
        return {"active": inference.total_active, "slabs": inference.total_causes, "slab_squares": squares}

    def maximize(
        self, parameters: dict[str, Array], statistics: dict[str, Array], weight: Array, max_active: int | None = None
    ) -> dict[str, Array]:
        """Return π = ⟨s⟩, μ = ⟨s z⟩ / ⟨s⟩ and ψ = ⟨s (z − μ)²⟩ / ⟨s⟩; slabs of unused causes do not change."""
        active, dtype = statistics["active"], parameters["activity"].dtype
        tiny = jnp.finfo(dtype).tiny
        used, divisor = active > tiny, jnp.maximum(active, tiny)
        new = dict(parameters)
        if "activity" in self.learn:
            new["activity"] = jnp.clip(active / weight, MARGIN, 1 - MARGIN).astype(dtype)
        first, second = statistics["slabs"] / divisor, statistics["slab_squares"] / divisor
        if "slab_mean" in self.learn:
            new["slab_mean"] = jnp.where(used, first, parameters["slab_mean"]).astype(dtype)
        if "slab_variance" in self.learn:
            mean = new["slab_mean"].astype(second.dtype)
            variance = jnp.maximum(second - (2 * first - mean) * mean, RELATIVE_FLOOR * second)
            new["slab_variance"] = jnp.where(used, variance, parameters["slab_variance"]).astype(dtype)
        return new

    def rescaled(self, components: Array, parameters: dict[str, Array]) -> tuple[Array, dict[str, Array]]:
        """Return components of length one and slabs of the same model, if the variance of slabs is learned.

        Longer components with smaller slabs are the same model, so that lengths could otherwise become too large or too
        small.
        """
        if "slab_variance" not in self.learn:
            return components, parameters
        length = jnp.linalg.norm(components, axis=1)
        length = jnp.where(length > jnp.finfo(length.dtype).tiny, length, 1)
        slabs = {
            "slab_mean": parameters["slab_mean"] * length,
            "slab_variance": parameters["slab_variance"] * length**2,
        }
        return components / length[:, None], parameters | slabs
