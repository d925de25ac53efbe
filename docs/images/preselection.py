"""Draws preselection.png: one row, the scores of all causes, its candidates, and the probabilities of their states."""

from pathlib import Path

import matplotlib
import numpy as np

from multicause import MaximalCauses
from multicause.datasets import make_bars
from multicause.plotting import draw_images
from multicause.posteriors import Preselected

CANDIDATES, MAX_ACTIVE = 5, 3


def main() -> None:
    """Learn bars, and look at the first image with three of them."""
    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    bars = make_bars(500, noise="gaussian", random_state=1)
    model = MaximalCauses(10, posterior=Preselected(CANDIDATES, MAX_ACTIVE, singletons=False), random_state=0)
    model.fit(bars.data)
    row = bars.data[np.flatnonzero(bars.states.sum(axis=1) == MAX_ACTIVE)[0]]
    W = model.components_
    scores = W @ row / np.linalg.norm(W, axis=1)
    order = np.argsort(-scores)
    found = model.recognize(row[None], top=6)

    figure, axes = plt.subplots(1, 4, figsize=(11, 2.6), width_ratios=[1, 2.2, 1.6, 2.2], layout="constrained")
    draw_images(axes[0], row[None], bars.image_shape, title="a row")
    axes[1].bar(range(10), scores[order], color=["tab:blue"] * CANDIDATES + ["lightgray"] * (10 - CANDIDATES))
    axes[1].set(title="scores of all causes", xticks=[])
    draw_images(axes[2], W[order[:CANDIDATES]], bars.image_shape, title=f"{CANDIDATES} candidates")
    labels = ["+".join(str(list(order).index(h) + 1) for h in np.flatnonzero(s)) or "none" for s in found.states[0]]
    axes[3].bar(labels, found.probabilities[0])
    axes[3].set(title=f"states of at most {MAX_ACTIVE} candidates", ylabel="probability")
    figure.savefig(Path(__file__).with_name("preselection.png"), dpi=110)


if __name__ == "__main__":
    main()
