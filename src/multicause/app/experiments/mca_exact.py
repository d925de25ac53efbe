"""MCA_ex on the standard bars with Poisson noise: MCA08 §6.3–6.4 and figure 6."""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed

from multicause import MaximalCauses
from multicause.annealing import ConditionalCooling
from multicause.app.experiments.bars_reference import generating_bound
from multicause.app.experiments.table import Line
from multicause.datasets import make_bars
from multicause.metrics import recovered_causes

# Data sets and starts of trial t have the seeds FIRST_SEED + t.
FIRST_SEED = 1000
# Initial temperature of the paper's cooling, which suits MCA_ex: above it, all causes stay equal.
PAPER_TEMPERATURE = 8.0


def mca_exact(trials: int = 20, *, setting: str = "default", jobs: int = 1) -> list[Line]:
    """Run trials with new data and starts; ``setting`` is "default", or "paper" for cooling without repair."""
    if setting not in ("default", "paper"):
        raise ValueError(f"Unknown setting {setting!r}. Known: 'default', 'paper'.")
    seeds = range(FIRST_SEED, FIRST_SEED + trials)
    results = [r for r in Parallel(n_jobs=jobs)(delayed(_trial)(seed, setting) for seed in seeds) if r is not None]
    found, above = len(results), sum(result.above for result in results)
    bars_pixels, background = [r.bars_pixels for r in results], [r.background for r in results]
    activity_errors = [r.activity_error for r in results]
    if not found:
        return [Line("runs that find all bars", f">= {round(0.85 * trials)} of {trials}", "0", False)]
    pixels, dark, error = np.concatenate(bars_pixels), np.concatenate(background), float(np.mean(activity_errors))
    return [
        Line(
            "runs that find all bars",
            f">= {round(0.85 * trials)} of {trials}",
            f"{found} of {trials}",
            found >= 0.85 * trials,
        ),
        Line("of these, likelihood at or above that of the generating parameters", "all", f"{above}", above == found),
        Line(
            "bar pixels, mean ± standard deviation",
            "10.0 ± 0.5",
            f"{pixels.mean():.2f} ± {pixels.std():.2f}",
            abs(pixels.mean() - 10) <= 0.05 and pixels.std() <= 0.5,
        ),
        Line("background pixels, mean", "<= 0.1", f"{dark.mean():.2g}", dark.mean() <= 0.1),
        Line("mean |π − frequency of the bar|", "<= 0.01", f"{error:.4f}", error <= 0.01),
    ]


class _Result(NamedTuple):
    """Result of a trial that found all bars."""

    above: bool  # whether the likelihood reaches that of the generating parameters
    bars_pixels: np.ndarray
    background: np.ndarray
    activity_error: float


def _trial(seed: int, setting: str) -> _Result | None:
    annealing = "auto" if setting == "default" else ConditionalCooling(PAPER_TEMPERATURE)
    bars = make_bars(500, noise="poisson", random_state=seed)
    model = MaximalCauses(10, noise="poisson", posterior="exact", annealing=annealing, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(bars.data)
    recovery = recovered_causes(model, bars.causes)
    if not recovery.all_found:
        return None
    W = model.components_[recovery.mapping]
    return _Result(
        above=model.lower_bound_ >= generating_bound(model, bars),
        bars_pixels=W[bars.causes > 0],
        background=W[bars.causes == 0],
        activity_error=float(np.abs(model.activity_[recovery.mapping] - bars.states.mean(axis=0)).mean()),
    )
