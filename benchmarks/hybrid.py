"""Network first, MCA₃ to finish (MCA08 §7.4), against MCA₃ alone: time, reliability and likelihood.

Run on an idle machine: ``python -m benchmarks.hybrid``; ``--trials 5`` for fewer. Each row compiles once, outside the
clock, on data of its own. The network's time is part of the hybrid's.
"""

import argparse
import warnings
from time import perf_counter

import numpy as np
from sklearn.base import clone

from multicause import SoftmaxNetwork
from multicause.experiments.mca08 import FIRST_SEED, TESTS, paper_model
from multicause.learning.annealing import ConditionalCooling
from multicause.metrics import recovered_causes

NAMES = ("standard, Poisson noise", "standard, H = 12", "overlapping 9×9, H = 32, N = 400")


def contestants(test, n_features):
    """MCA₃ with the paper's cooling, and from a network's components at the last temperature of that cooling."""
    alone = paper_model("mca3", test, n_features)
    final = alone.annealing.final
    hybrid = clone(alone).set_params(
        init=SoftmaxNetwork(test.n_components, n_init=1), annealing=ConditionalCooling(final, final=final)
    )
    return {"MCA₃": alone, "hybrid": hybrid}


def main(n_trials=20):
    warnings.simplefilter("ignore")
    for test in (t for t in TESTS if t.name in NAMES):
        sets = [test.make(FIRST_SEED + t) for t in range(n_trials + 1)]
        for name, model in contestants(test, sets[0].data.shape[1]).items():
            times, found, scores = [], 0, []
            for seed, data in enumerate(sets):
                each = clone(model).set_params(random_state=seed)
                started = perf_counter()
                each.fit(data.data)
                if seed == 0:
                    continue  # compiled now
                times.append(perf_counter() - started)
                found += recovered_causes(each, data.causes).injective
                scores.append(each.score(data.data))
            print(
                f"{test.name}: {name} {np.mean(times):.2f} s a trial, finds all causes in {found} of {n_trials}, "
                f"score {np.mean(scores):.3f} on average, {np.median(scores):.3f} in the middle",
                flush=True,
            )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=20)
    main(parser.parse_args().trials)
