"""Rows that are used to find causes: a sample of some thousand, if there are more."""

from __future__ import annotations

from multicause.em.solver import FitProblem
from multicause.engines.base import Data
from multicause.inference import arrange

# Rows per cause, and at least, that are used to find the causes; the final EM uses all rows.
ROWS_PER_CAUSE = 50
LEAST_ROWS = 4000


def rows_to_search(n_rows: int, n_components: int) -> int:
    """Return how many rows are used to find the causes."""
    return min(n_rows, max(LEAST_ROWS, ROWS_PER_CAUSE * n_components))


def sample_for_search(problem: FitProblem, n_starts: int) -> Data:
    """Return a sample of rows that is large enough to find the causes; all rows, if there are not many more."""
    n_components = problem.starts.components.shape[1]
    sample = problem.data.sample(rows_to_search(problem.data.n_rows, n_components), problem.random)
    if sample is problem.data:
        return sample
    return arrange(problem.model, sample, n_components, max(n_starts, n_components))
