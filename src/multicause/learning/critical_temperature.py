"""The temperature above which all components become the same mean of the data.

MCA08 appendix E.2 anneals from just below it: one step too hot and causes separate all at once when they are cooled,
much colder and they stay near their random starts. With single causes and pairs the transition is sharp, and its place
differs from data to data by more than a factor of ten; with candidates that every row selects anew it is gradual, which
:func:`multicause.learning.search.start_temperature` allows for.
"""

from __future__ import annotations

from functools import partial

import jax.numpy as jnp
import numpy as np

from multicause.engines.base import Blocks, Engine
from multicause.learning.expectation import expect
from multicause.learning.expectation_maximization import maximize, one_start, start_of
from multicause.model import Model, Parameters

# Between which temperatures it is sought at first, and the factor within which it is found.
COLDEST, HOTTEST = 1.5, 1000.0
PRECISION = 1.1
# Iterations of each trial: differences that grow by a sixth with each become a hundred times as large.
ITERATIONS = 30
# Components have become different if they spread over this part of their spread at the coldest temperature.
DIFFERENT = 0.25


def critical_temperature(model: Model, engine: Engine, blocks: Blocks, starts: Parameters) -> float:
    """The hottest temperature at which components from the first of the starts become different, by bisection.

    It grows with the data, without limit. Where components become alike at all temperatures, the coldest is returned.
    """
    first = start_of(starts)
    spread = partial(spread_at, model, engine, blocks, first, ITERATIONS)
    coldest = spread(COLDEST)
    # Differences that have shrunk to errors of rounding say nothing when they are compared with each other.
    if not coldest > float(jnp.finfo(first.components.dtype).eps ** 0.5 * jnp.mean(first.components)):
        return COLDEST
    below, above = np.log(COLDEST), np.log(HOTTEST)
    span, hottest = above - below, above
    while above - below > np.log(PRECISION):
        middle = (below + above) / 2
        if spread(np.exp(middle)) >= DIFFERENT * coldest:
            below = middle
        else:
            above = middle
        if above == hottest and above - below <= np.log(PRECISION):  # it is hotter than that
            above = hottest = hottest + span
    return float(np.exp(below))


def spread_at(
    model: Model, engine: Engine, blocks: Blocks, start: Parameters, n_iter: int, temperature: float
) -> float:
    """How different components are after some iterations at one temperature, from one start."""
    parameters, length = one_start(start), jnp.ones(1)
    for _ in range(n_iter):
        sums = engine.sum(partial(expect, model), blocks, parameters, jnp.full(1, temperature))
        parameters, _, _ = maximize(model, sums, parameters, length)
    return float(jnp.mean(jnp.std(parameters.components[0], axis=0)))
