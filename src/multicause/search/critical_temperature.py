"""The temperature above which all components become the same mean of the data.

MCA08 appendix E.2 anneals from just below it: one step too hot and causes separate all at once when they are cooled,
much colder and they stay near their random starts. With single causes and pairs the transition is sharp, and its place
differs from data to data by more than a factor of ten; with candidates that every row selects anew it is gradual, which
:func:`multicause.search.automatic.start_temperature` allows for.
"""

from __future__ import annotations

import jax
import numpy as np

from multicause.annealing import ConstantTemperatures
from multicause.arrays import Array
from multicause.em.loop import learn_all
from multicause.engines.base import Data
from multicause.model import Model, Parameters

# Between which temperatures it is sought at first, and the factor within which it is found.
COLDEST, HOTTEST = 1.5, 1000.0
PRECISION = 1.1
# Iterations of each trial: differences that grow by a sixth with each become a hundred times as large.
ITERATIONS = 30
# Components have become different if they spread over this part of their spread at the coldest temperature.
DIFFERENT = 0.25


def critical_temperature(model: Model, data: Data, starts: Parameters, key: Array) -> float:
    """Return the hottest temperature at which components from the first of the starts become different, by bisection.

    It grows with the data, without limit. Where components become alike at all temperatures, the coldest is returned.
    """
    places = len(starts.components)

    def spread(temperature: float) -> float:
        return float(spread_at(model, data, starts, ITERATIONS, np.array([temperature]), key, places)[0])

    coldest, components = spread(COLDEST), np.asarray(starts.components[0])
    # Differences that have shrunk to errors of rounding say nothing when they are compared with each other.
    if not coldest > float(np.finfo(components.dtype).eps ** 0.5 * np.mean(components)):
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
    model: Model, data: Data, starts: Parameters, n_iter: int, temperatures: np.ndarray, key: Array, places: int
) -> np.ndarray:
    """Return how different components are after some iterations at each temperature, all from the first start."""
    first = jax.tree.map(lambda leaf: np.repeat(np.asarray(leaf)[:1], len(temperatures), axis=0), starts)
    found = learn_all(
        model,
        data,
        first,
        annealing=ConstantTemperatures(temperatures),
        max_iter=n_iter,
        tol=0.0,
        key=key,
        places=places,
        components_only=True,
    )
    return np.asarray(found.parameters.components).std(axis=1).mean(axis=1)
