"""Timing of benchmarks, and the cost of one iteration of each model on this machine."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from functools import partial
from math import inf
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from sklearn.exceptions import ConvergenceWarning

import multicause
from multicause.arrays import double_precision

# Iterations of a short fit, and of longer ones, whose times differ by iterations alone. The longest is made only if the
# other one does not take clearly longer than the short fit, because iterations are cheap.
SHORT, LONGER = 2, (12, 102)
CLEARLY = 1.5
REPEATS = 3
# Seconds after which a fit is not repeated again; differences of fits that take so long are well above their noise.
MOST_SECONDS = 1.0
# Models of binary data.
BINARY = ("HelmholtzMachine", "NoisyOrCauses")
# Mean count of a feature of the example data if no cause is active; causes add 10.
BACKGROUND = 1.0


def milliseconds(function: Callable[[], Any], *, repeats: int = 30, most_seconds: float = inf) -> float:
    """Return the median time of a call after one warm-up call; the call must wait for its result.

    There are ``repeats`` calls, or fewer if they take ``most_seconds`` together.
    """
    function()
    times: list[float] = []
    while len(times) < repeats and sum(times) < most_seconds:
        started = perf_counter()
        function()
        times.append(perf_counter() - started)
    return 1e3 * median(times)


class Timing(NamedTuple):
    """Time of one iteration in milliseconds, and as a multiple of the two matrix products X Wᵀ and Sᵀ X."""

    name: str
    iteration: float
    ratio: float


def example_data(n_rows: int, n_features: int, n_components: int, dtype: str, seed: int = 0) -> np.ndarray:
    """Generate counts with two active causes on average, combined by the max rule, on a weak background.

    The background makes every feature vary, which models that whiten their data need.
    """
    random = np.random.RandomState(seed)
    components = 10 * random.binomial(1, 0.2, size=(n_components, n_features))
    states = random.uniform(size=(n_rows, n_components)) < min(0.5, 2 / n_components)
    means = np.max(states[:, :, None] * components, axis=1) if n_components < 50 else states @ components
    return random.poisson(means + BACKGROUND).astype(dtype)


def time_products(X: np.ndarray, n_components: int) -> float:
    """Time X Wᵀ and Sᵀ X in milliseconds, which each iteration of each model needs in some form."""
    with double_precision():
        rows = jnp.asarray(X)
        components = jnp.asarray(np.random.RandomState(0).uniform(size=(n_components, X.shape[1])), X.dtype)
        products = jax.jit(lambda Y, W: (Y @ W.T).T @ Y)
        return milliseconds(lambda: jax.block_until_ready(products(rows, components)))


def time_model(name: str, X: np.ndarray, n_components: int, products: float) -> Timing:
    """Time one iteration of the estimator of this name, without compilation.

    ``products`` is the time of the matrix products. An iteration is what ``n_iter_`` counts: a pass over all rows, or
    for ``EnergyComponents`` an update with one mini-batch. Its time is the difference between a long and a short fit,
    divided by that of their iterations; NaN if the long fit takes no longer. A model without iterations, which is
    learned in closed form, is timed as a whole.
    """
    rows = (X.mean() < X).astype(X.dtype) if name in BINARY else X
    iteration = _iteration(getattr(multicause, name), rows, n_components)
    return Timing(name, iteration, iteration / products)


def _iteration(estimator: Any, X: np.ndarray, n_components: int) -> float:
    known = inspect.signature(estimator).parameters
    wanted = {"tol": 0.0, "annealing": None, "repair": False, "n_init": 1, "random_state": 0}
    settings = {key: value for key, value in wanted.items() if key in known}
    if "max_iter" not in known:
        return _time_fit(estimator(n_components, **settings), X)

    def timed(max_iter: int) -> tuple[int, float]:
        model = estimator(n_components, max_iter=max_iter, **settings)
        time = _time_fit(model, X)
        return model.n_iter_, time

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        count, time = timed(SHORT)
        for max_iter in LONGER:
            longer_count, longer_time = timed(max_iter)
            if longer_time > CLEARLY * time:
                break
    made, longer = longer_count - count, longer_time - time
    return longer / made if made > 0 and longer > 0 else float("nan")


def _time_fit(model: Any, X: np.ndarray) -> float:
    return milliseconds(partial(model.fit, X), repeats=REPEATS, most_seconds=MOST_SECONDS)
