"""Models of other packages of the field on bars drawn from them, learned with default settings.

- Noisy-or causes: every bar is on with probability π = 2/H, and an active bar switches each of its pixels on with
  probability 0.8, as in the experiments of Šingliar & Hauskrecht (2006) and of Drefs, Guiraud & Lücke (2022). With a
  leak, all other pixels are on with a small probability.
- Maximum magnitude: bars of both signs that occlude each other, with Gaussian noise.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from joblib import Parallel, delayed

from multicause import MaximalCauses, NoisyOrCauses
from multicause.app.experiments.table import Line
from multicause.combinations import MaximumMagnitude
from multicause.datasets import make_bars
from multicause.metrics import recovered_causes

FIRST_SEED = 1000
PIXEL = 0.8
LEAK = 0.02
# Part of the trials in which all bars must be found.
ASKED = 0.99


def peers(trials: int = 20, *, jobs: int = 1) -> Iterator[Line]:
    """Count the trials, each with new data and starts, in which default settings find all bars."""
    for name, finds_all in BARS.items():
        seeds = range(FIRST_SEED, FIRST_SEED + trials)
        found = sum(Parallel(n_jobs=jobs)(delayed(_quietly)(finds_all, seed) for seed in seeds))
        asked = int(np.floor(ASKED * trials))
        yield Line(f"{name}: trials that find all bars", f">= {asked} of {trials}", f"{found}", found >= asked)


def _quietly(finds_all: Callable[[int], bool], seed: int) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return finds_all(seed)


def _noisy_or(seed: int, *, size: int, n_samples: int, leak: float = 0.0) -> bool:
    bars = make_bars(n_samples, size=size, value=PIXEL, combination="noisy_or", noise="bernoulli", random_state=seed)
    background = np.random.RandomState(seed).uniform(size=bars.data.shape) < leak
    model = NoisyOrCauses(2 * size, random_state=seed).fit(np.maximum(bars.data, background))
    return recovered_causes(model, bars.causes).all_found


def _maximum_magnitude(seed: int) -> bool:
    bars = make_bars(1000, kind="signed", combination="max_magnitude", noise="gaussian", random_state=seed)
    model = MaximalCauses(10, combination=MaximumMagnitude(), random_state=seed).fit(bars.data)
    return recovered_causes(model, bars.causes).all_found


BARS: dict[str, Callable[[int], bool]] = {
    "noisy-or, 5×5, H = 10": partial(_noisy_or, size=5, n_samples=1000),
    "noisy-or, 8×8, H = 16": partial(_noisy_or, size=8, n_samples=2000),
    f"noisy-or, 8×8, H = 16, leak {LEAK}": partial(_noisy_or, size=8, n_samples=2000, leak=LEAK),
    "maximum magnitude, 5×5, H = 10": _maximum_magnitude,
}
