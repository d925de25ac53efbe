"""Online EM: running averages of the statistics replace sums over all data.

After batch t the averages are S ← (1 − η_t) S + η_t s_t with η_t = (t + 2)^{−0.6}, a rate that forgets the poor
early parameters but still averages over ever more data (Cappé & Moulines 2009).
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp

from multicause.engines.base import Blocks, Engine
from multicause.learning.expectation_maximization import expect, maximize_one
from multicause.model import Model, Parameters, Statistics

FORGETTING = 0.6


class Online(NamedTuple):
    """What the next batch needs: averages per unit of weight, and the number of batches seen."""

    averages: Statistics
    n_batches: int


def step(
    model: Model, engine: Engine, blocks: Blocks, parameters: Parameters, before: Online | None
) -> tuple[Online, Parameters, float]:
    """Learn from one batch; returns the new state, the new parameters and the batch's mean bound before."""
    one_start = jax.tree.map(lambda leaf: leaf[None], parameters)
    sums = engine.sum(partial(expect, model), blocks, one_start, jnp.ones(1))
    sums = jax.tree.map(lambda leaf: leaf[0], sums)
    new = sums.scaled(1 / sums.weight)
    n_batches = 1 if before is None else before.n_batches + 1
    if before is not None:
        rate = (n_batches + 1) ** -FORGETTING
        new = before.averages.scaled(1 - rate) + new.scaled(rate)
    return Online(new, n_batches), _maximize(model, new, parameters), float(sums.bound / sums.weight)


_maximize = jax.jit(maximize_one, static_argnums=0)
