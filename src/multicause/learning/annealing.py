"""Annealing: temperature as a function of how learning goes, so that EM does not stop at the nearest optimum.

A schedule is a part; what it remembers between iterations is a record of arrays with one entry per start, because
starts are learned side by side and cool each at its own pace. The arrays are NumPy's in a loop in Python and JAX's in a
compiled one.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any

import numpy as np

from multicause.arrays import Array, namespace
from multicause.parts import Part

# Iterations of plain EM after which a data cut, if there is one, is complete.
PLAIN_ITERATIONS = 30
# Stands for a cooling that takes no time at all.
TINY = 1e-12


@dataclass(frozen=True)
class Cooling:
    """Where the starts stand: all arrays have shape (starts,)."""

    temperature: np.ndarray
    iteration: int | Array  # iterations done
    quiet: np.ndarray  # iterations in a row in which no component moved much at the final temperature


class Annealing(Part):
    """A schedule. ``component_noise`` is the standard deviation of Gaussian noise that is added to the components
    after each M-step while the temperature is above the final one (ET10 §4.1), in units of the data.
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

    def begin(self, n_starts: int) -> Cooling:
        """Before the first iteration."""
        return Cooling(self.first_temperatures(n_starts), 0, np.zeros(n_starts, dtype=int))

    def first_temperatures(self, n_starts: int) -> np.ndarray:
        """Of each start."""
        return np.full(n_starts, float(self.start))

    @abstractmethod
    def advance(self, cooling: Cooling, change: np.ndarray) -> Cooling:
        """After an iteration in which the components moved by ``change`` (starts, H), MCA08 eq. 38."""

    def cooled(self, cooling: Cooling) -> np.ndarray:
        """Which starts have reached the final temperature, so that convergence may be tested: (starts,)."""
        return cooling.temperature <= self.final

    def finished(self, cooling: Cooling) -> np.ndarray:
        """Which starts the schedule itself declares converged: (starts,)."""
        return namespace(cooling.temperature).zeros(len(cooling.temperature), dtype=bool)

    @abstractmethod
    def progress(self, cooling: Cooling) -> np.ndarray:
        """How much of the schedule is done, from 0 to 1: (starts,). A data cut begins in its last third."""


class NoAnnealing(Annealing):
    """Temperature one throughout: plain EM."""

    start = final = 1.0
    component_noise = 0.0

    def advance(self, cooling: Cooling, change: np.ndarray) -> Cooling:
        """Nothing cools."""
        return replace(cooling, iteration=cooling.iteration + 1)

    def progress(self, cooling: Cooling) -> np.ndarray:
        """By the number of iterations in which plain EM finds its way."""
        return np.full(len(cooling.temperature), min(1.0, cooling.iteration / PLAIN_ITERATIONS))


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

    def first_temperatures(self, n_starts: int) -> np.ndarray:
        """The temperatures given, over and over."""
        return np.resize(np.asarray(self.start, dtype=float), n_starts)

    def advance(self, cooling: Cooling, change: np.ndarray) -> Cooling:
        """MCA08 eq. 37."""
        xp = namespace(cooling.temperature)
        rest = change.max(axis=1) < self.threshold
        done = cooling.iteration + 1
        quiet = xp.where(rest & self.cooled(cooling), cooling.quiet + 1, 0)
        start = self.first_temperatures(len(cooling.temperature))
        step = (start - self.final) / self.n_steps
        # Steps are counted, not subtracted, so that fifty of them end exactly at the final temperature.
        taken = xp.rint((start - cooling.temperature) / np.maximum(step, TINY))
        taken = taken + xp.where(rest & (done > self.hold), 1, 0)
        if self.within is not None:
            due = xp.floor(self.n_steps * (done - self.hold) / (self.within - self.hold))
            taken = xp.maximum(taken, due)
        temperature = xp.where(taken >= self.n_steps, self.final, start - taken * step)
        return Cooling(temperature, done, quiet)

    def finished(self, cooling: Cooling) -> np.ndarray:
        """At rest for long enough."""
        return cooling.quiet >= self.quiet

    def progress(self, cooling: Cooling) -> np.ndarray:
        """By temperature."""
        start = self.first_temperatures(len(cooling.temperature))
        span = start - self.final
        return np.where(span > 0, (start - cooling.temperature) / np.maximum(span, TINY), 1.0)


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

    def advance(self, cooling: Cooling, change: np.ndarray) -> Cooling:
        """By the clock alone."""
        done = cooling.iteration + 1
        xp = namespace(cooling.temperature)
        return Cooling(xp.full_like(cooling.temperature, self.temperature(done)), done, cooling.quiet)

    def cooled(self, cooling: Cooling) -> np.ndarray:
        """Not before the schedule is through: its last part is meant for settling."""
        xp = namespace(cooling.temperature)
        return xp.full(len(cooling.temperature), cooling.iteration >= self.n_iter)

    def progress(self, cooling: Cooling) -> np.ndarray:
        """By the clock."""
        return np.full(len(cooling.temperature), min(1.0, cooling.iteration / self.n_iter))
