"""M-step of one start: new parameters from the statistics of an E-step, their change, and noise on components."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from multicause.arrays import Array
from multicause.model import Model, Statistics
from multicause.records import Parameters


def maximize_one(
    model: Model, statistics: Statistics, parameters: Parameters, max_active: int | None = None
) -> Parameters:
    """Return the new parameters of one start (M-step); those not named in ``learn`` do not change.

    ``max_active`` says that rows with more active causes were excluded by a data cut.
    """
    components, prior, noise, posterior = parameters
    if "components" in model.learn:
        components = model.update.maximize(model, parameters, statistics.components)
    if "noise" in model.learn:
        noise = model.noise.maximize_around(noise, statistics.noise, statistics.weight, components)
    if "activity" in model.learn:
        prior = model.prior.maximize(prior, statistics.prior, statistics.weight, max_active)
        if "components" in model.learn:
            components, prior = model.prior.rescaled(components, prior)
        between = Parameters(components, prior, noise, posterior)
        posterior = model.posterior.maximize(model, between, statistics.posterior, statistics.weight)
    return Parameters(components, prior, noise, posterior)


def maximize_start(
    model: Model, learned: Parameters, statistics: Statistics, old: Parameters, length: Array, cut: Array
) -> tuple[Parameters, Array, Array]:
    """Compute the M-step of one start with a step of the given length (1 is full), corrected for a data cut.

    ``learned`` has a flag for each kind of parameters: whether it is learned, as far as the model learns it at all.
    Return the parameters, whether they are finite (else they are the old ones), and the change of each component.
    """
    new = maximize_one(model, statistics, old)
    if model.posterior.keep is not None:
        corrected = maximize_one(model, statistics, old, model.posterior.max_active)
        new = jax.tree.map(lambda a, b: jnp.where(cut, a, b), corrected, new)
    new = Parameters(*(jax.tree.map(partial(_where, flag), a, b) for flag, a, b in zip(learned, new, old, strict=True)))
    finite, change = all_finite(new), change_of(new, old)
    moved = jax.tree.map(
        lambda a, b: jnp.where(length < 1, b + length.astype(b.dtype) * (a - b), a).astype(b.dtype), new, old
    )
    kept = jax.tree.map(partial(_where, finite), moved, old)
    return kept, finite, jnp.where(finite, change, 0)


def _where(flag: Any, new: Array, old: Array) -> Array:
    return jnp.where(flag, new, old)


def perturb_components(model: Model, parameters: Parameters, scale: Array, keys: Array) -> Parameters:
    """Add Gaussian noise of the given scales (starts,) to the components, drawn from a key of each start (ET10 §4.1).

    Non-negative components are reflected rather than clamped at zero, so that noise does not accumulate zero weights.
    """
    components = parameters.components
    draws = jax.vmap(lambda k: jax.random.normal(k, components.shape[1:], components.dtype))(keys)
    noisy = components + scale.astype(components.dtype)[:, None, None] * draws
    return parameters._replace(components=model.combination.reflect(noisy))


def all_finite(parameters: Parameters) -> Array:
    """Return whether all numbers of one start are finite."""
    return jnp.all(jnp.stack([jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(parameters)]))


def change_of(new: Parameters, old: Parameters) -> Array:
    """Return the change of each component, ΔW_h = ‖W_h − W_h^old‖ / Σ_d |W_hd^old| (MCA08 eq. 38): (..., H)."""
    change = jnp.linalg.norm(new.components - old.components, axis=-1)
    return change / jnp.maximum(jnp.abs(old.components).sum(axis=-1), jnp.finfo(change.dtype).tiny)
