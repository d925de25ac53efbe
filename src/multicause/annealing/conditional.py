"""Cooling that waits until the components have stopped moving (MCA08)."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from multicause.annealing.base import TINY, Annealing, Cooling, Schedule
from multicause.arrays import Array


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class ConditionalSchedule(Schedule):
    """Schedule that cools by one step whenever all components have stopped moving: MCA08 appendix E.2."""

    start: Any
    final: Any
    n_steps: Any
    threshold: Any
    hold: Any
    quiet: Any
    within: Any  # () iterations, infinite if there is no limit
    component_noise: Any = None

    def advance(self, cooling: Cooling, change: Array) -> Cooling:
        """Cool by one step if all components have stopped moving (MCA08 eq. 37)."""
        rest = change.max(axis=1) < self.threshold
        done = cooling.iteration + 1
        quiet = jnp.where(rest & self.cooled(cooling), cooling.quiet + 1, 0)
        step = (self.start - self.final) / self.n_steps
        # Steps are counted instead of subtracted, so that fifty of them end exactly at the final temperature.
        taken = jnp.rint((self.start - cooling.temperature) / jnp.maximum(step, TINY))
        taken = taken + jnp.where(rest & (done > self.hold), 1, 0)
        taken = jnp.maximum(taken, jnp.floor(self.n_steps * (done - self.hold) / (self.within - self.hold)))
        temperature = jnp.where(taken >= self.n_steps, self.final, self.start - taken * step)
        return Cooling(temperature, done, quiet)

    def cooled(self, cooling: Cooling) -> Array:
        """Return which starts have the final temperature."""
        return cooling.temperature <= self.final

    def finished(self, cooling: Cooling) -> Array:
        """Return which starts have not moved for long enough at the final temperature."""
        return cooling.quiet >= self.quiet

    def progress(self, cooling: Cooling) -> Array:
        """Return the fraction of the cooling steps taken."""
        span = self.start - self.final
        return jnp.where(span > 0, (self.start - cooling.temperature) / jnp.maximum(span, TINY), 1.0)


class ConditionalCooling(Annealing):
    """Annealing that cools by one step whenever all components have stopped moving: MCA08 appendix E.2.

    Parameters
    ----------
    start : float or tuple of float
        Initial temperature T₁, below the critical one, above which all components become equal. The paper uses
        0.4·D + 1 for its truncated posterior on bars of value 10; the exact posterior needs less, 8 for D = 25. Several
        starts use the temperatures of a tuple in turn.
    final : float, default=1.0
        Final temperature; the paper uses 1.5.
    n_steps : int, default=50
        Number of equal steps between them.
    threshold : float, default=2.5e-3
        θ of eq. 37: components have stopped moving when each ΔW_h = ‖W_h − W_h^old‖ / Σ_d W_hd^old is below it.
    hold : int, default=10
        Iterations at the initial temperature before any cooling.
    quiet : int, default=20
        Learning ends after this many successive iterations without movement at the final temperature.
    within : int, optional
        Number of iterations after which the final temperature is reached even if components still move; by default
        there is no limit.
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
        """Raise ValueError if a setting is invalid."""
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
        """Return the schedule for ``n_starts`` starts."""
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
