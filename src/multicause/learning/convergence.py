"""When learning ends, and what its end is called."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import numpy as np

from multicause.arrays import namespace

# Iterations over which the rise of the bound is judged; more where steps may be taken back on the way.
WINDOW = 3
FIXED_POINT_WINDOW = 10
# Falls in a row, each step half as long as the one before, after which no step is tried any more.
MAX_FALLS = 10
# Changes of the mean bound below so many roundings of it, and of the terms that cancel in it, are neither rises
# nor falls.
ROUNDINGS = 4
# Where the bound is no judge, learning ends after so many iterations in which all components move by less than this
# part of their sums: a tenth of the threshold at which MCA08 goes on cooling, and its number of iterations.
REST = 2.5e-4
QUIET_ITERATIONS = 20


class Outcome(StrEnum):
    """How a fit ended; the value is the name in ``outcome_``."""

    CONVERGED = "converged"
    MAX_ITER = "max_iter"
    BOUND_FELL = "bound_fell"
    CAUSE_DIED = "cause_died"
    NON_FINITE = "non_finite"
    STOPPED = "stopped"

    @property
    def remedy(self) -> str:
        """What a person can do about it; empty where nothing is amiss."""
        return _REMEDIES.get(self, "")


_REMEDIES = {
    Outcome.MAX_ITER: (
        "Learning had not converged after max_iter iterations. (1) Raise max_iter; (2) raise tol if the last "
        "values of lower_bounds_ hardly differ; (3) shorten the annealing."
    ),
    Outcome.BOUND_FELL: (
        "The lower bound fell, and the parameters before the fall were kept. (1) Use float64 data if X is "
        "float32; (2) raise tol; (3) try another update or random_state."
    ),
    Outcome.CAUSE_DIED: (
        "At least one cause explains no row any more (see activity_), is zero, or is a copy of another. (1) Lower "
        "n_components; (2) where the model has a temperature or an annealing, begin at a lower one, or let it be found "
        "('auto'); (3) raise n_init or change random_state."
    ),
    Outcome.NON_FINITE: (
        "Parameters or the bound became infinite or NaN, and the last finite ones were kept. (1) Scale X to moderate "
        "values; (2) use float64 data if X is float32; (3) give a larger noise_scale or min_variance."
    ),
}


def at_rest(quiet: Any, change: Any, cooled: Any) -> Any:
    """Iterations in a row in which no component of a cooled start moved much (MCA08 eq. 38): (starts,)."""
    return namespace(quiet).where((change.max(axis=1) < REST) & cooled, quiet + 1, 0)


def rested(quiet: Any) -> Any:
    """Which starts have come to rest: (starts,)."""
    return quiet >= QUIET_ITERATIONS


class Convergence:
    """Judges the mean bound (free energy) of each start once it has cooled; all arrays have shape (starts,).

    A fixed-point update may overshoot: a step that lowers the bound is taken back and tried again at half the length,
    so that the bound of a cooled start never falls, and where even a thousandth of a step would lower it, learning has
    converged. The bound of a monotone update falls only if something is wrong.
    """

    def __init__(self, n_starts: int, tol: float, monotone: bool, epsilon: float) -> None:
        self._tol, self._epsilon, self._monotone = tol, epsilon, monotone
        window = WINDOW if monotone else FIXED_POINT_WINDOW
        self._history = np.full((window + 1, n_starts), np.nan)  # accepted bounds, oldest first, NaN before cooling
        self._falls = np.zeros(n_starts, dtype=int)
        self._slack = np.zeros(n_starts)
        self.length = np.ones(n_starts)  # of the next step, as part of the full one

    @property
    def memory(self) -> tuple[np.ndarray, ...]:
        """All that the next judgement needs; assign it to go on from there."""
        return self._history, self._falls, self._slack, self.length

    @memory.setter
    def memory(self, memory: tuple[np.ndarray, ...]) -> None:
        self._history, self._falls, self._slack, self.length = memory

    @property
    def bound(self) -> np.ndarray:
        """Bounds of the last accepted parameters; NaN before cooling."""
        return self._history[-1]

    def judge(self, bound: np.ndarray, magnitude: np.ndarray, cooled: np.ndarray) -> np.ndarray:
        """Take note of the bounds after a step; says which starts are to keep it.

        Bounds at different temperatures are not compared. A step to an infinite bound is never kept.
        """
        bound = np.where(np.isfinite(bound), bound, np.nan)
        self._slack = ROUNDINGS * self._epsilon * (np.abs(bound) + magnitude)
        fell = (cooled & (bound < self.bound - self._slack)) | ~np.isfinite(bound)
        self._falls = np.where(fell, self._falls + 1, 0)
        self.length = np.where(fell, self.length / 2, np.minimum(2 * self.length, 1))
        accepted = np.where(fell, self.bound, np.where(cooled, bound, np.nan))
        self._history = np.vstack([self._history[1:], accepted])
        return ~fell

    @property
    def converged(self) -> np.ndarray:
        """Starts that rise by less than ``tol`` per iteration, or that no step of a fixed-point update can improve."""
        window = len(self._history) - 1
        rise = self._history[-1] - self._history[0]
        at_rest = (rise < np.maximum(self._tol * window, self._slack)) & (self._tol > 0)
        stuck = (not self._monotone) & (self._falls >= MAX_FALLS)
        return (at_rest & ~self.fell) | stuck

    @property
    def falling(self) -> np.ndarray:
        """Starts whose last step was taken back."""
        return self._falls > 0

    @property
    def fell(self) -> np.ndarray:
        """Starts that must end because a monotone update lowered their bound."""
        return self._monotone & (self._falls > 0)
