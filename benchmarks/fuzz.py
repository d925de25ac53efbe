"""Random data and settings for every estimator: ``python -m benchmarks.fuzz --trials 100 --seed 0``.

A draw passes if the fit ends with a named outcome and finite attributes, all methods then work, the input is unchanged
and no foreign warning is given; or if it is refused by a ValueError or TypeError of this library or of scikit-learn's
validation. Everything else is reported with the seed that repeats it: ``--seed SEED --trials 1 --only NAME``.
``--quick`` draws data of one shape and settings that share programs, as ``tests/test_fuzz.py`` does. ``--jobs`` runs
draws side by side, and ``--seconds`` begins none after that time.
"""

import argparse
import tempfile
import traceback
import warnings
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
from sklearn.exceptions import ConvergenceWarning

import multicause
from benchmarks.side_by_side import add_options, run_side_by_side

OUTCOMES = {"converged", "max_iter", "bound_fell", "cause_died", "non_finite", "stopped"}
# Estimators that take binary data alone, or none below zero.
BINARY = ("HelmholtzMachine", "NoisyOrCauses")
NONNEGATIVE = ("RestrictedMaximalCauses", "SoftmaxNetwork", "MixtureOfPoissons")
SKIPPED = ("enable_compilation_cache", "fit_trials", "load")
NAMES = tuple(name for name in multicause.__all__ if name not in SKIPPED)
# Draws of one estimator that are run one after the other.
DRAWS_OF_A_TASK = 10
# Settings that are drawn if only few programs are to be compiled.
QUICK = ("activity", "init", "noise_scale", "tol")


def squared_error(parameters: Any, states: Any, rows: Any) -> Any:
    """Return the log joint of a model of a user; tests/models/test_own_causes.py has functions that are wrong."""
    errors = rows[:, None] - states @ parameters["components"]
    scale = parameters["log_scale"]
    return -0.5 * jnp.sum(errors**2, axis=-1) * jnp.exp(-2 * scale) - rows.shape[1] * scale


def first_parameters(X: np.ndarray, n_components: int, random: np.random.RandomState) -> dict[str, Any]:
    """Return the first parameters of that model."""
    return {"components": X[random.choice(len(X), n_components)], "log_scale": np.log(X.std() or 1.0)}


FUNCTIONS = (squared_error, first_parameters)


def estimator_of(name: str) -> Any:
    """Return the estimator of a name; a user's own model comes with its functions."""
    return partial(multicause.OwnCauses, *FUNCTIONS) if name == "OwnCauses" else getattr(multicause, name)


def draw_data(random: np.random.RandomState, quick: bool = False) -> tuple[str, np.ndarray]:
    """Return rows of a random kind, with its name. There are few shapes, so that programs are shared."""
    n, d = (24, 4) if quick else ((2, 3), (24, 4), (60, 6))[random.choice(3, p=[0.15, 0.35, 0.5])]
    causes = random.gamma(1.0, 2.0, (3, d)) * (random.uniform(size=(3, d)) < 0.6)
    states = random.uniform(size=(n, 3)) < 0.4
    bars = states @ causes + 0.3 * random.normal(size=(n, d))
    kinds = {
        "sums": lambda: bars,
        "counts": lambda: random.poisson(np.maximum(bars, 0)).astype(float),
        "sparse counts": lambda: random.poisson(0.05, (n, d)).astype(float),
        "binary": lambda: (bars > bars.mean()).astype(float),
        "heavy tails": lambda: random.standard_cauchy((n, d)),
        "rank one": lambda: np.outer(random.normal(size=n), random.normal(size=d)),
        "duplicates": lambda: np.repeat(bars[: max(1, n // 6)], 6, axis=0)[:n],
        "offset": lambda: bars + 10.0 ** random.randint(2, 7),
        "large": lambda: bars * 10.0 ** random.randint(3, 12),
        "small": lambda: bars * 10.0 ** -random.randint(3, 12),
        "constant": lambda: np.full((n, d), random.normal()),
        "zeros": lambda: np.zeros((n, d)),
        "constant column": lambda: np.column_stack([bars[:, 1:], np.full(len(bars), 2.0)]),
        "outlier": lambda: np.where(np.arange(n)[:, None] == 0, 1e6, bars),
        "missing values": lambda: np.where(random.uniform(size=(n, d)) < 0.2, np.nan, bars),
        "infinite": lambda: np.where(random.uniform(size=(n, d)) < 0.02, np.inf, bars),
    }
    kind = str(random.choice([kind for kind in kinds if not (quick and kind == "missing values")]))
    X = kinds[kind]()
    dtype = np.float64 if quick else random.choice([np.float64, np.float32])
    order = str(random.choice(["C", "F"]))
    with np.errstate(over="ignore"):
        return f"{kind} {X.shape} {np.dtype(dtype).name}", np.array(X, dtype=dtype, order=order)


def draw_settings(name: str, random: np.random.RandomState, quick: bool = False) -> dict[str, Any]:
    """Return random settings of an estimator, out of those that it has."""
    known = estimator_of(name)().get_params(deep=False)
    choices: dict[str, list[Any]] = {
        "n_components": [1, 2, 5],
        "max_iter": [1, 3],
        "n_init": [1, 2],
        "tol": [0.0, 1e-3],
        "annealing": [None, None, "auto"],
        "noise": ["gaussian", "poisson", "diagonal_gaussian", "bernoulli"],
        "posterior": [None, "exact", "preselected"],
        "init": ["random", "data", "mean"],
        "activity": [None, 0.01, 0.9],
        "noise_scale": [None, 1e-3, 100.0],
        "repair": [None, False],
    }
    chosen: dict[str, Any] = {"n_components": 2 if quick else int(random.choice(choices["n_components"]))}
    for setting in QUICK if quick else sorted(choices):
        if setting in known and random.uniform() < 0.4:
            chosen[setting] = choices[setting][random.randint(len(choices[setting]))]
    if "max_iter" in known:
        chosen.setdefault("max_iter", 3)
    if "annealing" in known:
        chosen.setdefault("annealing", None)
    if "random_state" in known:
        chosen["random_state"] = int(random.randint(1000))
    return chosen


def try_one(name: str, seed: int, quick: bool = False) -> str:
    """Return "passed", "refused", or what went wrong."""
    random = np.random.RandomState(seed)
    what, X = draw_data(random, quick)
    settings = draw_settings(name, random, quick)
    weights = None if random.uniform() < 0.7 else random.randint(0, 3, len(X)).astype(float)
    if name in BINARY and random.uniform() < 0.8:
        X = (np.nanmean(X) < X).astype(X.dtype) if np.isfinite(X).all() else X
    if name in NONNEGATIVE and random.uniform() < 0.8:
        X = np.abs(X)
    before = X.copy()
    where = f"{name}({settings}) on {what}, seed {seed}, weights {'yes' if weights is not None else 'no'}"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            model = estimator_of(name)(**settings)
            model.fit(X, sample_weight=weights) if weights is not None else model.fit(X)
        except (ValueError, TypeError) as error:
            return "refused" if _is_helpful(error) else f"{where}: unhelpful {type(error).__name__}: {error}"
        except Exception as error:
            return f"{where}: {type(error).__name__}: {error}\n{traceback.format_exc(limit=-3)}"
        wrong = _check_fitted(model, X, random)
    if wrong:
        return f"{where}: {wrong}"
    if not np.array_equal(before, X, equal_nan=True):
        return f"{where}: fit has changed its input"
    foreign = [w for w in caught if not issubclass(w.category, ConvergenceWarning) and not _is_ours(w)]
    if foreign:
        return f"{where}: foreign warning {foreign[0].category.__name__}: {foreign[0].message} ({foreign[0].filename})"
    return "passed"


def _is_helpful(error: Exception) -> bool:
    """Whether an error was raised on purpose, by this library or by scikit-learn's validation."""
    frames = traceback.extract_tb(error.__traceback__)
    last = frames[-1].filename if frames else ""
    return len(str(error)) > 20 and ("multicause" in last or "sklearn" in last)


def _is_ours(warning: Any) -> bool:
    return "multicause" in str(warning.filename) or "benchmarks" in str(warning.filename)


def _check_fitted(model: Any, X: np.ndarray, random: np.random.RandomState) -> str:
    """Return what is wrong about a fitted model; empty if nothing is."""
    if model.outcome_ not in OUTCOMES:
        return f"unknown outcome {model.outcome_!r}"
    if model.outcome_ == "non_finite":
        return ""
    for name, value in fitted_numbers(model).items():
        if not np.isfinite(value).all():
            return f"{name} is not finite, with outcome {model.outcome_!r}"
    steps = {
        "transform": lambda: _check_finite(model.transform(X)),
        "score": lambda: _check_finite(model.score(X)),
        "sample": lambda: model.sample(3, random_state=0) if hasattr(model, "sample") else None,
        "save": lambda: _saved_and_loaded(model, X),
        "partial_fit": lambda: model.partial_fit(X) if hasattr(model, "partial_fit") else None,
    }
    for name, step in steps.items():
        try:
            step()
        except (ValueError, TypeError) as error:
            if not _is_helpful(error):
                return f"{name} after fit: {type(error).__name__}: {error}"
        except Exception as error:
            return f"{name} after fit: {type(error).__name__}: {error}\n{traceback.format_exc(limit=-3)}"
    return ""


def fitted_numbers(model: Any) -> dict[str, np.ndarray]:
    """Return all fitted attributes that are numbers or arrays of numbers; a threshold that nothing fails is −inf."""
    skipped = ("_", "evidence_threshold_", "fitted_model_")  # the latter is not an array
    if getattr(model, "log_partition_", 0) is None:
        skipped = (*skipped, "lower_bound")  # NaN where a density is not normalized
    names = [name for name in dir(model) if name.endswith("_") and not name.startswith(skipped)]
    values = {name: np.asarray(getattr(model, name, None)) for name in names}
    return {name: value for name, value in values.items() if np.issubdtype(value.dtype, np.floating)}


def _check_finite(values: Any) -> None:
    if not np.isfinite(values).all():
        raise ArithmeticError("the result is not finite")


def _saved_and_loaded(model: Any, X: np.ndarray) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        model.save(path)
        np.testing.assert_array_equal(multicause.load(path, parts=FUNCTIONS).transform(X), model.transform(X))


def try_some(task: tuple[str, range, bool]) -> list[str]:
    """Return the results of several draws."""
    name, seeds, quick = task
    return [try_one(name, seed, quick) for seed in seeds]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=20, help="draws for each estimator")
    parser.add_argument("--quick", action="store_true", help="share programs between draws")
    parser.add_argument("--only", nargs="+", default=NAMES, choices=NAMES, metavar="NAME")
    add_options(parser)
    arguments = parser.parse_args()
    last = arguments.seed + arguments.trials
    tasks = [
        (name, range(first, min(first + DRAWS_OF_A_TASK, last)), arguments.quick)
        for first in range(arguments.seed, last, DRAWS_OF_A_TASK)
        for name in arguments.only
    ]
    counts: dict[str, Counter[str]] = {name: Counter() for name in arguments.only}
    for (name, *_), results in run_side_by_side(try_some, tasks, arguments.jobs, arguments.seconds):
        for result in results:
            known = result in ("passed", "refused")
            counts[name][result if known else "wrong"] += 1
            if not known:
                print("  " + result.replace("\n", "\n    "), flush=True)
    for name, outcomes in counts.items():
        print(f"{name:24s} {dict(outcomes)}")
    raise SystemExit(any(outcomes["wrong"] for outcomes in counts.values()))


if __name__ == "__main__":
    main()
