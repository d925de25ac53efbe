"""Evolved states: bounds at fixed parameters, and CPU time of an iteration beside that of another package.

tvo 2.0, on one core, took 0.03 to 0.04 s per iteration for bars of 500 rows, and 9.5 s for binary sparse coding of
40,000 rows with D = H = 100 and 26 states. Here, that time is also compared with the time for 64 states.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from time import process_time
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from multicause import LinearCauses, MaximalCauses, NoisyOrCauses
from multicause.app.experiments.evolution_reference import SparseCode, evolved_bounds
from multicause.app.experiments.table import Line
from multicause.datasets import make_bars
from multicause.engines import Local
from multicause.posteriors import Evolved

# Iterations of a short and of a long fit, whose times differ by iterations alone, and how often they are timed.
SHORT, LONG, REPEATS = 2, 12, 3
ONE_START: dict[str, Any] = {"annealing": None, "tol": 0.0, "random_state": 0, "engine": Local(n_jobs=1)}
N_ROWS = 40_000
# Activity and noise of these rows, and states of a row.
SPARSE: dict[str, Any] = {"activity": 0.02, "noise_scale": 0.5}
STATES = 26
# Iterations of published evolution, each of which took tvo more than thirty times as long as an iteration here.
EVOLUTIONS = 50
# Share of the rows of the large case that a setting takes.
SHARES = {"quick": 0.25, "default": 1.0, "paper": 1.0}


class Case(NamedTuple):
    """A model, its data, and the seconds that tvo takes for an iteration with all rows."""

    name: str
    model: LinearCauses
    X: np.ndarray
    share: float  # of the rows for which the other time was measured
    theirs: float
    least: float  # how many times as fast it should be


def evolved_states(setting: str) -> Iterator[Line]:
    """Yield the largest fall of a bound at fixed parameters, and the times."""
    fall = max(_largest_fall(*case) for case in _fixed_models())
    yield Line("evolved states: largest fall of a bound at fixed parameters", "0", f"{fall:.1g}", fall <= 1e-9)
    found, published = bounds_of_sums()
    yield Line(
        f"evolved states, sums: bound per row after 1 iteration, that of published evolution after {EVOLUTIONS}",
        "higher",
        f"{found:.1f} and {published:.1f}",
        found > published,
    )
    for case in cases(SHARES[setting]):
        seconds = _on_one_core(seconds_per_iteration, case.model, case.X) / case.share
        ratio = case.theirs / seconds
        yield Line(
            f"evolved states, {case.name}: CPU time of an iteration against tvo",
            f">= {case.least:g} × as fast",
            f"{1e3 * seconds:.1f} ms, {ratio:.0f} ×",
            ratio >= case.least,
        )


def bounds_of_sums(n_rows: int = 200) -> tuple[float, float]:
    """Return bounds of some rows at fixed parameters: of this library after an iteration, of published evolution later.

    Both have as many states and children in an iteration.
    """
    X, W = draw_sums(n_rows)
    model = LinearCauses(100, posterior=Evolved(STATES), init=W, learn=(), max_iter=1, **SPARSE, **ONE_START).fit(X)
    code = SparseCode(W.astype(float), **SPARSE)
    settings = {"n_states": STATES, "n_parents": 8, "n_children": model.posterior.n_children // 8, "seed": 0}
    return float(model.lower_bound_), evolved_bounds(code, X.astype(float), n_iter=EVOLUTIONS, **settings)[-1]


def draw_sums(n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows (N, 100), sums of two causes on average with noise, and the components: (100, 100)."""
    random = np.random.RandomState(0)
    W = random.normal(size=(100, 100)).astype(np.float32)
    states = (random.uniform(size=(n_rows, 100)) < SPARSE["activity"]).astype(np.float32)
    return states @ W + SPARSE["noise_scale"] * random.normal(size=(n_rows, 100)).astype(np.float32), W


def cases(share: float = 1.0) -> list[Case]:
    """Return the cases that are timed, the large one with a share of its rows."""
    bars = make_bars(500, combination="sum", noise="gaussian", random_state=0)
    small = LinearCauses(10, posterior=Evolved(64), init=bars.causes, **ONE_START)
    n = int(N_ROWS * share)
    X, W = draw_sums(n)
    large = LinearCauses(100, init=W, **SPARSE, **ONE_START)
    return [
        Case("bars, N = 500, D = 25, H = 10, S = 64", small, bars.data, 1.0, 0.035, 10),
        *(
            Case(
                f"sums, N = {N_ROWS:,}, D = H = 100, S = {size}",
                clone(large).set_params(posterior=Evolved(size)),
                X,
                n / N_ROWS,
                9.5,
                50,
            )
            for size in (STATES, 64)
        ),
    ]


def seconds_per_iteration(model: Any, X: np.ndarray) -> float:
    """Return CPU seconds of one iteration, without compilation: the smallest of several measurements."""

    def seconds(n_iter: int) -> float:
        began = process_time()
        with warnings.catch_warnings():
            # The number of iterations is the purpose.
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.set_params(max_iter=n_iter).fit(X)
        return process_time() - began

    seconds(SHORT)
    short, long = (min(seconds(n_iter) for _ in range(REPEATS)) for n_iter in (SHORT, LONG))
    return (long - short) / (LONG - SHORT)


def _on_one_core(function: Callable[..., float], *arguments: Any) -> float:
    """Run a function in a new process that has one core, as the other package had.

    With several cores, XLA divides loops among threads, which takes more CPU time in all.
    """
    cores = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        # A process begins with the cores of the thread that starts it.
        if cores is not None:
            os.sched_setaffinity(0, {min(cores)})
        try:
            result = pool.submit(function, *arguments)
        finally:
            if cores is not None:
                os.sched_setaffinity(0, cores)
        return result.result()


def _fixed_models() -> Iterator[tuple[Any, np.ndarray]]:
    """Yield models that know the causes of bars, for each combination, and their data."""
    kinds: dict[Any, dict[str, Any]] = {
        LinearCauses: {"combination": "sum", "noise": "gaussian"},
        MaximalCauses: {"combination": "max", "noise": "gaussian"},
        NoisyOrCauses: {"combination": "noisy_or", "noise": "bernoulli", "value": 0.8},
    }
    for estimator, kind in kinds.items():
        bars = make_bars(200, random_state=0, **kind)
        posterior = Evolved(8, n_children=4, n_generations=1)
        yield estimator(10, posterior=posterior, init=bars.causes, learn=(), max_iter=20, **ONE_START), bars.data


def _largest_fall(model: Any, X: np.ndarray) -> float:
    """Return by how much the bound falls at most from one iteration to the next, relative to its size."""
    bounds = model.fit(X).lower_bounds_
    return float(max(0.0, -(np.diff(bounds) / np.abs(bounds[1:])).min()))
