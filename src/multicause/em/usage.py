"""Which causes are used: the definition of dead causes, and of components that are hardly used.

A *dead* cause explains nothing: learning ends with the outcome "cause_died". A *hardly used* component still explains
some rows, but much fewer than others: learning may replace it, or does not wait for it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.spatial.distance import pdist

from multicause.engines.base import Data
from multicause.model import Statistics
from multicause.records import Parameters

# A cause is dead if the expected number of rows that it explains is below this; a continuous cause if it raises the
# log-likelihood of all rows together by less than this.
LEAST_USE = 0.5
# Components that differ by less than this fraction of the largest weight are copies.
SAME = 1e-6
# A component is hardly used if its use is below this fraction of what is usual.
HARDLY_USED = 0.1


def hardly_used(use: Any, usual: Any) -> Any:
    """Return which components are used by much fewer rows, or respond much less, than is ``usual``: (H,).

    ``use`` (H,) is an array of NumPy or JAX; what is usual is the mean or the largest value of it.
    """
    return use < HARDLY_USED * usual


def has_died(parameters: Parameters, sums: Statistics, data: Data, same: float = SAME) -> bool:
    """Return whether some cause is dead, see :func:`dead_causes`."""
    return bool(dead_causes(parameters, sums, data, same).any())


def dead_causes(parameters: Parameters, sums: Statistics, data: Data, same: float = SAME) -> np.ndarray:
    """Return which causes explain practically no row, have zero weights, or are copies of earlier ones: (H,).

    Components that differ nowhere by more than ``same`` times their largest weight are copies. Integer weights count as
    repetitions of a row, weights that are fractions as whole rows.
    """
    repetitions = max(1.0, float(data.n_weighted / sums.weight))
    unused = np.asarray(sums.prior["active"], dtype=float) * repetitions < LEAST_USE
    components = np.asarray(parameters.components, dtype=float)
    largest = np.abs(components).max(axis=1)
    dead = unused | (largest <= SAME * largest.max())
    first, second = np.triu_indices(len(components), k=1)
    copies = pdist(components, "chebyshev") < same * np.maximum(largest[first], largest[second])
    dead[second[copies & ~dead[first]]] = True
    return dead
