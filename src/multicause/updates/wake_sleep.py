"""Settings of wake–sleep learning of a Helmholtz machine."""

from typing import NamedTuple

import numpy as np

from multicause.arrays import Array
from multicause.compatibility import Capability, Expectation, Requirements
from multicause.expectations import Inference
from multicause.generative import GenerativeModel
from multicause.records import Parameters
from multicause.updates.base import Update


class WakeSleepSettings(NamedTuple):
    """Hashable settings of wake–sleep learning, on which compiled programs depend."""

    n_particles: int  # number of states of each row drawn from the recognition network
    nonnegative: bool  # whether generative weights are non-negative
    missing: bool = False  # whether rows may contain NaN for missing values


class WakeSleep(Update):
    """Delta rules of the generative and the recognition network (:mod:`multicause.solvers.wake_sleep`).

    Parameters
    ----------
    rate : float, default=0.2
        Learning rate ε.
    n_particles : int, default=10
        Number of states of each row drawn from the recognition network. One is plain wake–sleep, as in TN10; with
        more, states are weighted by how well they explain the row, and recognition is learned from data too.
    nonnegative : bool, default=False
        Whether causes can only raise the probability of a one: parts then cannot be explained by differences of other
        parts.
    """

    requires = Requirements(
        expectations=frozenset({Expectation.NETWORK}),
        unbounded=True,
        capabilities=frozenset({Capability.WAKE_SLEEP}),
    )

    def __init__(self, *, rate: float = 0.2, n_particles: int = 10, nonnegative: bool = False) -> None:
        self.rate = rate
        self.n_particles = n_particles
        self.nonnegative = nonnegative

    def validate(self) -> None:
        """Raise ValueError unless the rate is positive and there is at least one particle."""
        if not (np.isfinite(self.rate) and self.rate > 0) or self.n_particles < 1:
            raise ValueError(
                f"WakeSleep needs a positive rate and at least one particle; got rate={self.rate!r} and "
                f"n_particles={self.n_particles!r}."
            )

    @property
    def program_settings(self) -> WakeSleepSettings:
        """The settings on which compiled programs depend."""
        return WakeSleepSettings(int(self.n_particles), bool(self.nonnegative))

    def statistics(self, model: GenerativeModel, parameters: Parameters, inference: Inference) -> dict[str, Array]:
        """Return no statistics, because parameters are updated after every batch."""
        return {}

    def maximize(self, model: GenerativeModel, parameters: Parameters, statistics: dict[str, Array]) -> Array:
        """Return the components unchanged, because they are updated during the pass over the data."""
        return parameters.components
