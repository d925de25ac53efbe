"""Network first, MCA₃ to finish (MCA08 §7.4), against MCA₃ alone: time, reliability and likelihood.

Run on an idle machine: ``python -m benchmarks.hybrid``; ``--trials 5`` for fewer. Each row compiles once, outside the
clock, on data of its own. The network's time is part of the hybrid's.

Likelihoods are sums over all subsets of up to 12 causes of a row, computed here with NumPy. The model's own ``score``
would not do: it is a sum over states with at most three causes, which favours components that stand for two bars.
"""

import argparse
import warnings
from time import perf_counter

import numpy as np
from scipy.special import gammaln, logsumexp, xlogy
from sklearn.base import clone

from multicause import MaximalCauses, SoftmaxNetwork
from multicause.annealing import ConditionalCooling
from multicause.app.experiments.mca08 import FIRST_SEED, TESTS, paper_model
from multicause.metrics import recovered_causes
from multicause.posteriors import Preselected

NAMES = ("standard, Poisson noise", "standard, H = 12", "overlapping 9×9, H = 32, N = 400")
# Causes of a row whose subsets are all summed over.
MOST_CAUSES = 12


def contestants(test, n_features):
    """MCA₃ with the paper's cooling, and from networks' components at the last temperature of that cooling."""
    alone = paper_model("mca3", test, n_features)
    final = alone.annealing.final
    networks = {
        "hybrid": SoftmaxNetwork(test.n_components, n_init=1),
        "hybrid, network of the paper": paper_model("network", test, n_features).set_params(n_init=1),
    }
    finish = ConditionalCooling(final, final=final)
    hybrids = {name: clone(alone).set_params(init=network, annealing=finish) for name, network in networks.items()}
    return {"MCA₃": alone, **hybrids}


def log_likelihood(model, X):
    """Mean log Σ_s p(s) Π_d Poisson(y_d; max_h s_h W_hd), over all subsets of the likeliest causes of each row."""
    W, activity = model.components_, np.clip(model.activity_, 1e-12, 1 - 1e-12)
    H = len(W)
    chosen = np.tile(np.arange(H), (len(X), 1))
    if H > MOST_CAUSES:
        # Two opinions on which causes may be active: few of all causes, and many of a row's candidates.
        lean = MaximalCauses(
            H,
            noise="poisson",
            posterior=Preselected(MOST_CAUSES, 6, keep=None),
            init=W,
            activity=activity,
            learn=(),
            annealing=None,
            max_iter=1,
        ).fit(X)
        means = np.maximum(model.transform(X), lean.transform(X))
        chosen = np.argsort(-means, axis=1)[:, :MOST_CAUSES]
    evidence = []
    for y, causes in zip(X, chosen, strict=True):
        means, log_prior = np.zeros((1, len(y))), np.array([np.log1p(-activity).sum()])
        for h in causes:  # subsets without and with h
            means = np.concatenate([means, np.maximum(means, W[h])])
            log_prior = np.concatenate([log_prior, log_prior + np.log(activity[h]) - np.log1p(-activity[h])])
        scores = np.sum(xlogy(y, means) - means - gammaln(y + 1), axis=1)
        evidence.append(logsumexp(log_prior + scores))
    return np.mean(evidence)


def main(n_trials=20):
    warnings.simplefilter("ignore")
    for test in (t for t in TESTS if t.name in NAMES):
        sets = [test.make(FIRST_SEED + t) for t in range(n_trials + 1)]
        for name, model in contestants(test, sets[0].data.shape[1]).items():
            times, n_recovered, likelihoods = [], 0, []
            for seed, data in enumerate(sets):
                trial = clone(model).set_params(random_state=seed)
                started = perf_counter()
                trial.fit(data.data)
                if seed == 0:
                    continue  # compiled now
                times.append(perf_counter() - started)
                n_recovered += recovered_causes(trial, data.causes).injective
                likelihoods.append(log_likelihood(trial, data.data))
            print(
                f"{test.name}: {name} {np.mean(times):.2f} s a trial ({np.median(times):.2f} in the middle), finds all "
                f"causes in {n_recovered} of {n_trials}, log-likelihood {np.mean(likelihoods):.2f} on average, "
                f"{np.median(likelihoods):.2f} in the middle, {np.max(likelihoods):.2f} at best",
                flush=True,
            )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=20)
    main(parser.parse_args().trials)
