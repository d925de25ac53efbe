"""Wake and sleep as a part: which delta rules a Helmholtz machine learns by."""

from typing import NamedTuple

import numpy as np

from multicause.arrays import Array
from multicause.compatibility import Expectation, Requirements
from multicause.model import Model, Parameters
from multicause.posteriors.base import Inference
from multicause.updates.base import Update


class WakeSleepSettings(NamedTuple):
    """How a machine learns; hashable."""

    n_particles: int  # recognised states of each row
    nonnegative: bool  # whether causes may only switch data on
    missing: bool = False  # whether rows may hold NaN for values that were not observed


class WakeSleep(Update):
    """Delta rules of both networks, batch by batch (:mod:`multicause.solvers.wake_sleep`).

    Parameters
    ----------
    rate : float, default=0.2
        ε, the length of a step.
    n_particles : int, default=10
        Recognised states of each row. One is plain wake–sleep, as in TN10; with more, states are weighted by how well
        they explain the row, and recognition learns from data too.
    nonnegative : bool, default=False
        Whether causes may only switch data on, never off: parts then cannot be explained by differences of other parts.
    """

    requires = Requirements(expectations=frozenset({Expectation.NETWORK}), unbounded=True, estimator="HelmholtzMachine")

    def __init__(self, *, rate: float = 0.2, n_particles: int = 10, nonnegative: bool = False) -> None:
        self.rate = rate
        self.n_particles = n_particles
        self.nonnegative = nonnegative

    def validate(self) -> None:
        """A step forward, and at least one state."""
        if not (np.isfinite(self.rate) and self.rate > 0) or self.n_particles < 1:
            raise ValueError(
                f"WakeSleep needs a positive rate and at least one particle; got rate={self.rate!r} and "
                f"n_particles={self.n_particles!r}."
            )

    @property
    def recipe(self) -> WakeSleepSettings:
        """What compiled programs depend on."""
        return WakeSleepSettings(int(self.n_particles), bool(self.nonnegative))

    def statistics(self, model: Model, parameters: Parameters, inference: Inference) -> dict[str, Array]:
        """None: batches are learned from at once."""
        return {}

    def maximize(self, model: Model, parameters: Parameters, statistics: dict[str, Array]) -> Array:
        """Nothing is left to do after a pass over the data."""
        return parameters.components
