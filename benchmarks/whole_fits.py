"""Whole fits, as a user waits for them: cold (first fit of a process), warm (the same fit again), on all cores.

``python -m benchmarks.whole_fits`` prints the table of small fits and of cores; with ``--accelerator`` that of large
fits on JAX's default device. Every cold fit runs in a process of its own.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import warnings
from time import perf_counter

import numpy as np

# name, estimator with its settings, rows, target seconds: cold, warm
SMALL = [
    ("MaximalCauses(10), Poisson", "MaximalCauses(10, noise='poisson', random_state=0)", (500, 500, 499), (4.0, 0.4)),
    ("MaximalCauses(11), Poisson", "MaximalCauses(11, noise='poisson', random_state=0)", (500, 500), (6.0, 1.0)),
    ("MaximalCauses(20), Poisson", "MaximalCauses(20, noise='poisson', random_state=0)", (500, 500), (6.0, 1.0)),
    ("LinearCauses(10)", "LinearCauses(10, random_state=0)", (500, 500), (3.0, 0.2)),
    ("NonnegativeCauses(10)", "NonnegativeCauses(10, random_state=0)", (500, 500), (3.0, 0.2)),
    ("EnergyComponents(10)", "EnergyComponents(10, random_state=0)", (500, 500), (4.0, 1.5)),
]
SEARCH = (
    "GridSearchCV(MaximalCauses(noise='poisson', random_state=0), {'n_components': [5, 6, 7, 8, 9, 10]}, cv=3)",
    40.0,
)
PLAIN = "annealing=None, repair=False, tol=0, random_state=0"
LARGE = [
    (
        "linear, N=389,510, D=H=200, 400 iterations",
        f"LinearCauses(200, posterior=Preselected(10, 4), max_iter=400, {PLAIN})",
        (389_510, 200),
        5.0,
    ),
    (
        "maximal, N=40,000, D=H=100, 800 iterations",
        f"MaximalCauses(100, posterior=Preselected(5, 3), max_iter=800, {PLAIN})",
        (40_000, 100),
        2.0,
    ),
]
CORES = [
    ("maximal", f"MaximalCauses(100, posterior=Preselected(5, 3, keep=None), {PLAIN})"),
    ("linear", f"LinearCauses(100, posterior=Preselected(5, 3, keep=None), {PLAIN})"),
]
# Iterations of two fits, whose times differ by iterations alone. If the difference is short, more iterations are timed.
SHORT, LONG = 1, 7
SECONDS = 2.0


def estimator_of(text):
    """Return the estimator that a text describes."""
    import multicause
    from multicause.posteriors import Preselected

    names = {name: getattr(multicause, name) for name in multicause.__all__ if name[0].isupper()}
    names["Preselected"] = Preselected
    if text.startswith("GridSearchCV"):
        from sklearn.model_selection import GridSearchCV

        names["GridSearchCV"] = GridSearchCV
    return eval(text, names)


def large_data(n_rows, n_features):
    """Return sparse sums of sparse causes with unit noise, in single precision."""
    random = np.random.default_rng(0)
    W = np.where(random.random((n_features, n_features)) < 0.1, 10 * random.random((n_features, n_features)), 0)
    X = (random.random((n_rows, n_features), np.float32) < 2 / n_features).astype(np.float32) @ W.astype(np.float32)
    return X + random.standard_normal(X.shape, np.float32)


def time_fits(text, sizes, shape=None):
    """Fit data of these numbers of rows one after the other, and print seconds and outcomes as JSON."""
    import jax.monitoring

    compiled = []
    jax.monitoring.register_event_duration_secs_listener(
        lambda event, seconds, **_: compiled.append(seconds) if event.endswith("backend_compile_duration") else None
    )
    if "BENCHMARK_CACHE" in os.environ:
        from multicause import enable_compilation_cache

        enable_compilation_cache(os.environ["BENCHMARK_CACHE"])
    if shape is None:
        from multicause.datasets import make_bars

        X = make_bars(500, noise="poisson", random_state=0).data.astype(np.float32)
    else:
        X = large_data(*shape)
    warnings.simplefilter("ignore")
    results = []
    for n_rows in sizes:
        compiled.clear()
        model = estimator_of(text)
        started = perf_counter()
        model.fit(X[:n_rows])
        seconds = perf_counter() - started
        results.append((seconds, len(compiled), float(sum(compiled)), getattr(model, "outcome_", "")))
    print(json.dumps(results))


def time_iterations(text, shape):
    """Print the seconds of an iteration in a whole fit, without compilation."""
    X = large_data(*shape)
    warnings.simplefilter("ignore")

    def timed(max_iter):
        """Return the seconds of a fit and its iterations, fewer than asked for if the bound has become constant."""
        started = perf_counter()
        n_iter = estimator_of(text).set_params(max_iter=max_iter).fit(X).n_iter_
        return np.array([perf_counter() - started, n_iter])

    def of_an_iteration(n_iter):
        seconds, n_more = timed(SHORT + n_iter) - timed(SHORT)
        return seconds / n_more

    timed(SHORT)  # compiles
    seconds = of_an_iteration(LONG - SHORT)
    n_iter = int(np.ceil(SECONDS / max(seconds, 1e-3)))
    if n_iter > LONG - SHORT:
        seconds = float(np.median([of_an_iteration(n_iter) for _ in range(3)]))
    print(json.dumps(seconds))


def in_new_process(function, *arguments, n_cores=None, **environment):
    """Run a function that prints JSON in a process of its own, on some cores."""
    code = f"from benchmarks.whole_fits import {function.__name__} as run; run(*{arguments!r})"
    cores = sorted(os.sched_getaffinity(0))[:n_cores]
    command = ["taskset", "-c", ",".join(map(str, cores)), sys.executable, "-c", code]
    run = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=os.environ | environment)
    return json.loads(run.stdout.splitlines()[-1])


def small(n_cores):
    print(f"Small fits (bars, 500 × 25), {n_cores} cores, in seconds; programs that were compiled in brackets:")
    for name, text, sizes, (cold, warm) in SMALL:
        found = in_new_process(time_fits, text, sizes, n_cores=n_cores, JAX_PLATFORMS="cpu")
        told = ", ".join(
            f"{n} rows {seconds:.2f} [{count}]" for n, (seconds, count, _, _) in zip(sizes, found, strict=True)
        )
        print(f"  {name}: {told} (target: cold {cold}, warm {warm}); {found[-1][3]}", flush=True)
    (found,) = in_new_process(time_fits, SEARCH[0], (500,), n_cores=n_cores, JAX_PLATFORMS="cpu")
    print(f"  grid search, 18 fits and one: {found[0]:.1f} [{found[1]}] (target: {SEARCH[1]})", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        runs = [
            in_new_process(
                time_fits, SMALL[0][1], (500, 500), n_cores=n_cores, JAX_PLATFORMS="cpu", BENCHMARK_CACHE=folder
            )
            for _ in range(2)
        ]
    (first, warm), (again, _) = ([fit[0] for fit in run] for run in runs)
    print(f"  same script twice: {first:.2f}, then {again:.2f}; warm {warm:.2f} (target: at most 2 more than warm)\n")


def cores(numbers, n_rows, repeats):
    print(f"Cores: {n_rows:,} rows, D=H=100, H'=5, γ=3, float32, seconds of an iteration in a whole fit:")
    for name, text in CORES:
        # In turn, because the speed of a machine changes from minute to minute.
        times = np.array(
            [
                [
                    in_new_process(time_iterations, text, (n_rows, 100), n_cores=number, JAX_PLATFORMS="cpu")
                    for number in numbers
                ]
                for _ in range(repeats)
            ]
        )
        shown = ", ".join(
            f"{number} cores {time:.3f}" for number, time in zip(numbers, np.median(times, 0), strict=True)
        )
        ratios = times[:, 0] / times[:, -1]
        spread = f" ({ratios.min():.2f} to {ratios.max():.2f})" if repeats > 1 else ""
        print(f"  {name}: {shown}; {np.median(ratios):.2f} times as fast{spread}", flush=True)
    print()


def large():
    import jax

    print(f"Large fits on {jax.devices()}, in seconds:")
    for name, text, shape, target in LARGE:
        found = in_new_process(time_fits, text, (shape[0], shape[0]), shape)
        (cold, _, compiling, _), (warm, count, _, outcome) = found
        print(
            f"  {name}: cold {cold:.1f} (compiling {compiling:.1f}), warm {warm:.2f} [{count}] (target: {target}); "
            f"{outcome}",
            flush=True,
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--accelerator", action="store_true", help="large fits on the default device instead")
    parser.add_argument("--cores", action="store_true", help="only the comparison of cores")
    parser.add_argument("--rows", type=int, default=40_000, help="rows of the comparison of cores")
    parser.add_argument("--repeats", type=int, default=3, help="repetitions of the comparison of cores")
    chosen = parser.parse_args()
    if chosen.accelerator:
        large()
        return
    available = len(os.sched_getaffinity(0))
    if not chosen.cores:
        small(min(2, available))
    cores((1, min(2, available)) if available < 16 else (1, 2, 16), chosen.rows, chosen.repeats)


if __name__ == "__main__":
    main()
