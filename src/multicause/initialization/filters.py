"""Initial filters of an energy-based model, in whitened space."""

from __future__ import annotations

from typing import Any

import numpy as np

# Standard deviation of the entries of the initial filters (EBM01 §4).
FIRST_FILTERS = 0.1


def initial_filters(
    init: Any, n_units: int, inverse: np.ndarray, variance: float, random: np.random.RandomState
) -> np.ndarray:
    """Return the initial filters (H, R).

    ``init`` is "random", "unit" or an array (H, D) in the space of the data; ``inverse`` (D, R) is the way back from
    whitened rows, whose mean variance is ``variance``.
    """
    features, dimensions = inverse.shape
    if isinstance(init, str):
        if init not in ("random", "unit"):
            raise ValueError(f"Unknown init {init!r}. Known: 'random', 'unit', or an array of filters.")
        filters = random.normal(size=(n_units, dimensions)) / np.sqrt(variance)
        if init == "random":
            return FIRST_FILTERS * filters
        return filters / np.linalg.norm(filters, axis=1, keepdims=True) / np.sqrt(variance)
    try:
        filters = np.asarray(init, dtype=float)
    except (TypeError, ValueError) as error:
        raise ValueError(f"init must be a name or an array of numbers: {error}") from error
    if filters.shape != (n_units, features) or not np.isfinite(filters).all():
        raise ValueError(
            f"init must hold finite filters of shape (n_components, n_features) = {(n_units, features)}; got an "
            f"array of shape {filters.shape}."
        )
    whitened = filters @ inverse
    rank = int(np.linalg.matrix_rank(whitened))
    if rank < min(n_units, dimensions):
        raise ValueError(
            f"init must hold {min(n_units, dimensions)} linearly independent filters; these have rank {rank} in the "
            f"{dimensions} whitened dimensions. Use other filters, or init='random'."
        )
    return whitened
