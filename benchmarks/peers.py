"""Time per EM iteration of noisy-or causes and of evolved states, beside the times of another package.

Run it on one core: ``taskset -c 0 python -m benchmarks.peers``. Times are CPU times of one process, the difference of a
long and a short fit, without compilation. The times of tvo are those of
:mod:`multicause.app.experiments.peers_evolved`, which ``multicause reproduce peers`` shows, too.

Noisy-or causes are compared with what an iteration cannot do without, in NumPy. States that all rows share need a
product of data and log odds, an exponential for every row and state, and a product of probabilities and data. States of
the candidates of each row need the products of rows and components, and a logarithm for every row, state and dimension.
"""

import sys
import warnings
from time import process_time

import numpy as np

from multicause import NoisyOrCauses
from multicause.app.experiments.peers_evolved import N_ROWS, ONE_START, cases, seconds_per_iteration
from multicause.datasets import make_bars


def main(share=1.0):
    """Print one line for each setting; with a share below one, of fewer rows, scaled up."""
    warnings.simplefilter("ignore")
    bars = make_bars(10_000, value=0.8, combination="noisy_or", noise="bernoulli", random_state=0)
    show("noisy-or, bars, N = 10,000, D = 25, H = 10", NoisyOrCauses(10, **ONE_START), bars.data)
    show_floor(floor_of_shared_states(bars.data, 2**10))
    binary = (np.random.RandomState(0).uniform(size=(int(N_ROWS * share), 100)) < 0.2).astype(np.float32)
    many = NoisyOrCauses(100, **ONE_START)
    show("noisy-or, N = 40,000, D = H = 100", many, binary, share)
    show_floor(floor_of_candidates(binary, 100, 2**many.posterior_.max_active) / share)
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


def show_floor(seconds):
    print(f"    what such an iteration cannot do without: {seconds:.4f} s", flush=True)


def floor_of_shared_states(X, n_states):
    """Return seconds of two products and of one exponential for each row and state."""
    weights = np.random.RandomState(0).normal(size=(X.shape[1], n_states)).astype(X.dtype)

    def work():
        scores = X @ weights
        np.exp(scores - scores.max(axis=1, keepdims=True), out=scores)
        return scores.T @ X

    return least_seconds(work)


def floor_of_candidates(X, n_components, n_states):
    """Return seconds of two products with all components, and of a logarithm for each row, state and dimension."""
    components = np.random.RandomState(0).uniform(size=(n_components, X.shape[1])).astype(X.dtype)
    means = np.random.RandomState(1).uniform(0.1, 0.9, size=(1000, X.shape[1])).astype(X.dtype)
    logs = np.empty_like(means)

    def work():
        causes = X @ components.T
        for _ in range(n_states * len(X) // len(means)):
            np.log(means, out=logs)
        return causes.T @ X

    return least_seconds(work)


def least_seconds(function, repeats=3):
    """Return the least CPU time of several calls."""
    times = []
    for _ in range(repeats):
        begin = process_time()
        function()
        times.append(process_time() - begin)
    return min(times)


if __name__ == "__main__":
    main(*map(float, sys.argv[1:]))
