"""Convergence criteria of EM."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from multicause.arrays import Array

# Number of iterations over which the rise of the bound is measured; more for updates whose steps may be rejected.
MONOTONE_WINDOW = 3
FIXED_POINT_WINDOW = 10
# Number of consecutive falls, each with half the step length of the one before, after which no step is tried any more.
MAX_FALLS = 10
# Changes of the mean bound are ignored if they are below this many rounding errors of the bound, of the terms that
# cancel in it, and of one nat, the typical size of a log probability.
ROUNDINGS = 4
# If the bound is no measure of progress, learning ends after QUIET_ITERATIONS iterations in which all components move
# by less than LEAST_MOVE times their sums: a tenth of the threshold at which MCA08 continues cooling, and its number of
# iterations.
LEAST_MOVE = 2.5e-4
QUIET_ITERATIONS = 20


class Convergence(NamedTuple):
    """Recent mean bounds (free energies) and step length of each start after annealing; see :func:`assess_step`."""

    history: Any  # (starts, window + 1) accepted bounds, oldest first, NaN during annealing
    falls: Any  # (starts,) number of consecutive rejected steps
    slack: Any  # (starts,) changes of the bound below this are rounding errors
    length: Any  # (starts,) length of the next step, relative to a full step

    @classmethod
    def begin(cls, n_starts: int, monotone: bool) -> Convergence:
        """Return the record before the first iteration."""
        window = MONOTONE_WINDOW if monotone else FIXED_POINT_WINDOW
        history, zeros = np.full((n_starts, window + 1), np.nan), np.zeros(n_starts)
        return cls(history, np.zeros(n_starts, dtype=int), zeros, np.ones(n_starts))

    @property
    def bound(self) -> Array:
        """Bounds of the last accepted parameters; NaN during annealing: (starts,)."""
        return self.history[:, -1]

    @property
    def falling(self) -> Array:
        """Starts whose last step was rejected: (starts,)."""
        return self.falls > 0

    def fell(self, monotone: bool) -> Array:
        """Return which starts must end because a monotone update lowered their bound: (starts,)."""
        return self.falling & monotone

    def converged(self, tol: Array, monotone: bool) -> Array:
        """Return which starts rise by less than ``tol`` per iteration or cannot be improved by any step: (starts,)."""
        rise = self.history[:, -1] - self.history[:, 0]
        rises_little = (rise < jnp.maximum(tol * (self.history.shape[1] - 1), self.slack)) & (tol > 0)
        stuck = (not monotone) & (self.falls >= MAX_FALLS)
        return (rises_little & ~self.fell(monotone)) | stuck


def assess_step(
    record: Convergence, bound: Array, magnitude: Array, cooled: Array, epsilon: float
) -> tuple[Convergence, Array]:
    """Compare the bounds (starts,) after a step with earlier ones; return the new record, and which steps are accepted.

    A fixed-point update may overshoot: a step that lowers the bound is rejected and tried again with half the length,
    so that the bound of a start never falls after annealing, and if even a thousandth of a step would lower it,
    learning has converged. The bound of a monotone update falls only if something is wrong. Bounds at different
    temperatures are not compared. A step to an infinite bound is never accepted.
    """
    bound = jnp.where(jnp.isfinite(bound), bound, jnp.nan)
    slack = ROUNDINGS * epsilon * (1 + jnp.abs(bound) + magnitude)
    fell = (cooled & (bound < record.bound - slack)) | ~jnp.isfinite(bound)
    falls = jnp.where(fell, record.falls + 1, 0)
    length = jnp.where(fell, record.length / 2, jnp.minimum(2 * record.length, 1))
    accepted = jnp.where(fell, record.bound, jnp.where(cooled, bound, jnp.nan))
    history = jnp.concatenate([record.history[:, 1:], accepted[:, None]], axis=1)
    return Convergence(history, falls, slack, length), ~fell


def count_quiet_iterations(quiet: Array, change: Array, cooled: Array) -> Array:
    """Return the number of consecutive iterations in which no component moved much (MCA08 eq. 38): (starts,).

    Iterations during annealing are not counted.
    """
    return jnp.where((change.max(axis=1) < LEAST_MOVE) & cooled, quiet + 1, 0)


def has_stopped_moving(quiet: Array) -> Array:
    """Return which starts have moved little for long enough to have converged: (starts,)."""
    return quiet >= QUIET_ITERATIONS
