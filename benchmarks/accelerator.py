"""EM iterations on this machine's accelerator, and how far they are from the CPU's numbers.

Run it with ``python -m benchmarks.accelerator`` on a machine with a GPU; elsewhere it compares the CPU with itself.
"""

from time import perf_counter

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.steps import maximize
from multicause.app.experiments.timing import milliseconds
from multicause.arrays import double_precision
from multicause.combinations import Maximum, Sum
from multicause.em.e_step import expect
from multicause.model import Model
from multicause.noises import Gaussian, Poisson
from multicause.posteriors import Exact
from multicause.priors import Bernoulli
from multicause.records import Block, Parameters
from multicause.wiring import choose_update

TEMPERATURE = 1.5
CASES = [("maximal-poisson", Maximum(), Poisson()), ("linear-gaussian", Sum(), Gaussian())]


def one_iteration(model, device, Y, W):
    """A function that runs one iteration on a device, and the new components of all starts."""
    with jax.default_device(device):
        rows, dtype, n_starts = jnp.asarray(Y), Y.dtype, len(W)
        block = Block(rows, jnp.ones(len(Y), dtype), model.noise.summarize(rows))
        scale = {} if isinstance(model.noise, Poisson) else {"variance": jnp.full(n_starts, 4, dtype)}
        scale |= {"floor": jnp.full(n_starts, 1e-6, dtype)} if scale else {}
        parameters = Parameters(jnp.asarray(W), {"activity": jnp.full((n_starts, W.shape[1]), 0.2, dtype)}, scale)
        temperature = jnp.full(n_starts, TEMPERATURE)

    def iteration():
        with jax.default_device(device):
            sums = expect(model, block, parameters, temperature)
            return jax.block_until_ready(maximize(model, sums, parameters))

    return iteration


def main():
    print(f"devices: {jax.devices()}")
    random, host = np.random.RandomState(0), jax.devices("cpu")[0]
    for name, combination, noise in CASES:
        update = choose_update(Bernoulli(), combination, noise, Exact())
        model = Model(Bernoulli(), combination, noise, Exact(), update, frozenset({"components", "activity", "noise"}))
        for dtype in (np.float32, np.float64):
            for n_rows, n_starts in ((500, 1), (500, 16), (50_000, 1)):
                Y = random.poisson(4, (n_rows, 25)).astype(dtype)
                W = random.uniform(1, 8, (n_starts, 10, 25)).astype(dtype)
                with double_precision():
                    iteration = one_iteration(model, jax.devices()[0], Y, W)
                    started = perf_counter()
                    new = np.asarray(iteration().components)
                    first_call = perf_counter() - started
                    expected = np.asarray(one_iteration(model, host, Y, W)().components)
                    time = milliseconds(iteration)
                error = np.abs(new - expected).max() / np.abs(expected).max()
                print(
                    f"{name} {dtype.__name__} N={n_rows} H=10 D=25 starts={n_starts}: {time:8.3f} ms an iteration, "
                    f"first call {first_call:4.1f} s, largest relative difference from the CPU {error:.1e}"
                )


if __name__ == "__main__":
    main()
