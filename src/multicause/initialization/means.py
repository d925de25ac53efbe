"""Initial means of mixtures: distant rows, random rows, or the user's."""

from __future__ import annotations

from collections.abc import Callable

import jax
import numpy as np
from numpy.typing import ArrayLike
from sklearn.cluster import kmeans_plusplus

from multicause.engines.missing import filled_with_means
from multicause.initialization.conditions import InitialConditions
from multicause.initialization.data_checks import check_values
from multicause.records import Parameters


def starting_means(
    initial: InitialConditions,
    n_components: int,
    init: str | ArrayLike,
    starts_from: Callable[[str | ArrayLike, InitialConditions], Parameters],
) -> Parameters:
    """Return starts that differ in their means: distant rows ("kmeans++"), random rows, or the user's.

    ``starts_from(init, initial)`` returns starts with other means, and initial values of all other parameters.
    """
    n_rows = initial.data.n_rows
    if n_components > n_rows:
        raise ValueError(
            f"A mixture needs at least one row for each cause: n_components={n_components}, but X has {n_rows} rows. "
            f"Lower n_components to at most {n_rows}."
        )
    check_values(initial.data)
    if not (isinstance(init, str) and init == "kmeans++"):
        if isinstance(init, str) and init not in ("random", "data"):
            raise ValueError(f"Unknown init {init!r}. Known: 'kmeans++', 'random', 'data', or an array.")
        return starts_from("data" if isinstance(init, str) else init, initial)
    draws = []
    X, weights = initial.data.look()
    X = filled_with_means(X, weights)
    for _ in range(initial.n_starts):
        centres, _ = kmeans_plusplus(X, n_components, sample_weight=weights, random_state=initial.random)
        draws.append(starts_from(centres, initial._replace(n_starts=1)))
    return jax.tree.map(lambda *leaves: np.concatenate(leaves), *draws)
