"""When EM has converged."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from multicause.arrays import Array

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


class Convergence(NamedTuple):
    """What is known about the mean bound (free energy) of each start once it has cooled; see :func:`judge`."""

    history: Any  # (starts, window + 1) accepted bounds, oldest first, NaN before cooling
    falls: Any  # (starts,) steps in a row that were taken back
    slack: Any  # (starts,) changes of the bound below this are rounding
    length: Any  # (starts,) of the next step, as part of the full one

    @classmethod
    def begin(cls, n_starts: int, monotone: bool) -> Convergence:
        """Return the record before the first iteration."""
        window = WINDOW if monotone else FIXED_POINT_WINDOW
        history, zeros = np.full((n_starts, window + 1), np.nan), np.zeros(n_starts)
        return cls(history, np.zeros(n_starts, dtype=int), zeros, np.ones(n_starts))

    @property
    def bound(self) -> Array:
        """Bounds of the last accepted parameters; NaN before cooling: (starts,)."""
        return self.history[:, -1]

    @property
    def falling(self) -> Array:
        """Starts whose last step was taken back: (starts,)."""
        return self.falls > 0

    def fell(self, monotone: bool) -> Array:
        """Return which starts must end because a monotone update lowered their bound: (starts,)."""
        return self.falling & monotone

    def converged(self, tol: Array, monotone: bool) -> Array:
        """Return which starts rise by less than ``tol`` per iteration or cannot be improved by any step: (starts,)."""
        rise = self.history[:, -1] - self.history[:, 0]
        resting = (rise < jnp.maximum(tol * (self.history.shape[1] - 1), self.slack)) & (tol > 0)
        stuck = (not monotone) & (self.falls >= MAX_FALLS)
        return (resting & ~self.fell(monotone)) | stuck


def judge(
    record: Convergence, bound: Array, magnitude: Array, cooled: Array, epsilon: float
) -> tuple[Convergence, Array]:
    """Take note of the bounds (starts,) after a step; return the new record, and which starts keep the step.

    A fixed-point update may overshoot: a step that lowers the bound is taken back and tried again at half the length,
    so that the bound of a cooled start never falls, and where even a thousandth of a step would lower it, learning has
    converged. The bound of a monotone update falls only if something is wrong. Bounds at different temperatures are
    not compared. A step to an infinite bound is never kept.
    """
    bound = jnp.where(jnp.isfinite(bound), bound, jnp.nan)
    slack = ROUNDINGS * epsilon * (jnp.abs(bound) + magnitude)
    fell = (cooled & (bound < record.bound - slack)) | ~jnp.isfinite(bound)
    falls = jnp.where(fell, record.falls + 1, 0)
    length = jnp.where(fell, record.length / 2, jnp.minimum(2 * record.length, 1))
    accepted = jnp.where(fell, record.bound, jnp.where(cooled, bound, jnp.nan))
    history = jnp.concatenate([record.history[:, 1:], accepted[:, None]], axis=1)
    return Convergence(history, falls, slack, length), ~fell


def at_rest(quiet: Array, change: Array, cooled: Array) -> Array:
    """Return the iterations in a row in which no component of a cooled start moved much (MCA08 eq. 38): (starts,)."""
    return jnp.where((change.max(axis=1) < REST) & cooled, quiet + 1, 0)


def rested(quiet: Array) -> Array:
    """Return which starts have come to rest: (starts,)."""
    return quiet >= QUIET_ITERATIONS
