"""Models of other packages of the field, learned with default settings.

On bars, or other data, that are drawn from them:

- Noisy-or causes: every bar is on with probability π = 2/H, and an active bar switches each of its pixels on with
  probability 0.8, as in the experiments of Šingliar & Hauskrecht (2006) and of Drefs, Guiraud & Lücke (2022). With a
  leak, all other pixels are on with a small probability.
- Maximum magnitude: bars of both signs that occlude each other, with Gaussian noise.
- Ternary causes: bars that are added or subtracted, with one component for both signs.
- Graded causes: data drawn from the model itself, whose components and probabilities of levels are to be recovered.

Special cases (``peers_parts.py``), evolved states (``peers_evolved.py``), held-out digits (``peers_digits.py``) and
denoising (``peers_denoising.py``) have separate files.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from multicause import LinearCauses, MaximalCauses, NoisyOrCauses
from multicause.app.experiments.peers_denoising import denoising
from multicause.app.experiments.peers_digits import held_out_digits
from multicause.app.experiments.peers_evolved import evolved_states
from multicause.app.experiments.peers_parts import special_cases
from multicause.app.experiments.table import Line
from multicause.combinations import MaximumMagnitude
from multicause.datasets import make_bars
from multicause.metrics import recovered_causes
from multicause.priors import Graded, Ternary

FIRST_SEED = 1000
PIXEL = 0.8
LEAK = 0.02
# Part of the trials in which all bars must be found.
LEAST_SHARE = 0.99
# Relative distance of a component from a bar up to which the bar is found.
CLOSE = 0.25
GRADED_TRIALS = 3


# What else is run: all parts with settings for a few minutes, for two cores, and for an accelerator.
SETTINGS = ("quick", "default", "paper")


def peers(trials: int = 20, *, setting: str = "default", jobs: int = 1) -> Iterator[Line]:
    """Count the trials, each with new data and starts, in which default settings find all bars; then the other rows."""
    if setting not in SETTINGS:
        raise ValueError(f"Unknown setting {setting!r}. Known: {', '.join(map(repr, SETTINGS))}.")
    for name, finds_all in BARS.items():
        seeds = range(FIRST_SEED, FIRST_SEED + trials)
        found = sum(Parallel(n_jobs=jobs)(delayed(_quietly)(finds_all, seed) for seed in seeds))
        expected = int(np.ceil(LEAST_SHARE * trials))
        yield Line(f"{name}: trials that find all bars", f">= {expected} of {trials}", f"{found}", found >= expected)
    n = min(trials, GRADED_TRIALS)
    worst = max(Parallel(n_jobs=jobs)(delayed(_quietly)(_error_of_levels, FIRST_SEED + k) for k in range(n)))
    yield Line(f"graded causes: largest error of {n} trials", "<= 5 %", f"{100 * worst:.1f} %", worst <= 0.05)
    for rows in (special_cases(), evolved_states(setting), held_out_digits(setting), denoising(setting)):
        yield from _quiet_rows(rows)


def _quiet_rows(rows: Iterator[Line]) -> Iterator[Line]:
    """Yield the rows of a part, found without warnings."""
    while (line := _quietly(lambda _: next(rows, None), 0)) is not None:
        yield line


def _quietly(trial: Callable[[int], Any], seed: int) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return trial(seed)


def _noisy_or(seed: int, *, size: int, n_samples: int, leak: float = 0.0) -> bool:
    bars = make_bars(n_samples, size=size, value=PIXEL, combination="noisy_or", noise="bernoulli", random_state=seed)
    background = np.random.RandomState(seed).uniform(size=bars.data.shape) < leak
    model = NoisyOrCauses(2 * size, random_state=seed).fit(np.maximum(bars.data, background))
    return recovered_causes(model, bars.causes).all_found


def _maximum_magnitude(seed: int) -> bool:
    bars = make_bars(1000, kind="signed", combination="max_magnitude", noise="gaussian", random_state=seed)
    model = MaximalCauses(10, combination=MaximumMagnitude(), random_state=seed).fit(bars.data)
    return recovered_causes(model, bars.causes).all_found


def _ternary(seed: int) -> bool:
    bars = make_bars(1000, levels=(-1, 1), noise="gaussian", random_state=seed)
    model = LinearCauses(10, prior=Ternary(), random_state=seed).fit(bars.data)
    match = np.argmax(np.abs(model.components_ @ bars.causes.T), axis=0)
    components = model.components_[match]
    signs = np.sign(np.sum(components * bars.causes, axis=1, keepdims=True))
    errors = np.linalg.norm(signs * components - bars.causes, axis=1) / np.linalg.norm(bars.causes, axis=1)
    return len(set(match)) == len(match) and bool((errors < CLOSE).all())


def _error_of_levels(seed: int) -> float:
    """Return the largest relative error of what a level adds, and of the probabilities of levels of all causes."""
    random = np.random.RandomState(seed)
    levels, shares = (0, 1, 2), np.array([0.6, 0.25, 0.15])
    causes = 10 * np.eye(5).repeat(3, axis=1)
    states = random.choice(levels, p=shares, size=(10_000, len(causes)))
    X = states @ causes + 2 * random.normal(size=(len(states), causes.shape[1]))
    model = LinearCauses(len(causes), prior=Graded(levels), random_state=seed).fit(X)
    match = np.argmax(model.components_ @ causes.T, axis=0)
    lengths = np.linalg.norm(causes, axis=1)
    of_components = np.linalg.norm(model.components_[match] - causes, axis=1) / lengths
    of_shares = np.abs(model.level_probabilities_.mean(axis=0) / shares - 1)
    return float(max(of_components.max(), of_shares.max()))


BARS: dict[str, Callable[[int], bool]] = {
    "noisy-or, 5×5, H = 10": partial(_noisy_or, size=5, n_samples=1000),
    "noisy-or, 8×8, H = 16": partial(_noisy_or, size=8, n_samples=2000),
    f"noisy-or, 8×8, H = 16, leak {LEAK}": partial(_noisy_or, size=8, n_samples=2000, leak=LEAK),
    "maximum magnitude, 5×5, H = 10": _maximum_magnitude,
    "ternary, 5×5, H = 10": _ternary,
}
