"""Data cut of Expectation Truncation (ET10): the fraction of rows that is used at the end of learning.

It leaves out rows that probably have more active causes than the posterior considers.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from multicause.annealing import Cooling, Schedule
from multicause.arrays import Array
from multicause.model import Model
from multicause.records import Parameters

# Fraction of a schedule after which the data cut begins.
CUT_BEGINS = 2 / 3


def _log_mass(model: Any, parameters: Parameters) -> Array:
    """Return log P(|s| ≤ γ) of each start, in double precision."""
    return jax.vmap(lambda one: model.posterior.log_mass(model, one))(parameters).astype(jnp.float64)


@partial(jax.jit, static_argnums=0)
def final_share(model: Model, parameters: Parameters) -> Array:
    """Return the share of all rows from which each start finally learns: ``keep`` times P(|s| ≤ γ)."""
    assert model.posterior.keep is not None
    return model.posterior.keep * jnp.exp(_log_mass(model, parameters))


def log_mass_of_cut(model: Model, parameters: Parameters, share: Array) -> Array:
    """Return log P(|s| ≤ γ), which normalizes the prior of the rows that learning uses (ET10 eq. 17); 0 without cut."""
    if model.posterior.keep is None:
        return jnp.zeros(())
    return jnp.where(share < 1, _log_mass(model, parameters), 0)


def cut_is_complete(model: Model, schedule: Schedule, cooling: Cooling) -> Array:
    """Return which starts have reached their final share of rows, so that their free energies can be compared."""
    if model.posterior.keep is None:
        return jnp.ones((), dtype=bool)
    return schedule.progress(cooling) >= 1


def next_shares(
    model: Model, schedule: Schedule, cooling: Cooling, parameters: Parameters, settled_share: Array
) -> tuple[Array, Array]:
    """Return the share of rows, which falls from one at two thirds of the schedule to the final share at its end.

    The second result is the final share if the schedule has ended, NaN otherwise. It is determined once: it is
    ``settled_share`` unless this is NaN.
    """
    progress = schedule.progress(cooling)
    settled = ~jnp.isnan(settled_share)
    final = jnp.where(settled, settled_share, final_share(model, parameters))
    way = jnp.clip((progress - CUT_BEGINS) / (1 - CUT_BEGINS), 0, 1)
    return 1 - way * (1 - final), jnp.where((progress >= 1) & ~settled, final, settled_share)
