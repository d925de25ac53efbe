"""Learning from data with missing values: how often bars are found, and how much longer an iteration takes.

    python -m benchmarks.missing_values                # 100 trials of the standard bars test, half of all pixels hidden
    python -m benchmarks.missing_values --trials 10
    python -m benchmarks.missing_values --trials 0     # times alone

Times are medians over short fits in one process, without compilation, of the same rows with and without missing
values; ratios are less sensitive to other load of the machine than seconds are.
"""

import argparse
from time import process_time

import numpy as np

from multicause import (
    FactorAnalysis,
    HelmholtzMachine,
    KMeans,
    LinearCauses,
    MaximalCauses,
    MixtureOfGaussians,
    NonnegativeCauses,
    SpikeAndSlabCauses,
    fit_trials,
)
from multicause.datasets import make_bars
from multicause.metrics import recovered_causes

N_ROWS, SHARE = 1000, 0.5
PLAIN = {"annealing": None, "max_iter": 10, "tol": 0, "random_state": 0}
MODELS = {
    "MaximalCauses, exact": MaximalCauses(10, repair=False, **PLAIN),
    "MaximalCauses, preselected": MaximalCauses(20, posterior="preselected", repair=False, **PLAIN),
    "LinearCauses, exact": LinearCauses(10, repair=False, **PLAIN),
    "NonnegativeCauses, exact": NonnegativeCauses(10, repair=False, **PLAIN),
    "SpikeAndSlabCauses, beam": SpikeAndSlabCauses(20, **PLAIN),
    "MixtureOfGaussians": MixtureOfGaussians(10, max_iter=10, tol=0, random_state=0),
    "KMeans": KMeans(10, max_iter=10, tol=0, random_state=0),
    "FactorAnalysis": FactorAnalysis(5, max_iter=10, tol=0, random_state=0),
    "HelmholtzMachine": HelmholtzMachine(10, max_iter=10, tol=0, random_state=0),
}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=100)
    words = parser.parse_args()
    if words.trials:
        print(f"standard bars, half of all pixels missing: all found in {found(words.trials)} of {words.trials} trials")
    print(f"{'model':<28}{'ms complete':>12}{'ms missing':>12}{'ratio':>7}   for an iteration")
    for name, model in MODELS.items():
        complete, missing = (milliseconds(model, share) for share in (0, SHARE))
        print(f"{name:<28}{complete:>12.2f}{missing:>12.2f}{missing / complete:>7.2f}", flush=True)


def found(n_trials: int) -> int:
    """Return the number of trials with default settings in which all bars were found (ET10, appendix E)."""
    sets = [make_bars(N_ROWS, noise="poisson", random_state=trial) for trial in range(n_trials)]
    masked = [hide(bars.data, SHARE, trial) for trial, bars in enumerate(sets)]
    models = fit_trials(MaximalCauses(10, noise="poisson"), masked)
    return sum(recovered_causes(m, bars.causes).all_found for m, bars in zip(models, sets, strict=True))


def milliseconds(model, share: float, n_fits: int = 3) -> float:
    """Return the CPU time of an iteration."""
    binary = isinstance(model, HelmholtzMachine)
    rows = make_bars(N_ROWS, value=1.0 if binary else 10.0, noise=None if binary else "gaussian", random_state=0).data
    rows = hide(rows, share, 0)
    model.fit(rows)  # compiles
    times = []
    for _ in range(n_fits):
        begin = process_time()
        model.fit(rows)
        times.append(process_time() - begin)
    return 1000 * float(np.median(times)) / model.max_iter


def hide(rows: np.ndarray, share: float, seed: int) -> np.ndarray:
    return np.where(np.random.RandomState(seed).uniform(size=rows.shape) < share, np.nan, rows)


if __name__ == "__main__":
    main()
