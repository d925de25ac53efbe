"""The interfaces of annealing and of its schedules.

The temperature of EM starts high and falls, so that EM does not stop at the nearest local optimum.

An :class:`Annealing` is a part: hyper-parameters that a user sets. Its :meth:`Annealing.schedule` is what the EM step
works with: a record of numbers with pure methods, which are traced into the compiled step. Schedules of one class
share compiled programs, whatever their numbers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from numbers import Real
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from multicause.arrays import Array
from multicause.parts import Part

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
