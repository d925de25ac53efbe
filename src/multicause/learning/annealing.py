"""Annealing: temperature as a function of how learning goes, so that EM does not stop at the nearest optimum.

An :class:`Annealing` is a part: hyper-parameters that a user sets. Its :meth:`Annealing.schedule` is what the EM step
works with: a record of numbers with pure methods, which are traced into the compiled step. Schedules of one class
share compiled programs, whatever their numbers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from multicause.arrays import Array, namespace
from multicause.parts import Part

# Iterations of plain EM after which a data cut, if there is one, is complete.
PLAIN_ITERATIONS = 30
# Stands for a cooling that takes no time at all.
TINY = 1e-12


class Cooling(NamedTuple):
    """How far the starts have cooled."""

    temperature: Any  # (starts,)
    iteration: Any  # () iterations done
    quiet: Any  # (starts,) iterations in a row in which no component moved much at the final temperature


class Schedule(ABC):
    """A schedule as the EM step sees it: a tree of arrays with pure methods. Starts cool each at its own pace."""

    start: Any  # (starts,) first temperatures
    final: Any  # last temperature, () or (starts,)
    component_noise: Any  # standard deviation of noise on the components while cooling, or None

    def begin(self) -> Cooling:
        """Return the state before the first iteration."""
        start = np.asarray(self.start, dtype=float)
        return Cooling(start, np.zeros((), int), np.zeros(len(start), int))

    @abstractmethod
    def advance(self, cooling: Cooling, change: Array) -> Cooling:
        """Return the state after an iteration in which the components moved by ``change`` (starts, H), MCA08 eq. 38."""

    @abstractmethod
    def cooled(self, cooling: Cooling) -> Array:
        """Return which starts have reached the final temperature, so that convergence may be tested: (starts,)."""

    def finished(self, cooling: Cooling) -> Array:
        """Return which starts the schedule itself declares converged: (starts,)."""
        return jnp.zeros(cooling.temperature.shape, dtype=bool)

    @abstractmethod
    def progress(self, cooling: Cooling) -> Array:
        """Return how much of the schedule is done, from 0 to 1: (starts,). A data cut begins in its last third."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class LinearSchedule(Schedule):
    """Temperature by the number of iterations: hold, cool linearly, hold."""

    start: Any
    final: Any
    hold: Any  # () iterations at the first temperature
    until: Any  # () iterations after which the last temperature is reached
    length: Any  # () iterations before which convergence is not tested
    horizon: Any  # () iterations after which the schedule counts as done
    component_noise: Any = None

    def advance(self, cooling: Cooling, change: Array) -> Cooling:
        """Cool by the number of iterations alone."""
        done = cooling.iteration + 1
        progress = jnp.clip((done - self.hold) / jnp.maximum(self.until - self.hold, TINY), 0, 1)
        progress = jnp.where(done >= self.until, 1, progress)
        return Cooling(self.start + (self.final - self.start) * progress, done, cooling.quiet)

    def cooled(self, cooling: Cooling) -> Array:
        """Return False before the schedule is through: its last part is meant for settling."""
        return jnp.full(cooling.temperature.shape, cooling.iteration >= self.length)

    def progress(self, cooling: Cooling) -> Array:
        """Return the part of the iterations that is done."""
        return jnp.full(cooling.temperature.shape, jnp.minimum(1.0, cooling.iteration / self.horizon))


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class ConditionalSchedule(Schedule):
    """Cool by one step whenever all components have come to rest: MCA08 appendix E.2."""

    start: Any
    final: Any
    n_steps: Any
    threshold: Any
    hold: Any
    quiet: Any
    within: Any  # () iterations, infinite if there is no limit
    component_noise: Any = None

    def advance(self, cooling: Cooling, change: Array) -> Cooling:
        """MCA08 eq. 37."""
        rest = change.max(axis=1) < self.threshold
        done = cooling.iteration + 1
        quiet = jnp.where(rest & self.cooled(cooling), cooling.quiet + 1, 0)
        step = (self.start - self.final) / self.n_steps
        # Steps are counted, not subtracted, so that fifty of them end exactly at the final temperature.
        taken = jnp.rint((self.start - cooling.temperature) / jnp.maximum(step, TINY))
        taken = taken + jnp.where(rest & (done > self.hold), 1, 0)
        taken = jnp.maximum(taken, jnp.floor(self.n_steps * (done - self.hold) / (self.within - self.hold)))
        temperature = jnp.where(taken >= self.n_steps, self.final, self.start - taken * step)
        return Cooling(temperature, done, quiet)

    def cooled(self, cooling: Cooling) -> Array:
        """Return which starts have the final temperature."""
        return cooling.temperature <= self.final

    def finished(self, cooling: Cooling) -> Array:
        """Return which starts have been at rest for long enough."""
        return cooling.quiet >= self.quiet

    def progress(self, cooling: Cooling) -> Array:
        """Return the part of all steps that is taken."""
        span = self.start - self.final
        return jnp.where(span > 0, (self.start - cooling.temperature) / jnp.maximum(span, TINY), 1.0)


class ConstantTemperatures(NamedTuple):
    """A temperature of its own for each start, which it keeps; convergence is never tested."""

    temperatures: np.ndarray

    def schedule(self, n_starts: int) -> Schedule:
        """Return a linear schedule that never begins to cool."""
        never = np.float64(2**31)
        temperatures = np.resize(np.asarray(self.temperatures, dtype=float), n_starts)
        return LinearSchedule(temperatures, temperatures, never, never, never, never)


class Annealing(Part):
    """Hyper-parameters of a schedule. ``component_noise`` is the standard deviation of Gaussian noise that is added to
    the components after each M-step while the temperature is above the final one (ET10 §4.1), in units of the data.
    """

    #: Whether ``start`` may be a tuple, of which each of several starts takes the next.
    several = False
    start: float
    final: float
    component_noise: float

    def validate(self) -> None:
        """Raise ValueError for impossible settings."""
        several = self.several and isinstance(self.start, tuple)
        starts: tuple[Any, ...] = self.start if several else (self.start,)  # type: ignore[assignment]
        numbers = len(starts) > 0 and all(isinstance(number, Real) for number in (*starts, self.final))
        if not (numbers and self.final >= 1 and all(self.final <= start < np.inf for start in starts)):
            kind = "Several of them are a tuple." if self.several else "Each is one number."
            raise ValueError(
                f"{type(self).__name__} needs temperatures start >= final >= 1; "
                f"got start={self.start!r} and final={self.final!r}. {kind}"
            )
        noise = self.component_noise
        if not (isinstance(noise, Real) and np.isfinite(noise) and noise >= 0):
            raise ValueError(
                f"component_noise must be a standard deviation of at least 0; got {self.component_noise!r}."
            )

    @abstractmethod
    def schedule(self, n_starts: int) -> Schedule:
        """Return the schedule of so many starts."""

    def _first_temperatures(self, n_starts: int) -> np.ndarray:
        """Return the first temperature of each start: those given, in turn."""
        return np.resize(np.asarray(self.start, dtype=float), n_starts)

    def _noise(self) -> np.float64 | None:
        return np.float64(self.component_noise) if self.component_noise > 0 else None


class NoAnnealing(Annealing):
    """Temperature one throughout: plain EM."""

    start = final = 1.0
    component_noise = 0.0

    def schedule(self, n_starts: int) -> Schedule:
        """Return a linear schedule of no length."""
        now = np.float64(0)
        ones = np.ones(n_starts)
        return LinearSchedule(ones, ones, now, now, now, np.float64(PLAIN_ITERATIONS))


class ConditionalCooling(Annealing):
    """Cool by one step whenever all components have come to rest: MCA08 appendix E.2.

    Parameters
    ----------
    start : float or tuple of float
        First temperature T₁, below the critical one, above which all components become equal. The paper uses
        0.4·D + 1 for its truncated posterior on bars of value 10; the exact posterior needs less, 8 for D = 25. Of
        several starts, each takes the next of several temperatures.
    final : float, default=1.0
        Last temperature; the paper uses 1.5.
    n_steps : int, default=50
        Number of equal steps between them.
    threshold : float, default=2.5e-3
        θ of eq. 37: components rest when each ΔW_h = ‖W_h − W_h^old‖ / Σ_d W_hd^old is below it.
    hold : int, default=10
        Iterations at the first temperature before any cooling.
    quiet : int, default=20
        Learning ends after so many iterations at rest at the final temperature.
    within : int, optional
        Number of iterations by which the final temperature is reached, at rest or not; by default it takes as long as
        it takes.
    component_noise : float, default=0.0
        Standard deviation of noise on the components while cooling.
    """

    several = True
    start: float | tuple[float, ...]  # type: ignore[assignment]

    def __init__(
        self,
        start: float | tuple[float, ...],
        *,
        final: float = 1.0,
        n_steps: int = 50,
        threshold: float = 2.5e-3,
        hold: int = 10,
        quiet: int = 20,
        within: int | None = None,
        component_noise: float = 0.0,
    ) -> None:
        self.start = start
        self.final = final
        self.n_steps = n_steps
        self.threshold = threshold
        self.hold = hold
        self.quiet = quiet
        self.within = within
        self.component_noise = component_noise

    def validate(self) -> None:
        """Steps and threshold must be positive."""
        super().validate()
        whole = all(isinstance(count, Integral) for count in (self.n_steps, self.hold, self.quiet))
        if not whole or self.n_steps < 1 or not self.threshold > 0 or self.hold < 0 or self.quiet < 1:
            raise ValueError(
                "ConditionalCooling needs whole numbers n_steps >= 1, hold >= 0 and quiet >= 1, and threshold > 0; got "
                f"n_steps={self.n_steps!r}, threshold={self.threshold!r}, hold={self.hold!r}, quiet={self.quiet!r}."
            )
        if self.within is not None and not (isinstance(self.within, Integral) and self.within > self.hold):
            raise ValueError(
                f"within of ConditionalCooling must be a whole number above hold={self.hold}, or None; got "
                f"{self.within!r}."
            )

    def schedule(self, n_starts: int) -> Schedule:
        """Return the schedule with these numbers."""
        return ConditionalSchedule(
            start=self._first_temperatures(n_starts),
            final=np.float64(self.final),
            n_steps=np.float64(self.n_steps),
            threshold=np.float64(self.threshold),
            hold=np.float64(self.hold),
            quiet=np.float64(self.quiet),
            within=np.float64(np.inf if self.within is None else self.within),
            component_noise=self._noise(),
        )


class LinearCooling(Annealing):
    """Hold, cool linearly, hold: ET10 figure 4B.

    Parameters
    ----------
    start : float
        First temperature; ET10 uses 13 for bars of value 10 with σ = 2.
    final : float, default=1.0
        Last temperature.
    n_iter : int, default=100
        Length of the whole schedule in iterations.
    hold : float, default=0.1
        Part of it that is spent at the first temperature.
    settle : float, default=0.2
        Part of it that is spent at the last temperature.
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
        """The parts must fit into the whole."""
        super().validate()
        whole = isinstance(self.n_iter, Integral)
        if not whole or self.n_iter < 1 or not (self.hold >= 0 and self.settle >= 0 and self.hold + self.settle <= 1):
            raise ValueError(
                "LinearCooling needs a whole number n_iter >= 1, and hold >= 0, settle >= 0, hold + settle <= 1; "
                f"got n_iter={self.n_iter!r}, hold={self.hold!r}, settle={self.settle!r}."
            )

    def temperature(self, iteration: int | float | Array) -> Any:
        """Temperature of one iteration, counted from zero."""
        first, last = self.hold * self.n_iter, (1 - self.settle) * self.n_iter
        xp = namespace(iteration)
        progress = xp.where(iteration >= last, 1, xp.clip((iteration - first) / max(last - first, TINY), 0, 1))
        return self.start + (self.final - self.start) * progress

    def schedule(self, n_starts: int) -> Schedule:
        """Return the schedule with these numbers."""
        return LinearSchedule(
            start=self._first_temperatures(n_starts),
            final=np.full(n_starts, float(self.final)),
            hold=np.float64(self.hold * self.n_iter),
            until=np.float64((1 - self.settle) * self.n_iter),
            length=np.float64(self.n_iter),
            horizon=np.float64(self.n_iter),
            component_noise=self._noise(),
        )
