"""Temperatures at which annealing starts: near the critical one, above which all components converge to the same mean.

MCA08 appendix E.2 anneals from just below it: if the start is one step too hot, causes separate all at once when they
are cooled; if it is much colder, they stay near their random starts. With single causes and pairs the transition is
sharp, and its temperature differs between data sets by more than a factor of ten; with candidates that every row
selects again in each iteration it is gradual, which :func:`start_temperature` allows for.
"""

from __future__ import annotations

import jax
import numpy as np

from multicause.annealing import ConstantTemperatures
from multicause.arrays import Array
from multicause.em.loop import learn_all
from multicause.engines.base import Data
from multicause.model import Model
from multicause.records import Parameters

# Initial range of the bisection, and the factor within which the temperature is determined.
COLDEST, HOTTEST = 1.5, 1000.0
PRECISION = 1.1
# Iterations at each temperature: differences that grow by a sixth in each become a hundred times as large.
ITERATIONS = 30
# Components count as different if their spread is at least this fraction of that at the coldest temperature.
DIFFERENT = 0.25
# Temperatures that are tried where the transition is gradual, and iterations at each.
TEMPERATURES = 1.5 ** np.arange(1, 11)
TRIAL_ITERATIONS = 10
# Annealing then starts at the highest temperature at which the spread of the components has risen by this fraction of
# the way from the spread at the hottest temperature to the largest spread.
DIFFERENTIATION = 0.25


def critical_temperature(model: Model, data: Data, starts: Parameters, key: Array) -> float:
    """Return the highest temperature at which components from the first start become different, by bisection.

    It grows with the data, without limit. If components become equal at all temperatures, the coldest one is returned.
    """
    places = len(starts.components)

    def spread(temperature: float) -> float:
        return float(spread_at(model, data, starts, ITERATIONS, np.array([temperature]), key, places)[0])

    coldest, components = spread(COLDEST), np.asarray(starts.components[0])
    # Differences that have shrunk to rounding errors cannot be compared with each other.
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
        if above == hottest and above - below <= np.log(PRECISION):  # the critical temperature is above the range
            above = hottest = hottest + span
    return float(np.exp(below))


def start_temperature(model: Model, data: Data, starts: Parameters, key: Array, places: int) -> float:
    """Return the highest temperature at which components become different enough from each other.

    Above a critical temperature all components converge to the same mean of the data. With candidates, which every row
    selects again in each iteration, the transition is gradual; therefore components learn for some iterations at each
    of several temperatures, all from the same start, and their spread is compared.
    """
    spread = spread_at(model, data, starts, TRIAL_ITERATIONS, TEMPERATURES, key, places)
    enough = spread[-1] + DIFFERENTIATION * (spread.max() - spread[-1])
    return float(TEMPERATURES[np.flatnonzero(spread >= enough)[-1]])


def spread_at(
    model: Model, data: Data, starts: Parameters, n_iter: int, temperatures: np.ndarray, key: Array, places: int
) -> np.ndarray:
    """Compute the spread of the components after some iterations at each temperature, all from the first start."""
    first = jax.tree.map(lambda leaf: np.repeat(np.asarray(leaf)[:1], len(temperatures), axis=0), starts)
    learned = learn_all(
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
    return np.asarray(learned.parameters.components).std(axis=1).mean(axis=1)
