"""Schedules that depend on the iteration number alone: constant temperatures and linear cooling (ET10)."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from multicause.annealing.base import TINY, Annealing, Cooling, Schedule
from multicause.arrays import Array, namespace

# Iterations of plain EM after which a data cut, if there is one, is complete.
PLAIN_ITERATIONS = 30


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class LinearSchedule(Schedule):
    """Schedule that depends on the iteration number: hold, cool linearly, hold."""

    start: Any
    final: Any
    hold: Any  # () iterations at the initial temperature
    until: Any  # () iterations after which the final temperature is reached
    length: Any  # () iterations before which convergence is not tested
    horizon: Any  # () iterations after which the schedule counts as done
    component_noise: Any = None

    def advance(self, cooling: Cooling, change: Array) -> Cooling:
        """Cool by the iteration number alone."""
        done = cooling.iteration + 1
        progress = jnp.clip((done - self.hold) / jnp.maximum(self.until - self.hold, TINY), 0, 1)
        progress = jnp.where(done >= self.until, 1, progress)
        return Cooling(self.start + (self.final - self.start) * progress, done, cooling.quiet)

    def cooled(self, cooling: Cooling) -> Array:
        """Return whether the whole schedule is over; its last part, at the final temperature, is for settling."""
        return jnp.full(cooling.temperature.shape, cooling.iteration >= self.length)

    def progress(self, cooling: Cooling) -> Array:
        """Return the fraction of the iterations that is done."""
        return jnp.full(cooling.temperature.shape, jnp.minimum(1.0, cooling.iteration / self.horizon))


class ConstantTemperatures(NamedTuple):
    """Constant temperature for each start; convergence is never tested."""

    temperatures: np.ndarray

    def schedule(self, n_starts: int) -> Schedule:
        """Return a linear schedule that never begins to cool."""
        never = np.float64(2**31)
        temperatures = np.resize(np.asarray(self.temperatures, dtype=float), n_starts)
        return LinearSchedule(temperatures, temperatures, never, never, never, never)


class NoAnnealing(Annealing):
    """Plain EM: temperature one throughout."""

    start = final = 1.0
    component_noise = 0.0

    def schedule(self, n_starts: int) -> Schedule:
        """Return a linear schedule of length zero."""
        now = np.float64(0)
        ones = np.ones(n_starts)
        return LinearSchedule(ones, ones, now, now, now, np.float64(PLAIN_ITERATIONS))


class LinearCooling(Annealing):
    """Annealing that holds, cools linearly, and holds again: ET10 figure 4B.

    Parameters
    ----------
    start : float
        Initial temperature; ET10 uses 13 for bars of value 10 with σ = 2.
    final : float, default=1.0
        Final temperature.
    n_iter : int, default=100
        Length of the whole schedule in iterations.
    hold : float, default=0.1
        Fraction of the schedule at the initial temperature.
    settle : float, default=0.2
        Fraction of the schedule at the final temperature.
    component_noise : float, default=0.0
        Standard deviation of noise on the components while cooling; ET10 uses 0.05.
    """

    def __init__(
        self,
        start: float,
        *,
        final: float = 1.0,
        n_iter: int = 100,
        hold: float = 0.1,
        settle: float = 0.2,
        component_noise: float = 0.0,
    ) -> None:
        self.start = start
        self.final = final
        self.n_iter = n_iter
        self.hold = hold
        self.settle = settle
        self.component_noise = component_noise

    def validate(self) -> None:
        """Raise ValueError if a setting is invalid."""
        super().validate()
        whole = isinstance(self.n_iter, Integral)
        if not whole or self.n_iter < 1 or not (self.hold >= 0 and self.settle >= 0 and self.hold + self.settle <= 1):
            raise ValueError(
                "LinearCooling needs a whole number n_iter >= 1, and hold >= 0, settle >= 0, hold + settle <= 1; "
                f"got n_iter={self.n_iter!r}, hold={self.hold!r}, settle={self.settle!r}."
            )

    def temperature(self, iteration: int | float | Array) -> Any:
        """Return the temperature of an iteration, counted from zero."""
        first, last = self.hold * self.n_iter, (1 - self.settle) * self.n_iter
        xp = namespace(iteration)
        progress = xp.where(iteration >= last, 1, xp.clip((iteration - first) / max(last - first, TINY), 0, 1))
        return self.start + (self.final - self.start) * progress

    def schedule(self, n_starts: int) -> Schedule:
        """Return the schedule for ``n_starts`` starts."""
        return LinearSchedule(
            start=self._first_temperatures(n_starts),
            final=np.full(n_starts, float(self.final)),
            hold=np.float64(self.hold * self.n_iter),
            until=np.float64((1 - self.settle) * self.n_iter),
            length=np.float64(self.n_iter),
            horizon=np.float64(self.n_iter),
            component_noise=self._noise(),
        )
