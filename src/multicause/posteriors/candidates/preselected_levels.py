"""Preselection for causes with a few levels: candidates of each row, and their combinations at all levels."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from multicause.arrays import Array, indices_of_largest, matmul, observed_data, relative
from multicause.compatibility import Expectation, Support
from multicause.expectations import Inference
from multicause.generative import GenerativeModel
from multicause.posteriors.base import EXPECTATIONS_OF_STATES, OF_STATES, Posterior
from multicause.posteriors.candidates.candidate_levels import LevelCandidates
from multicause.posteriors.expectations.observed import mask_of
from multicause.posteriors.expectations.row_states import RowStates, bytes_of_row, log_prior_of
from multicause.records import Block, Parameters
from multicause.states.state_list import sparse_states

# Number of arrays (S, n) that are in memory at once.
ARRAYS_PER_STATE = 8


class PreselectedLevels(Posterior):
    """Posterior over states of the candidates of each row, at all levels; ``bind`` of ``Preselected`` returns it.

    The candidates of a row are the causes whose best single state, at any level, has the highest log p(s, y).

    Parameters
    ----------
    candidates, max_active : int
        H′ and γ, as for :class:`multicause.posteriors.Preselected`.
    strengths : tuple of float
        Levels other than zero.
    singletons : bool, default=True
        Whether to consider all states with one active cause, whether it is a candidate or not.
    """

    requires = OF_STATES.also(supports=frozenset({Support.LEVELS}), selectable=True)
    offers = EXPECTATIONS_OF_STATES | {Expectation.LEVELS}
    max_active: int

    def __init__(
        self, candidates: int, max_active: int, *, strengths: tuple[float, ...], singletons: bool = True
    ) -> None:
        self.candidates = candidates
        self.max_active = max_active
        self.strengths = strengths
        self.singletons = singletons

    @property
    def numbers(self) -> tuple[int, int]:
        """Number H′ of candidates of a row, and number γ of those that may be active."""
        return self.candidates, self.max_active

    def check(self, n_components: int) -> None:
        """Accept all numbers, which were checked before."""

    def shares_states(self, n_components: int) -> bool:
        """Return whether all causes are candidates of every row."""
        return self.candidates >= n_components

    def log_mass(self, model: GenerativeModel, parameters: Parameters) -> Array:
        """Return the log prior probability of all states with at most γ active causes."""
        return model.prior.log_mass(parameters.prior, self.max_active)

    def bytes_of_states(self, n_components: int, n_features: int, itemsize: int) -> int:
        """Return the memory of a few copies of the components."""
        return itemsize * 8 * n_components * (n_features + n_components)

    def with_fewer_states(self, candidates: int, max_active: int) -> PreselectedLevels:
        """Return this posterior with fewer candidates and active causes."""
        numbers = min(candidates, self.numbers[0]), min(max_active, self.numbers[1])
        return PreselectedLevels(*numbers, strengths=self.strengths, singletons=self.singletons)

    def n_states(self, n_components: int) -> int:
        """Return the number of states: empty, single causes (all or candidates), and those of several candidates."""
        candidates, _ = self.numbers
        n_sparse = sparse_states(*self.numbers, self.strengths).n_states
        return n_sparse + len(self.strengths) * (int(n_components) - candidates if self.singletons else 0)

    def bytes_per_row(self, n_components: int, n_features: int, itemsize: int, linear: bool = False) -> int:
        """Return the memory of a row: a few numbers for each state; with missing values, a mean for each."""
        n_states = self.n_states(n_components)
        if not linear:
            return bytes_of_row(n_states, n_components, n_features, itemsize)
        n_levels = len(self.strengths)
        return itemsize * (ARRAYS_PER_STATE * n_states + 6 * n_levels * n_components + 4 * n_features)

    def infer(self, model: GenerativeModel, parameters: Parameters, block: Block, temperature: Array) -> Inference:
        """Select candidates, and return expectations over their states."""
        if not model.missing:
            settings: dict[str, Any] = {"strengths": self.strengths, "singletons": self.singletons}
            return LevelCandidates(model, parameters, block, temperature, numbers=self.numbers, **settings)
        return RowStates(model, parameters, block, temperature, self._states(model, parameters, block.rows))

    def _states(self, model: GenerativeModel, parameters: Parameters, rows: Array) -> Array:
        """Return the states of rows with missing values, as arrays: (n, S, H)."""
        H, dtype = len(parameters.components), rows.dtype
        n, (n_candidates, _) = len(rows), self.numbers
        singles = np.concatenate([level * np.eye(H) for level in self.strengths])
        scores = self._scores_of_singles(model, parameters, rows, jnp.asarray(singles, dtype))
        candidates = indices_of_largest(jnp.max(scores.reshape(len(self.strengths), H, n), axis=0), n_candidates)
        own = sparse_states(*self.numbers, self.strengths).states()
        if self.singletons:
            own = own[1 + n_candidates * len(self.strengths) :]
        places = (candidates.T[:, :, None] == jnp.arange(H)).astype(dtype)
        states = matmul(jnp.asarray(own, dtype), places)
        if not self.singletons:
            return states
        shared = jnp.asarray(np.concatenate([np.zeros((1, H)), singles]), dtype)
        return jnp.concatenate([jnp.broadcast_to(shared, (n, *shared.shape)), states], axis=1)

    @staticmethod
    def _scores_of_singles(model: GenerativeModel, parameters: Parameters, rows: Array, singles: Array) -> Array:
        """Return log p(s, y) of states with one active cause, up to a constant of each row: (states, n)."""
        noise, observed = model.noise, mask_of(model, rows)
        origin = noise.origin(parameters.noise)
        means = relative(model.combination.mean(parameters.components, singles), origin)
        data = observed_data(rows, origin, observed)
        scores = noise.score_singles(means, parameters.noise, data, observed)
        return scores + log_prior_of(model, parameters, singles[None])[0][:, None]
