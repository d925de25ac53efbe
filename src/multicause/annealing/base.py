"""Interfaces of annealing and of its schedules.

The temperature of EM starts high and falls, so that EM does not stop at the nearest local optimum.

An :class:`Annealing` is a part: hyper-parameters that a user sets. Its :meth:`Annealing.schedule` is used by the EM
step: a record of numbers with pure methods, which are traced into the compiled step. Schedules of one class share
compiled programs, whatever their numbers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from numbers import Real
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from multicause.arrays import Array
from multicause.parts import Part

# Replaces a cooling time of zero, to avoid a division by zero.
TINY = 1e-12


class Cooling(NamedTuple):
    """State of the cooling of all starts."""

    temperature: Any  # (starts,) current temperatures
    iteration: Any  # () number of iterations so far
    quiet: Any  # (starts,) successive iterations at the final temperature in which no component moved much


class Schedule(ABC):
    """Base class of schedules as used by the EM step: trees of arrays with pure methods; starts cool independently."""

    start: Any  # (starts,) initial temperatures
    final: Any  # final temperature, () or (starts,)
    component_noise: Any  # standard deviation of noise on the components while cooling, or None

    def begin(self) -> Cooling:
        """Return the state before the first iteration."""
        start = np.asarray(self.start, dtype=float)
        return Cooling(start, np.zeros((), int), np.zeros(len(start), int))

    @abstractmethod
    def advance(self, cooling: Cooling, change: Array) -> Cooling:
        """Return the state after an iteration in which components moved by ``change`` (starts, H), MCA08 eq. 38."""

    @abstractmethod
    def cooled(self, cooling: Cooling) -> Array:
        """Return which starts have reached the final temperature, so that convergence may be tested: (starts,)."""

    def finished(self, cooling: Cooling) -> Array:
        """Return which starts the schedule itself declares converged: (starts,)."""
        return jnp.zeros(cooling.temperature.shape, dtype=bool)

    @abstractmethod
    def progress(self, cooling: Cooling) -> Array:
        """Return the completed fraction of the schedule, 0 to 1: (starts,). A data cut begins in its last third."""


class Annealing(Part):
    """Base class of annealing: hyper-parameters of a schedule.

    ``component_noise`` is the standard deviation of Gaussian noise that is added to the components after each M-step
    while the temperature is above the final one (ET10 §4.1), in units of the data.
    """

    #: Whether ``start`` may be a tuple of temperatures, which several starts use in turn.
    several = False
    start: float
    final: float
    component_noise: float

    def validate(self) -> None:
        """Raise ValueError if a setting is invalid."""
        several = self.several and isinstance(self.start, tuple)
        starts: tuple[Any, ...] = self.start if several else (self.start,)  # type: ignore[assignment]
        numbers = len(starts) > 0 and all(isinstance(number, Real) for number in (*starts, self.final))
        if not (numbers and self.final >= 1 and all(self.final <= start < np.inf for start in starts)):
            kind = "Give several start temperatures as a tuple." if self.several else "Each must be one number."
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
        """Return the schedule for ``n_starts`` starts."""

    def _first_temperatures(self, n_starts: int) -> np.ndarray:
        """Return the initial temperature of each start, repeating those given."""
        return np.resize(np.asarray(self.start, dtype=float), n_starts)

    def _noise(self) -> np.float64 | None:
        """Return the noise of the components, or None for none."""
        return np.float64(self.component_noise) if self.component_noise > 0 else None
