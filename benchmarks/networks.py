"""How often ``SoftmaxNetwork`` finds all bars of 8×8 images: ``python -m benchmarks.networks --trials 100 --jobs 16``.

Each trial has new data and random numbers, those of ``multicause reproduce mca08 --setting default``. Where a bar never
occurs alone, the learning rule cannot find it by itself: such trials are named.
"""

import argparse
import warnings

from benchmarks.side_by_side import add_options, run_side_by_side
from multicause.app.experiments.mca08 import FIRST_SEED, TESTS

# Place of the test on 8×8 bars among those of MCA08.
TEST = 9


def one_trial(seed: int) -> tuple[bool, int]:
    """Return whether the network finds all bars, and how many bars never occur alone."""
    from multicause import SoftmaxNetwork
    from multicause.metrics import recovered_causes

    warnings.simplefilter("ignore")
    test = TESTS[TEST]
    bars = test.make(seed)
    model = SoftmaxNetwork(test.n_components, random_state=seed).fit(bars.data)
    alone = bars.states[bars.states.sum(axis=1) == 1].sum(axis=0)
    return recovered_causes(model, bars.causes).injective, int((alone == 0).sum())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=100)
    add_options(parser)
    arguments = parser.parse_args()
    first = FIRST_SEED + arguments.seed
    found = []
    seeds = range(first, first + arguments.trials)
    for seed, (all_bars, missing) in run_side_by_side(one_trial, seeds, arguments.jobs, arguments.seconds):
        found.append(all_bars)
        if missing or not all_bars:
            print(f"seed {seed}: all bars {all_bars}, {missing} never occur alone", flush=True)
    print(f"{TESTS[TEST].name}: {sum(found)} of {len(found)} networks find all bars")


if __name__ == "__main__":
    main()
