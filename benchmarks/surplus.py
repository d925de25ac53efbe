"""Twice as many components as causes, on every bars test: ``python -m benchmarks.surplus --trials 100 --jobs 16``.

MaximalCauses with its defaults must still find all bars, and ``activity_`` must tell components that represent bars
from those that are left over: the smallest activity of the first is above the largest of the others.
"""

import argparse
import multiprocessing
import os
import warnings
from time import monotonic

import numpy as np

from multicause.app.experiments.mca08 import FIRST_SEED, TESTS


def one_trial(task: tuple[int, int, float]) -> tuple[bool, bool] | None:
    """Return whether all bars were found, and whether activities tell surplus components; None without time."""
    number, trial, until = task
    if monotonic() > until:
        return None
    from multicause import MaximalCauses
    from multicause.metrics import recovered_causes

    warnings.simplefilter("ignore")
    test = TESTS[number]
    bars = test.make(FIRST_SEED + trial)
    model = MaximalCauses(
        2 * len(bars.causes), noise=test.data.get("noise") or "gaussian", random_state=FIRST_SEED + trial
    ).fit(bars.data)
    found = recovered_causes(model, bars.causes)
    others = np.setdiff1d(np.arange(len(model.components_)), found.mapping)
    return found.injective, bool(model.activity_[found.mapping].min() > model.activity_[others].max())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="time for each test")
    parser.add_argument("--tests", type=int, nargs="+", help="numbers of tests, from 0; by default all of bars")
    arguments = parser.parse_args()
    if arguments.jobs > 1:
        os.environ["OMP_NUM_THREADS"] = "1"
        os.environ.setdefault("JAX_PLATFORMS", "cpu")
    bars = [number for number, test in enumerate(TESTS) if test.beaten and test.name != "phonemes"]
    print("test: trials with all bars, and with a gap between activities")
    with multiprocessing.get_context("spawn").Pool(arguments.jobs) as pool:
        for number in arguments.tests or bars:
            until = monotonic() + arguments.seconds
            tasks = [(number, trial, until) for trial in range(arguments.trials)]
            results = [result for result in pool.imap_unordered(one_trial, tasks, chunksize=1) if result is not None]
            found, told = (sum(part) for part in zip(*results, strict=True)) if results else (0, 0)
            print(f"{TESTS[number].name}: {found} and {told} of {len(results)}", flush=True)


if __name__ == "__main__":
    main()
