"""Inference over states of a few candidates of each row, for causes with a few levels that add up under Gaussian noise.

With t_lh = log p(s_h = φ_l alone, y) − log p(nothing, y) of every cause and level, the log joint of a state of several
causes is log p(nothing, y) + Σ_h t_{l_h h} − Σ_{h<h'} s_h s_h' G_hh', where G has the products of components.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from multicause.arrays import Array, add_by_index, indices_of_largest, matmul, sum_in_double
from multicause.expectations import Recognized
from multicause.generative import GenerativeModel
from multicause.posteriors.beams.spikes import SpikeInference
from multicause.records import Block, Parameters
from multicause.states.state_list import pairs_of, sparse_states


class Places(NamedTuple):
    """States with two and more active candidates, as constants."""

    values: np.ndarray  # (S', H') levels
    members: np.ndarray  # (S', L·H' + pairs) which candidate has which level, and products −s_i s_j of pairs


def places_of(n_candidates: int, max_active: int, strengths: tuple[float, ...]) -> Places:
    """Return the states of several candidates."""
    values = sparse_states(n_candidates, max_active, strengths).states()[1 + n_candidates * len(strengths) :]
    first, second = pairs_of(n_candidates)
    members = [values == level for level in strengths] + [-values[:, first] * values[:, second]]
    return Places(values, np.concatenate(members, axis=1).astype(float))


def scores_of_singles(
    model: GenerativeModel, parameters: Parameters, data: Array, strengths: tuple[float, ...]
) -> Array:
    """Return log p(s_h = φ_l alone, y) − log p(nothing, y) of every level and cause: (L, H, n)."""
    components = model.noise.standardize(parameters.components, parameters.noise)
    projections = matmul(components, model.noise.standardize(data, parameters.noise).T)
    squares = jnp.sum(components**2, axis=1)
    prior = model.prior.log_probability_of_levels(parameters.prior)
    return jnp.stack(
        [level * projections + (prior[level] - prior[0] - 0.5 * level**2 * squares)[:, None] for level in strengths]
    )


class LevelCandidates(SpikeInference):
    """Expectations under q_n(s) ∝ p(s, y_n)^β over single causes at all levels and states of several candidates."""

    def __init__(
        self,
        model: GenerativeModel,
        parameters: Parameters,
        block: Block,
        temperature: Array,
        *,
        numbers: tuple[int, int],
        strengths: tuple[float, ...],
        singletons: bool,
    ) -> None:
        super().__init__(model, parameters, block, temperature)
        self._strengths, self._places = strengths, places_of(*numbers, strengths)
        dtype, n_candidates = block.rows.dtype, numbers[0]
        singles = scores_of_singles(model, parameters, self._data, strengths)
        self._candidates = indices_of_largest(jnp.max(singles, axis=0), n_candidates)
        L, H, n = singles.shape
        mine = jnp.take_along_axis(singles, self._candidates[None], axis=1).reshape(L * n_candidates, n)
        components = model.noise.standardize(parameters.components, parameters.noise)
        first, second = pairs_of(n_candidates)
        places = self._candidates[first] * H + self._candidates[second]
        products = matmul(components, components.T).reshape(-1)[places]
        members = jnp.asarray(self._places.members, dtype)
        own = matmul(members, jnp.concatenate([mine, products]))
        if not singletons:
            chosen = jnp.any(self._candidates[:, None, :] == jnp.arange(H)[:, None], axis=0)
            singles = jnp.where(chosen, singles, -jnp.inf)
        empty = jnp.sum(model.prior.log_probability_of_levels(parameters.prior)[0])
        scores = jnp.concatenate([jnp.zeros((1, n), dtype), singles.reshape(L * H, n), own])
        self._weigh(scores.T + empty, self._log_base)
        q = self.probabilities.T
        of_own = matmul(members.T, q[1 + L * H :])
        counts = of_own[: L * n_candidates].reshape(L, n_candidates, n)
        #: p(s_h = φ_l | y): (L, H, n).
        self._levels = jnp.stack(
            [
                add_by_index(single, self._candidates, more)
                for single, more in zip(q[1 : 1 + L * H].reshape(L, H, n), counts, strict=True)
            ]
        )
        self._pairs = -of_own[L * n_candidates :]  # (pairs, n) ⟨s_i s_j⟩ of candidates

    @cached_property
    def mean_causes(self) -> Array:  # type: ignore[override]
        """Posterior mean ⟨s⟩ of the causes: (n, H)."""
        return sum(level * self._levels[k] for k, level in enumerate(self._strengths)).T  # type: ignore[union-attr]

    @property
    def mean_active(self) -> Array:
        """Probability that each cause is not zero: (n, H)."""
        return jnp.sum(self._levels, axis=0).T

    @cached_property
    def _totals(self) -> Array:
        """Σ_n w_n q_n(s_h = φ_l): (L, H)."""
        return sum_in_double(self._levels * self.row_weights, axis=2)

    @property
    def total_active(self) -> Array:
        """Expected number of rows in which each cause is not zero: (H,)."""
        return jnp.sum(self._totals, axis=0)

    def level_counts(self, levels: tuple[float, ...]) -> Array:
        """Return the expected number of rows with each level of each cause: (H, K)."""
        active, every = dict(zip(self._strengths, self._totals, strict=True)), sum_in_double(self.row_weights)
        return jnp.stack([active[level] if level else every - self.total_active for level in levels], axis=1)

    @cached_property
    def cause_pairs(self) -> Array:  # type: ignore[override]
        """Second moments Σ_n w_n ⟨s sᵀ⟩ of the causes: (H, H)."""
        H, (first, second) = len(self._parameters.components), pairs_of(len(self._candidates))
        places = self._candidates[first] * H + self._candidates[second]
        sums = (self._pairs * self.row_weights).astype(jnp.float64)
        both = jnp.zeros(H * H, sums.dtype).at[places].add(sums).reshape(H, H)
        squares = matmul(jnp.asarray(self._strengths, jnp.float64) ** 2, self._totals)
        return both + both.T + jnp.diag(squares)

    @property
    def cause_means(self) -> Array:
        """Products of causes and means, Σ_n w_n ⟨s w̄ᵀ⟩: (H, D)."""
        return matmul(self.cause_pairs, self._components)

    def recognize(self, top: int) -> Recognized:
        """Return the most probable states of each row, among single causes and states of candidates."""
        probabilities, best = jax.lax.top_k(self.probabilities, top)
        L, H, _ = self._levels.shape
        dtype = self.rows.dtype
        shared = np.concatenate([np.zeros((1, H)), *(level * np.eye(H) for level in self._strengths)])
        alone = jnp.asarray(shared, dtype)[jnp.minimum(best, L * H)]
        values = jnp.asarray(self._places.values, dtype)[jnp.maximum(best - 1 - L * H, 0)]
        slots = (self._candidates.T[:, :, None] == jnp.arange(H)).astype(dtype)
        states = jnp.where((best > L * H)[..., None], matmul(values, slots), alone)
        whole = all(level == round(level) for level in self._strengths)
        return Recognized(states.astype(jnp.int8) if whole else states, probabilities, self.log_evidence)
