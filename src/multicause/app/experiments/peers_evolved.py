"""Evolved states: the bound at fixed parameters, and CPU time of an iteration beside that of another package.

tvo 2.0, on one core, took 0.03 to 0.04 s per iteration for bars of 500 rows, and 9.5 s for binary sparse coding of
40,000 rows with D = H = 100 and 26 states.
"""

from __future__ import annotations

from collections.abc import Iterator
from time import process_time
from typing import Any, NamedTuple

import numpy as np

from multicause import LinearCauses, MaximalCauses, NoisyOrCauses
from multicause.app.experiments.table import Line
from multicause.datasets import make_bars
from multicause.engines import Local
from multicause.posteriors import Evolved

# Iterations of a short and of a long fit, whose times differ by iterations alone, and how often they are timed.
SHORT, LONG, REPEATS = 2, 12, 3
ONE_START: dict[str, Any] = {"annealing": None, "tol": 0.0, "random_state": 0, "engine": Local(n_jobs=1)}
N_ROWS = 40_000
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
    for case in cases(SHARES[setting]):
        seconds = seconds_per_iteration(case.model, case.X) / case.share
        ratio = case.theirs / seconds
        yield Line(
            f"evolved states, {case.name}: CPU time of an iteration against tvo",
            f">= {case.least:g} × as fast",
            f"{1e3 * seconds:.1f} ms, {ratio:.0f} ×",
            ratio >= case.least,
        )


def cases(share: float = 1.0) -> list[Case]:
    """Return the cases that are timed, the large one with a share of its rows."""
    bars = make_bars(500, combination="sum", noise="gaussian", random_state=0)
    small = LinearCauses(10, posterior=Evolved(64), init=bars.causes, **ONE_START)
    random, n = np.random.RandomState(0), int(N_ROWS * share)
    W = random.normal(size=(100, 100)).astype(np.float32)
    states = (random.uniform(size=(n, 100)) < 0.02).astype(np.float32)
    X = states @ W + 0.5 * random.normal(size=(n, 100)).astype(np.float32)
    given: dict[str, Any] = {"activity": 0.02, "noise_scale": 0.5, "init": W}
    large = LinearCauses(100, posterior=Evolved(26), **given, **ONE_START)
    return [
        Case("bars, N = 500, D = 25, H = 10, S = 64", small, bars.data, 1.0, 0.035, 10),
        Case(f"sums, N = {N_ROWS:,}, D = H = 100, S = 26", large, X, n / N_ROWS, 9.5, 50),
    ]


def seconds_per_iteration(model: Any, X: np.ndarray) -> float:
    """Return CPU seconds of one iteration, without compilation: the smallest of several measurements."""

    def seconds(n_iter: int) -> float:
        began = process_time()
        model.set_params(max_iter=n_iter).fit(X)
        return process_time() - began

    seconds(SHORT)
    short, long = (min(seconds(n_iter) for _ in range(REPEATS)) for n_iter in (SHORT, LONG))
    return (long - short) / (LONG - SHORT)


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
