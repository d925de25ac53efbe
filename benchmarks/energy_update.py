"""One update of contrastive divergence against the matrix products that it cannot do without.

On one core: ``python -m benchmarks.energy_update``. On a machine with a GPU, where only the absolute time counts:
``python -m benchmarks.energy_update --device``.
"""

import sys

if "--device" not in sys.argv:
    import benchmarks.one_core  # noqa: F401

# isort: split

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from multicause.app.experiments.timing import milliseconds
from multicause.arrays import double_precision
from multicause.energies import Energy, Logistic, Student
from multicause.samplers import Hamiltonian
from multicause.solvers.contrastive_divergence import EnergyBatches, Method, Rates, first_state, learn_round

CASES = [("16 × 16", 16, 16, 20, Logistic()), ("256 × 768", 256, 768, 30, Student())]
BATCH = 100
UPDATES = 20


@partial(jax.jit, static_argnums=(2, 3))
def products(Z, W, n_leapfrog, n_updates):
    """Two products for each gradient on the trajectory and at its start, and two for each side of the update."""

    def gradient(_, Z):
        return 1e-3 * jnp.matmul(jnp.matmul(Z, W.T), W)

    def update(_, carry):
        Z, W = carry
        Z = jax.lax.fori_loop(0, n_leapfrog + 1, gradient, Z)
        for _ in range(2):
            W = W + 1e-3 * jnp.matmul(jnp.matmul(Z, W.T).T, Z)
        return Z, W

    return jax.lax.fori_loop(0, n_updates, update, (Z, W))


def compare(dimensions, units, n_leapfrog, expert, dtype):
    """Milliseconds of one update, and of its products alone."""
    random = np.random.RandomState(0)
    with double_precision():
        energy = Energy(expert)
        filters = jnp.asarray(random.normal(size=(units, dimensions)) / np.sqrt(dimensions), dtype)
        method = Method(energy, Hamiltonian(n_leapfrog, step_size=0.05), 1, False)
        updates = first_state(method, energy.initial(filters, (), 1.0, jax.random.key(0)), BATCH)
        rows = jnp.asarray(random.laplace(size=(UPDATES, BATCH, dimensions)), dtype)
        batches = EnergyBatches(rows, jnp.full(BATCH, 1 / BATCH, dtype))
        whitening = jnp.zeros(dimensions, dtype), jnp.eye(dimensions, dtype=dtype)
        rates = Rates(*(np.asarray(value) for value in (1e-3, 1e-3, 5000.0, 1e-4)))
        n, seed = jnp.asarray(UPDATES), np.array([0, 1], np.uint32)

        def ours():
            return jax.block_until_ready(learn_round(method, updates, batches, whitening, rates, n, seed))

        time = milliseconds(ours, repeats=20) / UPDATES
        floor = milliseconds(
            lambda: jax.block_until_ready(products(rows[0], filters, n_leapfrog, UPDATES)), repeats=20
        ) / UPDATES  # fmt: skip
    return time, floor


def main():
    print(f"One update of contrastive divergence, batch {BATCH}, on {jax.devices()[0]}, in milliseconds:")
    print(f"  {'':34} {'update':>8} {'products':>9} {'ratio':>6}")
    for name, dimensions, units, n_leapfrog, expert in CASES:
        for dtype in (np.float32, np.float64):
            time, floor = compare(dimensions, units, n_leapfrog, expert, dtype)
            label = f"{name}, {n_leapfrog} leapfrog steps, {dtype.__name__}"
            print(f"  {label:34} {time:8.3f} {floor:9.3f} {time / floor:5.1f}x")
    print("  products: those that the update needs, in the same loops (target: at most 5 times on one core).\n")


if __name__ == "__main__":
    main()
