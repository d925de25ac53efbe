"""Time per EM iteration of noisy-or causes and of evolved states, beside the times of another package.

Run it on one core: ``taskset -c 0 python -m benchmarks.peers``. Times are CPU times of one process, the difference of a
long and a short fit, without compilation. tvo 2.0 took 9.5 s per iteration for binary sparse coding of 40,000 rows with
D = H = 100 and 26 states, and 0.03 to 0.04 s for bars of 500 rows, on one core.
"""

import sys
import warnings
from time import process_time

import numpy as np

from multicause import LinearCauses, NoisyOrCauses
from multicause.datasets import make_bars
from multicause.engines import Local
from multicause.posteriors import Evolved

SHORT, LONG = 2, 6


def seconds_per_iteration(model, X):
    """CPU seconds of one iteration, from a short and a long fit after one that compiles."""
    times = []
    for n_iter in (SHORT, SHORT, LONG):
        began = process_time()
        model.set_params(max_iter=n_iter).fit(X)
        times.append(process_time() - began)
    return (times[2] - times[1]) / (LONG - SHORT)


def main(share=1.0):
    """Print one line for each setting; with a share below one, of fewer rows, scaled up."""
    warnings.simplefilter("ignore")
    random = np.random.RandomState(0)
    one = {"annealing": None, "tol": 0.0, "random_state": 0, "engine": Local(n_jobs=1)}
    bars = make_bars(10_000, value=0.8, combination="noisy_or", noise="bernoulli", random_state=0)
    rows = int(40_000 * share)
    binary = (random.uniform(size=(rows, 100)) < 0.2).astype(np.float32)
    W = random.normal(size=(100, 100)).astype(np.float32)
    states = (random.uniform(size=(rows, 100)) < 0.02).astype(np.float32)
    sums = states @ W + 0.5 * random.normal(size=(rows, 100)).astype(np.float32)
    small = make_bars(500, combination="sum", noise="gaussian", random_state=0)
    settings = {"activity": 0.02, "noise_scale": 0.5, "init": W}
    cases = [
        ("noisy-or, bars, N = 10,000, D = 25, H = 10", NoisyOrCauses(10, **one), bars.data, 1.0, None),
        ("noisy-or, N = 40,000, D = H = 100", NoisyOrCauses(100, **one), binary, share, None),
        *(
            (
                f"evolved, sums, N = 40,000, D = H = 100, S = {size}",
                evolved(100, size, settings | one),
                sums,
                share,
                9.5,
            )
            for size in (26, 64)
        ),
        (
            "evolved, bars, N = 500, D = 25, H = 10, S = 64",
            evolved(10, 64, {"init": small.causes} | one),
            small.data,
            1,
            0.035,
        ),
    ]
    for name, model, X, part, theirs in cases:
        own = seconds_per_iteration(model, X) / part
        print(
            f"{name}: {own:.4f} s" + ("" if theirs is None else f", {theirs / own:.1f} times as fast as tvo"),
            flush=True,
        )


def evolved(n_components, size, settings):
    """Linear causes with evolved states."""
    return LinearCauses(n_components, posterior=Evolved(size), **settings)


if __name__ == "__main__":
    main(*map(float, sys.argv[1:]))
