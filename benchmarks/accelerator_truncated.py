"""One EM iteration of Expectation Truncation on JAX's default device, in milliseconds, against the CPU's result."""

from functools import partial
from time import perf_counter

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.steps import one_iteration
from multicause import inference
from multicause.app.experiments.timing import milliseconds
from multicause.arrays import double_precision
from multicause.combinations import Maximum, Sum
from multicause.engines import Local
from multicause.model import Model
from multicause.noises import Gaussian
from multicause.posteriors import Preselected, ScalarProduct, UpperBound
from multicause.priors import Bernoulli
from multicause.records import Parameters
from multicause.wiring import choose_update

# name, combination, selection, N, D = H, H', γ, target milliseconds on an H200
CASES = [
    ("patches, linear", Sum(), ScalarProduct(), 40_000, 100, 5, 3, 1.0),
    ("patches, maximal", Maximum(), ScalarProduct(), 40_000, 100, 5, 3, 1.7),
    ("patches, maximal, upper bound", Maximum(), UpperBound(), 40_000, 100, 5, 3, 1.7),
    ("sound, linear", Sum(), ScalarProduct(), 400_000, 200, 10, 4, 8.5),
]
TEMPERATURE = 1.1


def data_of(random, n_rows, n_causes):
    """Sparse sums of sparse causes with unit noise, and components to start from."""
    causes = np.where(random.uniform(size=(n_causes, n_causes)) < 0.1, random.uniform(0, 10, (n_causes, n_causes)), 0)
    states = random.uniform(size=(n_rows, n_causes)) < 2 / n_causes
    X = states @ causes + random.normal(size=(n_rows, n_causes))
    start = np.abs(causes + random.normal(size=causes.shape))
    return X.astype(np.float32), start.astype(np.float32)


def iteration_on(model, X, W, memory_budget):
    """A function that runs one iteration over data in memory of the default device."""
    H, D = W.shape
    per_row = model.posterior.bytes_per_row(H, D, X.itemsize, linear=model.linear)
    engine = Local(memory_budget=memory_budget)
    summary = partial(inference.summarize, model.noise, model.missing)
    data = engine.load(X, np.ones(len(X), X.dtype)).arranged(summary, per_row)
    noise = {"variance": jnp.ones(1, X.dtype), "floor": jnp.full(1, 1e-6, X.dtype)}
    prior = {"activity": jnp.full((1, H), 2 / H, X.dtype)}
    parameters = Parameters(jnp.asarray(W)[None], prior, noise)
    temperature = jnp.full(1, TEMPERATURE)
    return partial(one_iteration, model, data, parameters, temperature), len(data.blocks)


def main():
    print(f"devices: {jax.devices()}")
    learned = frozenset({"components", "activity", "noise"})
    for name, combination, selection, n_rows, n_causes, candidates, max_active, target in CASES:
        posterior = Preselected(candidates, max_active, selection=selection, keep=None)
        update = choose_update(Bernoulli(), combination, Gaussian(), posterior)
        model = Model(Bernoulli(), combination, Gaussian(), posterior, update, learned)
        X, W = data_of(np.random.RandomState(0), n_rows, n_causes)
        with double_precision():
            iteration, n_blocks = iteration_on(model, X, W, "16GiB")
            started = perf_counter()
            iteration()
            first_call = perf_counter() - started
            time = milliseconds(iteration)
            few = slice(0, 2000)
            components = np.asarray(iteration_on(model, X[few], W, "16GiB")[0]().components)
        with double_precision(), jax.default_device(jax.devices("cpu")[0]):
            expected = np.asarray(iteration_on(model, X[few], W, "16GiB")[0]().components)
        error = np.abs(components - expected).max() / np.abs(expected).max()
        print(
            f"{name}: N={n_rows} D=H={n_causes} H'={candidates} γ={max_active} float32: {time:.3f} ms an iteration "
            f"(target: {target}), {n_blocks} blocks, first call {first_call:.1f} s, from the CPU {error:.1e}",
            flush=True,
        )


if __name__ == "__main__":
    main()
