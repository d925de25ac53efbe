"""One EM iteration of Expectation Truncation against the matrix products that it cannot do without, on one core.

``python -m benchmarks.truncated_iteration --scaling`` shows how its time grows with the number of rows and of causes.
"""

import benchmarks.one_core  # noqa: F401

# isort: split

import argparse
import subprocess
import sys
from collections import namedtuple
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.steps import one_iteration
from multicause import LinearCauses, MaximalCauses
from multicause.app.experiments.timing import milliseconds
from multicause.arrays import double_precision
from multicause.engines import Local
from multicause.inference import arrange
from multicause.initialization.conditions import InitialConditions, first_moments
from multicause.posteriors import Preselected

TEMPERATURE = 1.5
PLOT = Path("out/benchmarks/scaling.png")
Size = namedtuple("Size", "n_rows n_features n_components candidates max_active")
PATCHES = Size(40_000, 100, 100, candidates=5, max_active=3)
SOUND = Size(20_000, 200, 200, candidates=10, max_active=4)
CASES = [
    ("patches", PATCHES, LinearCauses, "at most 4x"),
    ("patches", PATCHES, MaximalCauses, "at most 450 ms"),
    ("sound", SOUND, LinearCauses, "at most 4x"),
]
BY_ROWS = [PATCHES._replace(n_rows=N) for N in (10_000, 100_000, 1_000_000)]
BY_CAUSES = [PATCHES._replace(n_rows=10_000, n_components=H) for H in (100, 200, 400, 800, 1600)]
SERIES = [
    ("n_rows", LinearCauses, BY_ROWS),
    ("n_rows", MaximalCauses, BY_ROWS[:2]),
    ("n_components", LinearCauses, BY_CAUSES),
    ("n_components", MaximalCauses, BY_CAUSES),
]


def make_data(size, dtype):
    """Rows with two active causes on average, and the sparse, non-negative components that made them."""
    random, (N, D, H) = np.random.default_rng(0), size[:3]
    W = np.where(random.random((H, D)) < 0.1, 10 * random.random((H, D)), 0).astype(dtype)
    X = (random.random((N, H), dtype) < 2 / H).astype(dtype) @ W
    X += random.standard_normal((N, D), dtype)
    return X, W


def make_iteration(kind, size, X, W):
    """A function that runs one iteration over all blocks, which are those of a fit."""
    posterior = Preselected(size.candidates, size.max_active, keep=None)
    estimator = kind(size.n_components, posterior=posterior, init=W, noise_scale=1.0)
    data = Local().load(X)
    model = estimator._wire(data)
    data = arrange(model, data, size.n_components)
    initial = InitialConditions(model, first_moments(data), data, random=None, n_starts=1)
    return partial(one_iteration, model, data, estimator._starts(initial), jnp.full(1, TEMPERATURE))


def compare(kind, size, dtype):
    """Times of an iteration and of the two products, Y Wᵀ and its transpose times Y."""
    X, W = make_data(size, dtype)
    with double_precision():
        ours = milliseconds(make_iteration(kind, size, X, W), repeats=5)
        two_products, Y, W = jax.jit(lambda Y, W: (Y @ W.T).T @ Y), jnp.asarray(X), jnp.asarray(W)
        products = milliseconds(lambda: jax.block_until_ready(two_products(Y, W)), repeats=5)
    return ours, products


def peak():
    """Largest resident set of this process, in bytes."""
    # A new process inherits ru_maxrss of getrusage from its parent, so that a rise could be missed.
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


def print_rise(kind, size):
    """By how much making the data, compiling and one iteration raise the peak of this process."""
    before = peak()
    with double_precision():
        make_iteration(kind, size, *make_data(size, np.float32))()
    print(peak() - before)


def peak_memory():
    """The same for the sound data in a fresh interpreter, in GiB."""
    script = "from benchmarks import truncated_iteration as t; t.print_rise(t.LinearCauses, t.SOUND)"
    run = subprocess.run([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, check=True)
    return int(run.stdout) / 2**30


def main():
    print("One EM iteration of Expectation Truncation, one core, in milliseconds:")
    print(f"  {'':8} {'':14} {'':8} {'ours':>8} {'products':>9} {'ours/products':>14}  target")
    for name, size, kind, target in CASES:
        for dtype in (np.float32, np.float64):
            ours, products = compare(kind, size, dtype)
            print(
                f"  {name:8} {kind.__name__:14} {dtype.__name__:8} {ours:8.1f} {products:9.1f} "
                f"{ours / products:13.1f}x  {target if dtype is np.float32 else ''}".rstrip()
            )
    for name, (N, D, H, candidates, active) in (("patches", PATCHES), ("sound", SOUND)):
        print(f"  {name}: N={N}, D={D}, H={H}, {candidates} candidates, at most {active} active.")
    print("  products: the two N×D×H matrix products alone.")
    print(f"  peak memory of an iteration, sound, float32: {peak_memory():.2f} GiB (target: below 1.5)\n")


def scaling():
    """Print and draw times over the number of rows and of causes."""
    print("One EM iteration of Expectation Truncation, D=100, 5 candidates, at most 3 active, float32, one core:")
    print(f"  {'':14} {'N':>8} {'H':>5} {'ms':>9} {'µs a row':>9} {'ratio':>7}")
    series = []
    for varied, kind, sizes in SERIES:
        times = []
        for size in sizes:
            with double_precision():
                times.append(milliseconds(make_iteration(kind, size, *make_data(size, np.float32)), repeats=3))
            per_row, first = times[-1] / size.n_rows, times[0] / sizes[0].n_rows
            print(
                f"  {kind.__name__:14} {size.n_rows:8} {size.n_components:5} {times[-1]:9.1f} "
                f"{1e3 * per_row:9.2f} {per_row / first:6.2f}x"
            )
        series.append((varied, kind.__name__, np.array([getattr(size, varied) for size in sizes]), times))
    draw(series)
    print(f"  ratio: time per row over that of the first size of its series. Drawn in {PLOT}.\n")


def draw(series):
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4), sharey=True, layout="constrained")
    left.set(xlabel="rows (H=100, D=100)", ylabel="ms an iteration")
    right.set(xlabel="causes (N=10000, D=100)")
    for varied, name, numbers, times in series:
        axes = left if varied == "n_rows" else right
        (line,) = axes.loglog(numbers, times, "o-", label=name)
        axes.loglog(numbers, times[0] * numbers / numbers[0], ":", color=line.get_color(), zorder=0)
        axes.spines[["top", "right"]].set_visible(False)
    left.legend(frameon=False, title="dotted: proportional")
    PLOT.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(PLOT, dpi=150)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scaling", action="store_true", help="how time grows with rows and causes, with a plot")
    scaling() if parser.parse_args().scaling else main()
