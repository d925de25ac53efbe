"""Blind source separation by six learning methods: EBM01 §4, figures 1 and 2."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed

from multicause import EnergyComponents
from multicause.app.experiments.ebm01_data import OUT, mixing_matrix, sources
from multicause.app.experiments.table import Line
from multicause.callbacks import Iteration, IterationCallback
from multicause.metrics import amari_distance

# Number of steps of each sampler in one update (EBM01 §4; "hamiltonian" makes one step of many leapfrog steps).
STEPS = {"metropolis": 20, "langevin": 20, "corrected_langevin": 10, "hamiltonian": 1, "equilibrium": 1, "exact": 1}
CONTRASTIVE = ("metropolis", "langevin", "corrected_langevin", "hamiltonian")
SETTINGS = {"paper": 5000, "quick": 3000}
CLOSE_TO_EXACT, CLOSE_TO_BEST = 1.15, 1.10


class Runs(NamedTuple):
    """Amari distances during learning, (samplers, runs, rounds), at the given updates, and those of other libraries."""

    data: str
    curves: np.ndarray
    updates: np.ndarray
    others: dict[str, float]


def figure_1(trials: int = 10, *, setting: str = "paper", jobs: int = 1) -> list[Line]:
    """Draw the final Amari distance of all six methods, as box plots over runs."""
    runs = _runs(trials, setting, jobs)
    final = dict(zip(STEPS, runs.curves[:, :, -1], strict=True))
    median = {name: float(np.median(values)) for name, values in final.items()}
    exact, best = median["exact"], min(runs.others, key=lambda name: runs.others[name])
    limit = CLOSE_TO_BEST * runs.others[best]

    def draw(plt: Any) -> Any:
        figure, axes = plt.subplots(figsize=(6, 3.6), layout="constrained")
        axes.boxplot(list(final.values()), tick_labels=[name.replace("_", "\n") for name in final], sym="+")
        axes.axhline(runs.others[best], color="C1", linestyle="--", linewidth=1, label=best)
        axes.set_ylabel("final Amari distance")
        axes.set_title(f"EBM01 figure 1: {trials} runs on {runs.data}", loc="left", fontsize=10)
        axes.legend(frameon=False, fontsize=8)
        return figure

    lines = [Line("data", "", f"16 × {runs.data}, {runs.updates[-1]} updates", True)]
    lines.append(Line(f"exact; best of {', '.join(runs.others)}", f"<= {limit:.2f}", f"{exact:.2f}; {best} "
                      f"{runs.others[best]:.2f}", exact <= limit))  # fmt: skip
    for name in CONTRASTIVE:
        expected = f"within 15 % of {exact:.2f}"
        reached = exact / CLOSE_TO_EXACT <= median[name] <= exact * CLOSE_TO_EXACT
        lines.append(
            Line(f"{name}, median", expected, f"{median[name]:.2f} ({median[name] / exact - 1:+.0%})", reached)
        )
    lines.append(Line("equilibrium, median", "", f"{median['equilibrium']:.2f}", True))
    return [*lines, save_picture("ebm01_fig1", draw)]


def figure_2(trials: int = 10, *, setting: str = "paper", jobs: int = 1) -> list[Line]:
    """Draw the mean Amari distance during learning, relative to that of the exact gradient."""
    runs = _runs(trials, setting, jobs)
    means = dict(zip(STEPS, runs.curves.mean(axis=1), strict=True))

    def draw(plt: Any) -> Any:
        figure, axes = plt.subplots(figsize=(6, 3.8), layout="constrained")
        for name, curve in means.items():
            if name != "exact":
                axes.plot(runs.updates, curve - means["exact"], label=name, linewidth=1)
        axes.axhline(0, color="grey", linewidth=0.5)
        axes.set(xlabel="update", ylabel="Amari distance − that of exact")
        axes.legend(frameon=False, fontsize=8, loc="lower right")
        axes.set_title(f"EBM01 figure 2: mean of {trials} runs on {runs.data}", loc="left", fontsize=10)
        inset = axes.inset_axes((0.62, 0.62, 0.36, 0.34))
        inset.plot(runs.updates, means["exact"], color="black", linewidth=1)
        inset.set_title("exact", fontsize=8)
        return figure

    # Number of updates until nine tenths of the exact gradient's total improvement are reached.
    target = means["exact"][-1] + 0.1 * (means["exact"][0] - means["exact"][-1])
    lines = []
    for name, curve in means.items():
        reached = runs.updates[int(np.argmax(curve <= target))] if (curve <= target).any() else None
        lines.append(Line(f"updates for 90 % of exact's way: {name}", "", str(reached or "never"), reached is not None))
    return [*lines, save_picture("ebm01_fig2", draw)]


def save_picture(name: str, draw: Any) -> Line:
    """Draw a figure into a PNG file, and return a line with its path."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    OUT.mkdir(parents=True, exist_ok=True)
    figure, path = draw(plt), OUT / f"{name}.png"
    figure.savefig(path, dpi=130)
    plt.close(figure)
    return Line("picture", "", str(path), path.exists())


def _runs(trials: int, setting: str, jobs: int) -> Runs:
    """Return all runs, stored in a file because figures 1 and 2 show the same ones."""
    if setting not in SETTINGS:
        raise ValueError(f"Unknown setting {setting!r}. Known: {', '.join(map(repr, SETTINGS))}.")
    name, S = sources()
    max_iter = SETTINGS[setting]
    kept = OUT / f"ebm01_separation_{name.replace(' ', '_')}_{max_iter}_{trials}.npz"
    if kept.exists():
        stored = np.load(kept)
        others = dict(zip(stored["others"].tolist(), stored["distances"].tolist(), strict=True))
        return Runs(name, stored["curves"], stored["updates"], others)
    A = mixing_matrix()
    X = (A @ S).T.astype(np.float32)
    tasks = [(sampler, seed) for sampler in STEPS for seed in range(trials)]
    curves = Parallel(n_jobs=jobs)(delayed(_run)(X, A, sampler, seed, max_iter) for sampler, seed in tasks)
    errors = np.array(curves).reshape(len(STEPS), trials, -1)
    updates = np.linspace(0, max_iter, errors.shape[-1] + 1)[1:].round().astype(int)
    others = _others(X, A)
    _keep(
        kept, curves=errors, updates=updates, others=np.array(list(others)), distances=np.array(list(others.values()))
    )
    return Runs(name, errors, updates, others)


class _Watch(IterationCallback):
    """Callback that measures the distance to the true unmixing matrix after each round of updates."""

    def __init__(self, truth: np.ndarray) -> None:
        self.truth, self.distances = truth, []  # type: ignore[var-annotated]

    def after(self, iteration: Iteration) -> None:
        """Append the distance after this round to ``distances``."""
        self.distances.append(amari_distance(iteration.model().components_, self.truth))


def _run(X: np.ndarray, A: np.ndarray, sampler: str, seed: int, max_iter: int) -> list[float]:
    watch = _Watch(np.linalg.inv(A))
    model = EnergyComponents(
        len(A),
        sampler=sampler,
        n_steps=STEPS[sampler],
        batch_size=100,
        learning_rate=0.05,
        final_learning_rate=0.0005,
        momentum=0.9,
        max_iter=max_iter,
        random_state=seed,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.set_callbacks(watch).fit(X)
    return watch.distances


def _others(X: np.ndarray, A: np.ndarray) -> dict[str, float]:
    """Return the distances of FastICA with its three contrasts and, if it is installed, of picard."""
    from sklearn.decomposition import FastICA

    truth, rows, distances = np.linalg.inv(A), X.astype(float), {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for fun in ("logcosh", "exp", "cube"):
            ica = FastICA(fun=fun, whiten="unit-variance", max_iter=1000, tol=1e-6, random_state=0).fit(rows)
            distances[f"FastICA {fun}"] = amari_distance(ica.components_, truth)
        try:
            from picard import picard
        except ImportError:
            return distances
        for ortho in (False, True):
            K, W, _ = picard(rows.T, ortho=ortho, extended=ortho, max_iter=500, tol=1e-7, random_state=0)
            distances["picard-o" if ortho else "picard"] = amari_distance(W @ K, truth)
    return distances


def _keep(path: Path, **arrays: np.ndarray) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, allow_pickle=False, **arrays)
