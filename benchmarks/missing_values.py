"""What missing values cost and what is still found with them.

    python -m benchmarks.missing_values                              # CPU time of an iteration, for every causal model
    python -m benchmarks.missing_values --models linear --rows 2000
    python -m benchmarks.missing_values --trials 100 --jobs 16 --seconds 500   # bars with half of all pixels missing

Times are CPU times of an iteration, the difference of a long and a short fit with compiled programs, of complete rows
and of the same rows with 40 % of their values missing. Trials are fits of the bars test (500 rows of 5×5 pixels, ten
bars) with nothing given but the number of causes; a trial counts if all bars are found (``recovered_causes``).
``--seconds`` begins no fit after that time, and ``--jobs`` runs trials side by side.
"""

import argparse
import multiprocessing
import os
import warnings
from time import monotonic, process_time
from typing import Any, NamedTuple

import numpy as np

import multicause
from multicause.datasets import make_bars
from multicause.metrics import recovered_causes
from multicause.posteriors import Beam, Preselected

SHARE, LARGEST_RATIO = 0.4, 2.5
SHORT, LONG, REPEATS = 2, 8, 3
# Trials have half of all pixels.
HALF, ENOUGH = 0.5, 0.95


class Case(NamedTuple):
    """A model, the kind of its data, and its size."""

    estimator: str
    settings: dict[str, Any] = {}
    data: str = "real"
    n_rows: int = 4000
    n_features: int = 64
    n_components: int = 10


PATCHES = {"n_features": 100, "n_components": 100}
SOUND = {"n_features": 200, "n_components": 200}
FEW, MORE = Preselected(5, 3, keep=None), Preselected(10, 4, keep=None)
CASES = {
    "maximal": Case("MaximalCauses", {"posterior": "exact"}, n_rows=1000),
    "maximal, truncated": Case("MaximalCauses", {"posterior": "truncated"}, n_components=12),
    "maximal, poisson": Case("MaximalCauses", {"noise": "poisson", "posterior": "truncated"}, "counts"),
    "maximal, preselected": Case("MaximalCauses", {"posterior": FEW}, **PATCHES),
    "maximal, poisson, preselected": Case("MaximalCauses", {"noise": "poisson", "posterior": FEW}, "counts", **PATCHES),
    "restricted maximal": Case("RestrictedMaximalCauses", {"noise": "poisson"}, "counts", n_components=20),
    "linear": Case("LinearCauses", {"posterior": "exact"}),
    "linear, truncated": Case("LinearCauses", {"posterior": "truncated"}, n_components=20),
    "linear, poisson": Case("LinearCauses", {"noise": "poisson", "posterior": "truncated"}, "counts"),
    "linear, preselected": Case("LinearCauses", {"posterior": FEW}, **PATCHES),
    "linear, preselected, sound": Case("LinearCauses", {"posterior": MORE}, n_rows=2000, **SOUND),
    "linear, beam": Case("LinearCauses", {"posterior": Beam(4, 4)}, n_rows=2000, **PATCHES),
    "nonnegative": Case("NonnegativeCauses", {"posterior": "exact"}),
    "nonnegative, poisson": Case("NonnegativeCauses", {"noise": "poisson", "posterior": "truncated"}, "counts"),
    "nonnegative, preselected": Case("NonnegativeCauses", {"posterior": FEW}, **PATCHES),
    "spike and slab": Case("SpikeAndSlabCauses", {"posterior": Beam(5, 4)}, n_rows=2000, **PATCHES),
    "spike and slab, exact": Case("SpikeAndSlabCauses", {"posterior": "exact"}, n_rows=1000, n_components=6),
    "noisy-or": Case("NoisyOrCauses", {}, "binary"),
    "mixture of gaussians": Case("MixtureOfGaussians", {}),
    "mixture of gaussians, diagonal": Case("MixtureOfGaussians", {"covariance": "diagonal"}),
    "mixture of poissons": Case("MixtureOfPoissons", {}, "counts"),
    "k-means": Case("KMeans", {}),
    "factor analysis": Case("FactorAnalysis", {}),
    "principal components": Case("PrincipalComponents", {}),
    "sparse coding": Case("SparseCoding", {}, n_rows=1000),
    "helmholtz machine": Case("HelmholtzMachine", {}, "binary"),
}
TRIALS = {
    "maximal, poisson": ("MaximalCauses", {"noise": "poisson"}, {"noise": "poisson"}),
    "maximal, gaussian": ("MaximalCauses", {}, {"noise": "gaussian"}),
    "restricted maximal": ("RestrictedMaximalCauses", {"noise": "poisson"}, {"noise": "poisson"}),
    "linear": ("LinearCauses", {}, {"noise": "gaussian", "combination": "sum"}),
    "nonnegative": ("NonnegativeCauses", {}, {"noise": "gaussian", "combination": "sum"}),
    "nonnegative, poisson": ("NonnegativeCauses", {"noise": "poisson"}, {"noise": "poisson", "combination": "sum"}),
}


def make_rows(case: Case) -> np.ndarray:
    """Return rows of few active causes, of the kind that the model is for."""
    random, (N, D, H) = np.random.default_rng(0), case[3:]
    causes = np.where(random.random((H, D)) < 0.1, 10 * random.random((H, D)), 0)
    means = (random.random((N, H)) < 2 / H) @ causes
    if case.data == "counts":
        return random.poisson(means + 0.5).astype(float)
    if case.data == "binary":
        return (random.random((N, D)) < 0.05 + 0.9 * (means > 0)).astype(float)
    return means + random.normal(size=(N, D))


def time_of_iteration(case: Case, rows: np.ndarray) -> float:
    """Return the CPU time of one iteration in milliseconds."""
    kind = getattr(multicause, case.estimator)
    settings = {"max_iter": LONG, "tol": 0.0, "random_state": 0, "annealing": None, "n_init": 1} | case.settings
    settings = {name: value for name, value in settings.items() if name in kind().get_params(deep=False)}

    def fit(max_iter: int) -> tuple[float, int]:
        begin = process_time()
        limit = {"max_iter": max_iter} if "max_iter" in settings else {}
        model = kind(case.n_components, **(settings | limit)).fit(rows)
        return process_time() - begin, int(getattr(model, "n_iter_", max_iter))

    for max_iter in (SHORT, LONG):
        fit(max_iter)  # compiles
    short, long = (min(fit(max_iter) for _ in range(REPEATS)) for max_iter in (SHORT, LONG))
    return 1e3 * (long[0] - short[0]) / max(long[1] - short[1], 1)


def compare_times(arguments: argparse.Namespace) -> None:
    """Print times of iterations with complete rows and with missing values, and their ratios."""
    print(f"{'model':<32}{'rows':>6}{'D':>5}{'H':>5}{'complete':>10}{'missing':>10}{'ratio':>8}   CPU milliseconds")
    for name, case in CASES.items():
        if arguments.models and not name.startswith(tuple(arguments.models)):
            continue
        case = case._replace(n_rows=arguments.rows or case.n_rows)
        rows = make_rows(case)
        gaps = np.random.default_rng(1).uniform(size=rows.shape) < SHARE
        complete, missing = (time_of_iteration(case, X) for X in (rows, np.where(gaps, np.nan, rows)))
        remark = "" if missing <= LARGEST_RATIO * complete else f"   above {LARGEST_RATIO}"
        print(
            f"{name:<32}{case.n_rows:>6}{case.n_features:>5}{case.n_components:>5}{complete:>10.1f}{missing:>10.1f}"
            f"{missing / complete:>8.2f}{remark}",
            flush=True,
        )


def one_trial(task: tuple[str, int, float]) -> bool | None:
    """Return whether all bars were found; None if it is too late to begin."""
    name, seed, end = task
    if monotonic() > end:
        return None
    warnings.simplefilter("ignore")
    estimator, settings, data = TRIALS[name]
    bars = make_bars(500, size=5, random_state=seed, **data)
    lost = np.random.default_rng(seed).uniform(size=bars.data.shape) < HALF
    model = getattr(multicause, estimator)(10, random_state=seed, **settings)
    return recovered_causes(model.fit(np.where(lost, np.nan, bars.data)), bars.causes).injective


def count_recovered(arguments: argparse.Namespace) -> None:
    """Print in how many trials all bars were found, with half of all pixels missing."""
    names = [name for name in TRIALS if not arguments.models or name.startswith(tuple(arguments.models))]
    tasks = [(name, seed, monotonic() + arguments.seconds) for seed in range(arguments.trials) for name in names]
    os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")
    with multiprocessing.get_context("spawn").Pool(arguments.jobs) as pool:
        recovered = pool.map(one_trial, tasks, chunksize=1)
    print(f"{'model':<32}{'trials':>8}{'all found':>11}{'share':>8}   half of all pixels missing")
    for name in names:
        results = [
            result for task, result in zip(tasks, recovered, strict=True) if task[0] == name and result is not None
        ]
        share = sum(results) / max(len(results), 1)
        remark = "" if share >= ENOUGH else f"   below {ENOUGH:.0%}"
        print(f"{name:<32}{len(results):>8}{sum(results):>11}{share:>8.0%}{remark}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--models", nargs="*", default=[], help="beginnings of names, by default all")
    parser.add_argument("--rows", type=int, default=None, help="rows of each case of times")
    parser.add_argument("--trials", type=int, default=0, help="trials of recovery in place of times")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=600.0)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    (count_recovered if arguments.trials else compare_times)(arguments)


if __name__ == "__main__":
    main()
