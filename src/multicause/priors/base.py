"""The interface of a prior over hidden causes."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from multicause.arrays import Array
from multicause.parts import Part

if TYPE_CHECKING:
    from multicause.posteriors.base import Inference


class Prior(Part):
    """How causes s ∈ {0, 1}^H are drawn. ``parameters`` is the dictionary that :meth:`initialize` returns."""

    #: Whether the prior offers :meth:`log_probability_among` and :meth:`log_mass`, which preselection needs.
    selectable = False
    #: Whether exactly one cause is active in every state.
    one_cause = False
    #: Whether states with a single active cause exist and have a probability in closed form.
    has_singles = True

    @abstractmethod
    def initialize(self, n_components: int, activity: ArrayLike | None) -> dict[str, np.ndarray]:
        """Parameters before learning, from the user's ``activity`` or, if None, from a documented default."""

    @abstractmethod
    def log_probability(self, states: Array, parameters: dict[str, Array]) -> Array:
        """log p(s) of states (S, H): (S,)."""

    def log_probability_of_singles(self, parameters: dict[str, Array]) -> Array:
        """log p(s) of the empty state and of the H states with one active cause: (1 + H,)."""
        activity = self.activity(parameters)
        states = jnp.eye(len(activity) + 1, len(activity), k=-1, dtype=activity.dtype)
        return self.log_probability(states, parameters)

    def log_probability_among(self, candidates: Array, states: np.ndarray, parameters: dict[str, Array]) -> Array:
        """log p(s) of states (S, H') of candidates (H', n), all other causes being off: (S, n)."""
        raise NotImplementedError

    def log_mass(self, parameters: dict[str, Array], max_active: int) -> Array:
        """log P(|s| ≤ max_active): ()."""
        raise NotImplementedError

    @abstractmethod
    def activity(self, parameters: dict[str, Array]) -> Array:
        """How often each cause is active: (H,)."""

    @abstractmethod
    def sample(self, key: Array, parameters: dict[str, Array], n_samples: int) -> Array:
        """Causes drawn from the prior: (n_samples, H)."""

    @abstractmethod
    def statistics(self, inference: Inference) -> dict[str, Array]:
        """Sums over rows that :meth:`maximize` needs, among them ``"active"`` (H,), by which a cause is in use.

        It is Σ_n w_n ⟨s⟩, the number of rows that have the cause, or another number without units for real causes.
        """

    @abstractmethod
    def maximize(
        self, parameters: dict[str, Array], statistics: dict[str, Array], weight: Array, max_active: int | None = None
    ) -> dict[str, Array]:
        """Parameters that maximise the expected log prior, given the sums.

        With ``max_active``, that of the prior given that so many causes are active at most: rows with more were left
        out (ET10 algorithm 2).
        """

    @abstractmethod
    def copied(self, parameters: dict[str, Any], source: int, target: int) -> dict[str, Any]:
        """Parameters, as NumPy arrays, under which one cause is as active as another."""
