"""Beam search as a posterior: the states of a row grow by the causes that explain most of what is left of it."""

from __future__ import annotations

from functools import cached_property
from numbers import Integral
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from multicause.arrays import Array
from multicause.compatibility import Expectation, Likelihood, Link, Requirements, Rule, Spread, Support
from multicause.posteriors.base import Inference, Posterior, Recognized
from multicause.posteriors.beam_search import States, numbers_of_states, search_states
from multicause.posteriors.spikes import RecognizedStrengths, SpikeInference, strengths_of

if TYPE_CHECKING:
    from multicause.model import Block, Model, Parameters

# Arrays of (m, width, H) that are alive at once while states grow.
ARRAYS_PER_CAUSE = 6


class Beam(Posterior):
    """Grow states by one cause at a time and keep the best of each size, for each row.

    From the states with k active causes, those with k + 1 are reached by adding any one cause; the ``width`` states
    with the largest log p(s, y) are kept, and grow further. All states that were kept, and the empty one, are those of
    the row. Preselection compares causes with the whole row, one by one; here a cause is compared with what the
    others leave unexplained. The search is deterministic and keeps nothing between iterations. With a width and
    ``max_active`` that allow for all states, the posterior is exact.

    Parameters
    ----------
    max_active : int, default=5
        γ, the largest number of active causes of a state; at most all causes.
    width : int, default=8
        B, how many states of each size are kept.
    """

    requires = Requirements(
        supports=frozenset({Support.BINARY, Support.SPIKE_SLAB}),
        rules=frozenset({Rule.SUM}),
        links=frozenset({Link.MEAN}),
        likelihoods=frozenset({Likelihood.OF_MEANS}),
        spreads=frozenset({Spread.CONSTANT}),
        selectable=True,
    )
    offers = frozenset({Expectation.MOMENTS, Expectation.LIKELIHOOD, Expectation.RESIDUALS})

    max_active: int

    def __init__(self, max_active: int = 5, width: int = 8) -> None:
        self.max_active = max_active
        self.width = width

    def validate(self) -> None:
        """Raise ValueError unless both numbers are whole and positive."""
        for name in ("max_active", "width"):
            value = getattr(self, name)
            if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
                raise ValueError(f"{name} of Beam must be a whole number of at least 1; got {value!r}.")

    def check(self, n_components: int) -> None:
        """Accept any number of causes."""
        return

    def n_states(self, n_components: int) -> int:
        """Return the number of states of a row, the empty one included."""
        return 1 + sum(self._kept(n_components))

    def _kept(self, n_components: int) -> list[int]:
        return numbers_of_states(int(n_components), int(self.max_active), int(self.width))

    def log_mass(self, model: Model, parameters: Parameters) -> Array:
        """Return log P(|s| ≤ γ) of the prior."""
        n_components = len(parameters.components)
        return model.prior.log_mass(parameters.prior, min(int(self.max_active), n_components))

    def bytes_per_row(self, n_components: int, n_features: int, itemsize: int, linear: bool = False) -> int:
        """Return the memory for some numbers of each kept state and cause, and for covariances of states."""
        kept = self._kept(n_components)
        covariances = sum(n_states * size**2 for size, n_states in enumerate(kept, 1))
        per_state = ARRAYS_PER_CAUSE * n_components + 2 * n_features
        return itemsize * (max(kept) * per_state + 4 * covariances + 3 * n_features + 4 * n_components)

    def bytes_of_states(self, n_components: int, n_features: int, itemsize: int) -> int:
        """Return the memory for components, their Gram matrix, and second moments in double precision."""
        return itemsize * 6 * n_components * (n_components + n_features)

    def infer(self, model: Model, parameters: Parameters, block: Block, temperature: Array) -> Inference:
        """Search the states of all rows."""
        return BeamStates(model, parameters, block, temperature, self._kept(len(parameters.components)))


class BeamStates(SpikeInference):
    """Expectations over the states that a beam search has found for each row."""

    def __init__(self, model: Model, parameters: Parameters, block: Block, temperature: Array, kept: list[int]) -> None:
        super().__init__(model, parameters, block, temperature)
        noise, components = model.noise, parameters.components
        standardized, data = (noise.standardize(each, parameters.noise) for each in (components, block.rows))
        self._found = search_states(standardized, data, strengths_of(model, parameters), kept)
        empty = jnp.sum(jnp.log1p(-model.prior.activity(parameters.prior)))
        scores = [jnp.zeros((len(data), 1), data.dtype), *(states.score for states in self._found)]
        self._weigh(
            jnp.concatenate(scores, axis=1) + empty, noise.log_base(block.rows, block.summary, parameters.noise)
        )

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
        """⟨s∘z⟩: (n, H)."""
        n, H = len(self.rows), len(self._parameters.components)
        flat = [(states.active, states.mean * weights[..., None]) for states, weights in self._weighed]
        joined = (jnp.concatenate([each.reshape(n, -1) for each in lot], axis=1) for lot in zip(*flat, strict=True))
        active, values = joined
        return jnp.zeros((n, H), values.dtype).at[jnp.arange(n)[:, None], active].add(values)

    @cached_property
    def total_active(self) -> Array:
        """Σ_n w_n ⟨s⟩: (H,)."""
        total = jnp.zeros(len(self._parameters.components), jnp.float64)
        for states, weights in self._weighed:
            values = jnp.broadcast_to((weights * self.row_weights[:, None])[..., None], states.active.shape)
            total = total.at[states.active].add(values.astype(total.dtype))
        return total

    @cached_property
    def cause_pairs(self) -> Array:  # type: ignore[override]
        """Σ_n w_n ⟨(s∘z)(s∘z)ᵀ⟩, in double precision: (H, H)."""
        H = len(self._parameters.components)
        total = jnp.zeros(H * H, jnp.float64)
        for states, weights in self._weighed:
            pairs = states.mean[..., :, None] * states.mean[..., None, :] + states.covariance
            values = (weights * self.row_weights[:, None])[..., None, None] * pairs
            places = states.active[..., :, None] * H + states.active[..., None, :]
            total = total.at[places].add(values.astype(total.dtype))
        return total.reshape(H, H)

    def recognize(self, top: int) -> Any:
        """Return the most probable of the states that were found, with strengths where causes have any."""
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
    """Return values (n, B, k) of states with k active causes, filled up to the size of the largest states."""
    return jnp.pad(values, ((0, 0), (0, 0), (0, size - values.shape[-1])), constant_values=value)
