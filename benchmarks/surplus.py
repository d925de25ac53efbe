"""Twice as many components as causes, on every bars test: ``python -m benchmarks.surplus --trials 100 --jobs 16``.

MaximalCauses with its defaults must still find all bars. Two ways to tell components that represent bars from those
that are left over are compared: ``activity_`` (the smallest of the first is above the largest of the others), and
``surplus_components`` of new rows (what it does not name is one component for each bar).
"""

import argparse
import warnings

import numpy as np

from benchmarks.side_by_side import add_options, run_side_by_side
from multicause.app.experiments.mca08 import FIRST_SEED, TESTS

# Difference between the seeds of the rows that a model learns from and of new ones.
NEW_ROWS = 500
# Candidates and active causes of the posterior that scores new rows: few of them have more bars.
STATES = (10, 9)
# Cosine of a component and a bar from which on the one represents the other.
ALIKE = 0.9


def one_trial(task: tuple[int, int]) -> tuple[bool, bool, bool]:
    """Return whether all bars were found, whether activities tell surplus components, and whether these are named."""
    from multicause import MaximalCauses
    from multicause.metrics import recovered_causes
    from multicause.posteriors import Preselected
    from multicause.selection import surplus_components

    warnings.simplefilter("ignore")
    number, seed = task
    test = TESTS[number]
    bars = test.make(seed)
    model = MaximalCauses(2 * len(bars.causes), noise=test.data.get("noise") or "gaussian", random_state=seed)
    model.fit(bars.data)
    recovery = recovered_causes(model, bars.causes)
    others = np.setdiff1d(np.arange(len(model.components_)), recovery.mapping)
    gap = model.activity_[recovery.mapping].min() > model.activity_[others].max()
    new = test.make(seed + NEW_ROWS).data
    surplus = surplus_components(model, new, posterior=Preselected(*STATES, keep=None)).surplus
    return recovery.injective, bool(gap), is_one_for_each(model.components_[~surplus], bars.causes)


def is_one_for_each(components: np.ndarray, causes: np.ndarray) -> bool:
    """Return whether there is one component for each cause: each resembles another cause, and none is left over."""
    cosines = components @ causes.T / np.outer(np.linalg.norm(components, axis=1), np.linalg.norm(causes, axis=1))
    nearest = np.sort(cosines.argmax(axis=1))
    return np.array_equal(nearest, np.arange(len(causes))) and bool(cosines.max(axis=1).min() > ALIKE)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--tests", type=int, nargs="+", help="numbers of tests, from 0; by default all of bars")
    add_options(parser)
    arguments = parser.parse_args()
    bars = [number for number, test in enumerate(TESTS) if test.beaten and test.name != "phonemes"]
    tests, first = arguments.tests or bars, FIRST_SEED + arguments.seed
    tasks = [(number, first + trial) for trial in range(arguments.trials) for number in tests]
    results: dict[int, list[tuple[bool, bool, bool]]] = {number: [] for number in tests}
    for (number, seed), result in run_side_by_side(one_trial, tasks, arguments.jobs, arguments.seconds):
        results[number].append(result)
        if not all(result):
            print(
                f"seed {seed}, {TESTS[number].name}: all bars {result[0]}, gap {result[1]}, named {result[2]}",
                flush=True,
            )
    print("test: trials with all bars, with a gap between activities, and with surplus components named")
    for number, trials in results.items():
        found, told, named = (sum(part) for part in zip(*trials, strict=True)) if trials else (0, 0, 0)
        print(f"{TESTS[number].name}: {found}, {told} and {named} of {len(trials)}")


if __name__ == "__main__":
    main()
