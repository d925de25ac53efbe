"""The interface of a prior over hidden causes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from multicause.arrays import Array
from multicause.compatibility import Support
from multicause.expectations import Inference
from multicause.parts import Part


class Prior(Part):
    """A distribution of the causes s. ``parameters`` is the dictionary that :meth:`initialize` returns."""

    #: Set of values that causes can have.
    support = Support.BINARY
    #: Values of active causes.
    strengths: tuple[float, ...] = (1,)
    #: Whether the prior offers ``log_probability_among`` (or ``_of_levels``) and ``log_mass``, as preselection needs.
    selectable = False
    #: Whether causes are independent, so that log p(s) is a sum over causes.
    independent = False
    #: Whether the prior offers ``copied``, which repair needs.
    repairable = False
    #: log p(s) of states (S, H), given parameters: (S,). Only causes that have causes themselves do without it.
    log_probability: Callable[[Array, dict[str, Array]], Array]
    #: log p(s_h = φ) of all causes (H,) by level φ, given parameters; only of causes with a few levels.
    log_probability_of_levels: Callable[[dict[str, Array]], dict[float, Array]]
    #: log p(s) of states (S, H') of candidates (H', n), with all other causes inactive, given parameters: (S, n).
    log_probability_among: Callable[[Array, np.ndarray, dict[str, Array]], Array]
    #: log P(|s| ≤ max_active), given parameters and ``max_active``: ().
    log_mass: Callable[[dict[str, Array], int], Array]
    #: Parameters, as NumPy arrays, in which the second given cause has the activity of the first.
    copied: Callable[[dict[str, Any], int, int], dict[str, Any]]

    def optional_methods(self) -> tuple[str, ...]:
        """Return the names of methods that this prior must have, given its support and other declarations."""
        density = () if self.support is Support.LAYERED else ("log_probability",)
        by_level = self.support is Support.LEVELS
        among = "log_probability_of_levels" if by_level else "log_probability_among"
        candidates = (among, "log_mass") if self.selectable else ()
        return density + candidates + (("copied",) if self.repairable else ())

    @property
    def is_binary(self) -> bool:
        """Whether causes are independently on or off, and nothing else."""
        return self.support is Support.BINARY

    @property
    def is_zero_or_one(self) -> bool:
        """Whether causes can only be zero or one, so that means have the bounds of the components."""
        return self.support in (Support.BINARY, Support.ONE_HOT, Support.LAYERED)

    @property
    def has_states(self) -> bool:
        """Whether causes are on or off or have levels, so that a posterior consists of states with probabilities."""
        return self.support not in (Support.REAL, Support.GAUSSIAN)

    @property
    def has_strengths(self) -> bool:
        """Whether active causes have a strength of any size."""
        return self.support in (Support.GAUSSIAN, Support.REAL, Support.NORMAL_SLABS)

    @property
    def has_singles(self) -> bool:
        """Whether states with a single active cause exist and have a probability in closed form."""
        return self.support in (Support.BINARY, Support.ONE_HOT, Support.LEVELS)

    @abstractmethod
    def initialize(self, n_components: int, activity: ArrayLike | None) -> dict[str, np.ndarray]:
        """Return initial parameters, from the user's ``activity`` or, if None, from a documented default."""

    def log_probability_of_singles(self, parameters: dict[str, Array]) -> Array:
        """Return log p(s) of the empty state and of the H states with one active cause: (1 + H,)."""
        activity = self.activity(parameters)
        states = jnp.eye(len(activity) + 1, len(activity), k=-1, dtype=activity.dtype)
        return self.log_probability(states, parameters)

    @abstractmethod
    def activity(self, parameters: dict[str, Array]) -> Array:
        """Return the probability that each cause is active: (H,)."""

    @abstractmethod
    def sample(self, key: Array, parameters: dict[str, Array], n_samples: int) -> Array:
        """Draw causes from the prior: (n_samples, H)."""

    @abstractmethod
    def statistics(self, inference: Inference) -> dict[str, Array]:
        """Return the sums over rows that :meth:`maximize` needs, among them ``"active"`` (H,), the use of each cause.

        It is Σ_n w_n ⟨s⟩, the expected number of rows with the cause, or another dimensionless number for real-valued
        causes.
        """

    @abstractmethod
    def maximize(
        self, parameters: dict[str, Array], statistics: dict[str, Array], weight: Array, max_active: int | None = None
    ) -> dict[str, Array]:
        """Return parameters that maximize the expected log prior, given the statistics.

        With ``max_active``, the prior is conditioned on at most so many active causes, because rows with more were
        excluded (ET10 algorithm 2).
        """

    def silenced(self, parameters: dict[str, Any], causes: np.ndarray) -> dict[str, Any] | None:
        """Return parameters, as NumPy arrays, with which the given causes (H,) hardly ever occur.

        By default None: the prior has no such parameters, so that no cause can be left out.
        """
        return None

    def fitted(self, parameters: dict[str, Any]) -> dict[str, np.ndarray]:
        """Return further attributes of a fitted model, apart from ``activity_``."""
        return {}

    def rescaled(self, components: Array, parameters: dict[str, Array]) -> tuple[Array, dict[str, Array]]:
        """Return components and parameters of the same model, normalized to the scale that this prior uses.

        It is called after an M-step that has learned both. By default nothing changes.
        """
        return components, parameters
