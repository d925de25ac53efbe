"""Expectations over the states of a beam search, which differ between rows."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from multicause.arrays import Array, matmul, stored
from multicause.compatibility import Support
from multicause.expectations import Recognized
from multicause.generative import GenerativeModel
from multicause.posteriors.beams.beam_search import States, search_states
from multicause.posteriors.beams.spikes import RecognizedStrengths, SpikeInference, strengths_of
from multicause.records import Block, Parameters


class BeamStates(SpikeInference):
    """Expectations over the states that a beam search has found for each row."""

    def __init__(
        self,
        model: GenerativeModel,
        parameters: Parameters,
        block: Block,
        temperature: Array,
        kept: Sequence[int],
        observed: Array | None = None,
    ) -> None:
        super().__init__(model, parameters, block, temperature, observed)
        components, data = (
            model.noise.standardize(each, parameters.noise) for each in (parameters.components, self._data)
        )
        self._found = stored(search_states(components, data, strengths_of(model, parameters), kept, observed))
        empty = jnp.sum(jnp.log1p(-model.prior.activity(parameters.prior)))
        scores = [jnp.zeros((len(data), 1), data.dtype), *(states.score for states in self._found)]
        self._weigh(jnp.concatenate(scores, axis=1) + empty, self._log_base)

    @cached_property
    def _weighed(self) -> list[tuple[States, Array]]:
        """States of each size, with their probabilities."""
        ends = np.cumsum([1, *(states.score.shape[1] for states in self._found)])
        return [
            (states, self.probabilities[:, begin:end])
            for states, begin, end in zip(self._found, ends[:-1], ends[1:], strict=True)
        ]

    @cached_property
    def mean_causes(self) -> Array:  # type: ignore[override]
        """Posterior mean ⟨s∘z⟩ of the causes: (n, H)."""
        n, H = len(self.rows), len(self._parameters.components)
        flat = [(states.active, states.mean * weights[..., None]) for states, weights in self._weighed]
        joined = (jnp.concatenate([each.reshape(n, -1) for each in lot], axis=1) for lot in zip(*flat, strict=True))
        active, values = joined
        return jnp.zeros((n, H), values.dtype).at[jnp.arange(n)[:, None], active].add(values)

    @cached_property
    def total_active(self) -> Array:
        """Expected number of rows in which each cause is active, Σ_n w_n ⟨s⟩: (H,)."""
        total = jnp.zeros(len(self._parameters.components), jnp.float64)
        for states, weights in self._weighed:
            values = jnp.broadcast_to((weights * self.row_weights[:, None])[..., None], states.active.shape)
            total = total.at[states.active].add(values.astype(total.dtype))
        return total

    @cached_property
    def cause_pairs(self) -> Array:  # type: ignore[override]
        """Second moments Σ_n w_n ⟨(s∘z)(s∘z)ᵀ⟩ of the causes, in double precision: (H, H)."""
        H = len(self._parameters.components)
        total = jnp.zeros(H * H, jnp.float64)
        for states, weights in self._weighed:
            pairs = states.mean[..., :, None] * states.mean[..., None, :] + states.covariance
            values = (weights * self.row_weights[:, None])[..., None, None] * pairs
            places = states.active[..., :, None] * H + states.active[..., None, :]
            total = total.at[places].add(values.astype(total.dtype))
        return total.reshape(H, H)

    @cached_property
    def cause_means(self) -> Array:
        """Σ_n w_n ⟨(s∘z) w̄ᵀ⟩ over observed values: (H, D).

        If values are missing, each row has its own sum, of components without its missing values. It needs second
        moments of the few causes that are active in any of its states.
        """
        components, n = self._parameters.components, len(self.rows)
        if self.observed is None:
            return matmul(self.cause_pairs, self._components)
        causes = self._causes_of_rows
        n_causes = causes.shape[1]
        moments = jnp.zeros((n, n_causes**2), self.rows.dtype)
        for states, weights in self._weighed:
            places = jnp.argmax(states.active[..., None] == causes[:, None, None], axis=-1)
            pairs = states.mean[..., :, None] * states.mean[..., None, :] + states.covariance
            values = (weights * self.row_weights[:, None])[..., None, None] * pairs
            both = places[..., :, None] * n_causes + places[..., None, :]
            moments = moments.at[jnp.arange(n)[:, None], both.reshape(n, -1)].add(values.reshape(n, -1))
        own = components[causes] * self.observed[:, None]
        values = matmul(stored(moments).reshape(n, n_causes, n_causes), stored(own))
        return jnp.zeros(components.shape, jnp.float64).at[causes].add(stored(values).astype(jnp.float64))

    @property
    def _causes_of_rows(self) -> Array:
        """Causes that are active in any state of each row: (n, K). A cause may be listed several times."""
        # A cause of a state was the last one of a smaller state, which was kept, too.
        last = jnp.concatenate([states.active[..., -1] for states in self._found], axis=1)
        H = len(self._parameters.components)
        return last if last.shape[1] < H else jnp.broadcast_to(jnp.arange(H, dtype=last.dtype), (len(last), H))

    def recognize(self, top: int) -> Any:
        """Return the most probable of the states that were found, with strengths if causes have any."""
        n, H = len(self.rows), len(self._parameters.components)
        largest = self._found[-1].active.shape[-1]
        nobody = [jnp.full((n, 1, largest), H, jnp.int32)]
        active = jnp.concatenate(nobody + [_filled(states.active, largest, H) for states in self._found], axis=1)
        none = [jnp.zeros((n, 1, largest), self.rows.dtype)]
        mean = jnp.concatenate(none + [_filled(states.mean, largest, 0) for states in self._found], axis=1)
        probabilities, best = jax.lax.top_k(self.probabilities, top)
        active, mean = (jnp.take_along_axis(each, best[..., None], axis=1) for each in (active, mean))
        places = (jnp.arange(n)[:, None, None], jnp.arange(top)[:, None], active)
        states = jnp.zeros((n, top, H), jnp.int8).at[places].set(1, mode="drop")
        if self._model.prior.support is Support.BINARY:
            return Recognized(states, probabilities, self.log_evidence)
        strengths = jnp.zeros((n, top, H), mean.dtype).at[places].set(mean, mode="drop")
        return RecognizedStrengths(states, probabilities, self.log_evidence, strengths)


def _filled(values: Array, size: int, value: int) -> Array:
    """Return values (n, B, k) of states with k active causes, padded to the size of the largest states."""
    return jnp.pad(values, ((0, 0), (0, 0), (0, size - values.shape[-1])), constant_values=value)
