"""Mini-batches of rows from which an energy-based model learns."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from multicause.solvers.contrastive_divergence import EnergyBatches


def mini_batches(
    X: np.ndarray, weights: np.ndarray, batch_size: int | None, random: np.random.RandomState
) -> Callable[[int], EnergyBatches]:
    """Return a function that draws mini-batches with replacement, in proportion to the weights.

    Without a ``batch_size`` there is one batch of all rows, whose means are weighted.
    """
    if batch_size is None:
        everything = EnergyBatches(X[None], (weights / weights.sum()).astype(X.dtype))
        return lambda length: everything
    reached = np.cumsum(weights, dtype=float)
    shares = np.full(batch_size, 1 / batch_size, X.dtype)

    def draw(length: int) -> EnergyBatches:
        places = np.searchsorted(reached, random.random_sample((length, batch_size)) * reached[-1], side="right")
        return EnergyBatches(X[np.minimum(places, len(X) - 1)], shares)

    return draw
