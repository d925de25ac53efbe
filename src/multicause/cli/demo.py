"""The demonstration: bars that occlude each other, found in noisy images."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import Any

import matplotlib
import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.callback import ProgressBar

from multicause import MaximalCauses
from multicause.datasets import make_bars
from multicause.experiments.bars_reference import generating_bound
from multicause.metrics import Recovery, recovered_causes
from multicause.plotting import draw_bound, draw_images


def run_demo(console: Console, out: Path, seed: int) -> None:
    """Learn, print a table, and write ``bars.png`` into the folder ``out``."""
    out.mkdir(parents=True, exist_ok=True)
    bars = make_bars(500, noise="poisson", random_state=seed)
    console.print(
        "500 images of 5×5 pixels. Each shows about two of ten bars, which occlude each other, under Poisson noise.\n"
        "MaximalCauses is told nothing but the number of causes."
    )
    model = MaximalCauses(10, noise="poisson", random_state=seed).set_callbacks(ProgressBar())
    started = perf_counter()
    model.fit(bars.data)
    seconds = perf_counter() - started

    found, reference = recovered_causes(model, bars.causes), generating_bound(model, bars)
    frequency = bars.states.mean(axis=0)
    table = Table(title=f"Learned in {model.n_iter_} iterations, {seconds:.1f} s ({model.outcome_})")
    table.add_column("")
    table.add_column("found", justify="right")
    table.add_column("truth", justify="right")
    table.add_row("bars with a cause of their own", str(found.n_found), str(len(bars.causes)))
    table.add_row("mean absolute error of the weights", f"{found.mean_absolute_error:.3f}", "0")
    lit = model.components_[found.mapping][bars.causes > 0]
    table.add_row("mean weight of bar pixels", f"{lit.mean():.2f}", "10")
    error = np.abs(model.activity_[found.mapping] - frequency).mean()
    table.add_row("mean error of the causes' frequency", f"{error:.4f}", "0")
    table.add_row("mean log evidence of an image", f"{model.lower_bound_:.3f}", f"{reference:.3f}")
    console.print(table)
    path = out / "bars.png"
    draw(path, bars, model, found, reference)
    console.print(f"Picture: {path}")


def draw(path: Path, bars: Any, model: Any, found: Recovery, reference: float) -> None:
    """Data, true causes, learned components in their order, and the bound."""
    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(4, 1, figsize=(7, 6.6), height_ratios=[2.2, 1, 1, 2.2], layout="constrained")
    draw_images(axes[0], bars.data[:20], bars.image_shape, title="data: 20 of 500 images")
    draw_images(axes[1], bars.causes, bars.image_shape, title="the true causes, never shown to the model")
    order = [*found.mapping, *(h for h in range(len(model.components_)) if h not in found.mapping)]
    draw_images(axes[2], model.components_[order], bars.image_shape, title="learned components, in the same order")
    draw_bound(axes[3], model, reference=reference)
    figure.savefig(path, dpi=130)
    plt.close(figure)
