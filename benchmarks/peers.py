"""Time per EM iteration of noisy-or causes and of evolved states, beside the times of another package.

Run it on one core: ``taskset -c 0 python -m benchmarks.peers``. Times are CPU times of one process, the difference of a
long and a short fit, without compilation. The times of tvo are those of
:mod:`multicause.app.experiments.peers_evolved`, which ``multicause reproduce peers`` shows, too.
"""

import sys
import warnings

import numpy as np

from multicause import NoisyOrCauses
from multicause.app.experiments.peers_evolved import N_ROWS, ONE_START, cases, seconds_per_iteration
from multicause.datasets import make_bars


def main(share=1.0):
    """Print one line for each setting; with a share below one, of fewer rows, scaled up."""
    warnings.simplefilter("ignore")
    bars = make_bars(10_000, value=0.8, combination="noisy_or", noise="bernoulli", random_state=0)
    show("noisy-or, bars, N = 10,000, D = 25, H = 10", NoisyOrCauses(10, **ONE_START), bars.data)
    binary = (np.random.RandomState(0).uniform(size=(int(N_ROWS * share), 100)) < 0.2).astype(np.float32)
    show("noisy-or, N = 40,000, D = H = 100", NoisyOrCauses(100, **ONE_START), binary, share)
    for case in cases(share):
        show(f"evolved, {case.name}", case.model, case.X, case.share, case.theirs)


def show(name, model, X, share=1.0, theirs=None):
    """Print the time of an iteration, scaled to all rows, and how many times as fast as tvo it is."""
    our_seconds = seconds_per_iteration(model, X) / share
    print(
        f"{name}: {our_seconds:.4f} s"
        + ("" if theirs is None else f", {theirs / our_seconds:.1f} times as fast as tvo"),
        flush=True,
    )


if __name__ == "__main__":
    main(*map(float, sys.argv[1:]))
