"""Fits that are killed at random moments: does the newest checkpoint load, and does the resumed fit end the same?

``python -m benchmarks.killed_fits [moments] [seed]`` fits models in processes of their own that write a checkpoint
after every iteration, kills each with SIGKILL at a random moment, and goes on from what is left. "Same" means every bit
of what the model has learned and of its history.
"""

import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import jax
import numpy as np
from sklearn.base import clone

import multicause
from multicause import (
    EnergyComponents,
    HelmholtzMachine,
    IndependentComponents,
    LinearCauses,
    MaximalCauses,
    MixtureOfGaussians,
    SoftmaxNetwork,
    SparseCoding,
)
from multicause.annealing import LinearCooling
from multicause.callbacks import Checkpoint
from multicause.datasets import make_bars
from multicause.persistence import newest_checkpoint
from multicause.posteriors import Preselected

MOMENTS = 20
COUNTS = make_bars(400, noise="poisson", random_state=0).data
IMAGES = make_bars(400, noise="gaussian", random_state=0).data
BINARY = make_bars(400, value=1.0, noise=None, random_state=0).data
SOURCES = np.random.RandomState(0).laplace(size=(2000, 12)) @ np.random.RandomState(1).normal(size=(12, 12))
SCHEDULE = LinearCooling(10.0, n_iter=80, component_noise=0.05)

FITS = {
    "search, repair": (MaximalCauses(10, noise="poisson", max_iter=300, random_state=1), COUNTS),
    "annealing, data cut, 2 starts": (
        LinearCauses(10, posterior=Preselected(5, 3), annealing=SCHEDULE, n_init=2, max_iter=150, random_state=1),
        IMAGES,
    ),
    "network": (SoftmaxNetwork(10, max_iter=30, n_init=2, random_state=1), COUNTS),
    "mixture": (MixtureOfGaussians(10, tol=0, max_iter=300, n_init=3, random_state=1), IMAGES),
    "sparse coding": (SparseCoding(20, tol=0, max_iter=60, random_state=1), IMAGES),
    "independent components": (IndependentComponents(tol=1e-13, max_iter=60, random_state=1), SOURCES),
    "helmholtz machine": (HelmholtzMachine(10, tol=0, max_iter=100, n_init=2, random_state=1), BINARY),
    "energies": (EnergyComponents(20, persistent=True, max_iter=3000, random_state=1), SOURCES),
}


def fit(name: str, folder: str) -> None:
    """What the killed process does."""
    model, X = FITS[name]
    clone(model).set_callbacks(Checkpoint(folder, every=1)).fit(X)


def learned(model) -> list[np.ndarray]:
    """All arrays of a fitted model."""
    return [
        np.asarray(leaf) for leaf in jax.tree.leaves(vars(model)) if isinstance(leaf, np.ndarray | np.generic | float)
    ]


def main(moments: int, seed: int) -> bool:
    """Print one line for each moment; says whether all went well."""
    random, whole, seconds = np.random.RandomState(seed), {}, {}
    all_well = True
    for moment in range(moments):
        name = list(FITS)[moment % len(FITS)]
        model, X = FITS[name]
        if name not in whole:
            whole[name] = clone(model).fit(X)
            with tempfile.TemporaryDirectory() as folder:
                began = time.monotonic()
                fit(name, folder)
                seconds[name] = time.monotonic() - began
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-W", "ignore", "-m", "benchmarks.killed_fits", "--fit", name, folder]
            with subprocess.Popen(command) as process:
                while newest_checkpoint(folder) is None and process.poll() is None:
                    time.sleep(0.01)
                time.sleep(random.uniform(0, seconds[name]))
                process.kill()
            half_written = len([path for path in Path(folder).iterdir() if path.name.startswith(".saving-")])
            newest = newest_checkpoint(folder)
            n_iter = int(newest.stem.rpartition("-")[2])
            finite = bool(np.isfinite(multicause.load(newest).transform(X)).all())
            ours, theirs = learned(whole[name]), learned(clone(model).fit(X, resume=folder))
            pairs = zip(ours, theirs, strict=True)
            same = all(np.array_equal(a, b, equal_nan=a.dtype.kind == "f") for a, b in pairs)
        killed = "killed" if process.returncode < 0 else "was done"
        all_well &= finite and same
        print(
            f"{moment + 1:3d}  {name:30s} {killed:8s} after iteration {n_iter:4d}, {half_written} half written;  "
            f"checkpoint loads: {finite}, resumed fit is the same: {same}",
            flush=True,
        )
    print(f"all well: {all_well}")
    return all_well


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    if sys.argv[1:2] == ["--fit"]:
        fit(*sys.argv[2:])
    else:
        numbers = [int(argument) for argument in sys.argv[1:]]
        sys.exit(not main(*numbers, *[MOMENTS, 0][len(numbers) :]))
