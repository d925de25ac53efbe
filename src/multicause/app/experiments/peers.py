"""Models of other packages of the field on data drawn from them: noisy-or causes on binary bars.

Bars are drawn as in the experiments of noisy-or component analysis (Šingliar & Hauskrecht 2006) and of truncated
variational optimization (Drefs, Guiraud & Lücke 2022): every bar is on with probability π = 2/H, and an active bar
switches each of its pixels on with probability 0.8. With a leak, all other pixels are on with a small probability.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from multicause import NoisyOrCauses
from multicause.app.experiments.table import Line
from multicause.datasets import make_bars
from multicause.metrics import recovered_causes

FIRST_SEED = 1000
PIXEL = 0.8
LEAK = 0.02
# Part of the trials in which all bars must be found.
ASKED = 0.99
TESTS: dict[str, dict[str, Any]] = {
    "noisy-or, 5×5, H = 10": {"size": 5, "n_samples": 1000},
    "noisy-or, 8×8, H = 16": {"size": 8, "n_samples": 2000},
    f"noisy-or, 8×8, H = 16, leak {LEAK}": {"size": 8, "n_samples": 2000, "leak": LEAK},
}


def peers(trials: int = 20, *, jobs: int = 1) -> Iterator[Line]:
    """Count the trials, each with new data and starts, in which default settings find all bars."""
    for name, data in TESTS.items():
        seeds = range(FIRST_SEED, FIRST_SEED + trials)
        found = sum(Parallel(n_jobs=jobs)(delayed(_finds_all)(seed, **data) for seed in seeds))
        asked = int(np.floor(ASKED * trials))
        yield Line(f"{name}: trials that find all bars", f">= {asked} of {trials}", f"{found}", found >= asked)


def _finds_all(seed: int, size: int, n_samples: int, leak: float = 0.0) -> bool:
    bars = make_bars(n_samples, size=size, value=PIXEL, combination="noisy_or", noise="bernoulli", random_state=seed)
    background = np.random.RandomState(seed).uniform(size=bars.data.shape) < leak
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = NoisyOrCauses(2 * size, random_state=seed).fit(np.maximum(bars.data, background))
    return recovered_causes(model, bars.causes).all_found
