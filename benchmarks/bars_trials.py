"""A hundred trials of the standard bars test with MCA₃, R-MCA₂ and the network, compilation included, on all cores.

Also the time of one iteration, as a ratio to the matrix products that it needs. Run on an idle machine:
``python -m benchmarks.bars_trials``; ``--trials 20`` for fewer.
"""

import argparse
from math import comb
from time import perf_counter

import jax
import jax.numpy as jnp
import numpy as np

from multicause.app.experiments.mca08 import NAMES, TESTS, fitted
from multicause.app.experiments.timing import milliseconds
from multicause.arrays import double_precision
from multicause.em.e_step import expect_one
from multicause.em.m_step import maximize_one
from multicause.metrics import recovered_causes
from multicause.records import Block

TARGET_SECONDS = 120


def one_iteration(model, X):
    """Milliseconds of one compiled EM iteration on one data set, and of its matrix products alone."""
    parts, _, parameters = model.fitted_model_
    with double_precision():
        rows = jnp.asarray(X)
        ones = jnp.ones(len(X))
        block = Block(rows, ones, parts.noise.summarize(rows))
        parameters = jax.tree.map(jnp.asarray, parameters)

        @jax.jit
        def iteration(parameters):
            return maximize_one(parts, expect_one(parts, block, parameters, jnp.asarray(2.0)), parameters)

        posterior, H = parts.posterior, len(model.components_)
        n_states = posterior.n_states(H)
        n_credited = sum(comb(H, k) for k in range(posterior.max_active))
        W = jnp.asarray(np.random.RandomState(0).uniform(size=(n_states, X.shape[1])))
        U = jnp.asarray(np.random.RandomState(0).uniform(size=(n_credited, len(X))))
        products = jax.jit(lambda W, U: (W @ rows.T, U @ rows))
        return (
            milliseconds(lambda: jax.block_until_ready(iteration(parameters))),
            milliseconds(lambda: jax.block_until_ready(products(W, U))),
        )


def main(n_trials=100):
    whole = 0.0
    for test in TESTS[:2]:
        for algorithm in test.paper:
            started = perf_counter()
            models, sets = fitted(test, algorithm, n_trials)
            seconds = perf_counter() - started
            whole += seconds
            n_recovered = sum(recovered_causes(m, d.causes).injective for m, d in zip(models, sets, strict=True))
            iteration = ""
            if algorithm != "network":
                ours, floor = one_iteration(models[0], sets[0].data)
                iteration = f"; one iteration {ours:.2f} ms, {ours / floor:.1f}x its matrix products"
            print(
                f"{test.name}, {NAMES[algorithm]}: {n_trials} trials in {seconds:.1f} s ({n_recovered} find all bars), "
                f"{1000 * seconds / n_trials:.0f} ms each{iteration}",
                flush=True,
            )
    print(f"all: {whole:.0f} s (target for 100 trials on two cores: {TARGET_SECONDS} s)")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=100)
    main(parser.parse_args().trials)
