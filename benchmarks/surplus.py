"""Twice as many components as causes, on every bars test: ``python -m benchmarks.surplus --trials 100 --jobs 16``.

MaximalCauses with its defaults must still find all bars, and ``activity_`` must tell components that represent bars
from those that are left over: the smallest activity of the first is above the largest of the others.
"""

import argparse
import warnings

import numpy as np

from benchmarks.side_by_side import add_options, run_side_by_side
from multicause.app.experiments.mca08 import FIRST_SEED, TESTS


def one_trial(task: tuple[int, int]) -> tuple[bool, bool]:
    """Return whether all bars were found, and whether activities tell surplus components."""
    from multicause import MaximalCauses
    from multicause.metrics import recovered_causes

    warnings.simplefilter("ignore")
    number, seed = task
    test = TESTS[number]
    bars = test.make(seed)
    model = MaximalCauses(2 * len(bars.causes), noise=test.data.get("noise") or "gaussian", random_state=seed)
    model.fit(bars.data)
    found = recovered_causes(model, bars.causes)
    others = np.setdiff1d(np.arange(len(model.components_)), found.mapping)
    return found.injective, bool(model.activity_[found.mapping].min() > model.activity_[others].max())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--tests", type=int, nargs="+", help="numbers of tests, from 0; by default all of bars")
    add_options(parser)
    arguments = parser.parse_args()
    bars = [number for number, test in enumerate(TESTS) if test.beaten and test.name != "phonemes"]
    tests, first = arguments.tests or bars, FIRST_SEED + arguments.seed
    tasks = [(number, first + trial) for trial in range(arguments.trials) for number in tests]
    results: dict[int, list[tuple[bool, bool]]] = {number: [] for number in tests}
    for (number, seed), result in run_side_by_side(one_trial, tasks, arguments.jobs, arguments.seconds):
        results[number].append(result)
        if not all(result):
            print(f"seed {seed}, {TESTS[number].name}: all bars {result[0]}, gap {result[1]}", flush=True)
    print("test: trials with all bars, and with a gap between activities")
    for number, own in results.items():
        found, told = (sum(part) for part in zip(*own, strict=True)) if own else (0, 0)
        print(f"{TESTS[number].name}: {found} and {told} of {len(own)}")


if __name__ == "__main__":
    main()
