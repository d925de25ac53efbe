"""The E-step over all data, with or without a cut of rows that no considered state explains (ET10 §2).

With a cut an iteration has two passes: the first weighs the states of every row and keeps the weights where the rows
are, the order statistic of the rows' evidence over all data gives a threshold, and the second pass sums over the rows
above it. Candidates, states and weights of a row are computed once.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from multicause.arrays import Array, jit_by_parts, over_starts, sum_in_double
from multicause.engines.base import Blocks, Engine
from multicause.learning.recognition import log_evidence
from multicause.model import Block, Model, Parameters, Statistics
from multicause.posteriors.base import Inference

# Part of a schedule after which rows begin to be left out.
BEGIN = 2 / 3


def statistics_of(model: Model, parameters: Parameters, block: Block, inference: Inference) -> Statistics:
    """What the M-step needs from the rows of one block."""
    return Statistics(
        weight=sum_in_double(inference.row_weights),
        seen=sum_in_double(block.weights),
        bound=inference.total_bound,
        free_energy=inference.total_free_energy,
        magnitude=inference.magnitude,
        components=model.update.statistics(model, parameters, inference),
        prior=model.prior.statistics(inference),
        noise=model.noise.statistics(block.summary, inference, parameters.noise),
    )


def expect_one(model: Model, block: Block, parameters: Parameters, temperature: Array) -> Statistics:
    """E-step for one start and one block, in one pass."""
    inference = model.posterior.infer(model, parameters, block, temperature)
    return statistics_of(model, parameters, block, inference)


@jit_by_parts
def expect(model: Model, block: Block, parameters: Parameters, temperature: Array) -> Statistics:
    """E-step of all starts on one block."""
    return over_starts(partial(expect_one, model, block))(parameters, temperature)


@jit_by_parts
def _weigh(model: Any, block: Block, parameters: Parameters, temperature: Array) -> tuple[Any, Array]:
    """First pass: weights of states, and the free energy of each row (starts, n)."""

    def one(parameters: Parameters, temperature: Array) -> tuple[Any, Array]:
        weighed = model.posterior.weigh(model, parameters, block, temperature)
        return weighed, model.posterior.infer_from(model, parameters, block, temperature, weighed).free_energy

    return over_starts(one)(parameters, temperature)


@jit_by_parts
def _expect_from(
    model: Any, block: Block, parameters: Parameters, temperature: Array, threshold: Array, weighed: Any
) -> Statistics:
    """Second pass."""

    def one(parameters: Parameters, temperature: Array, threshold: Array, weighed: Any) -> Statistics:
        inference = model.posterior.infer_from(model, parameters, block, temperature, weighed, threshold)
        return statistics_of(model, parameters, block, inference)

    return over_starts(one)(parameters, temperature, threshold, weighed)


@jit_by_parts
def log_mass(model: Any, parameters: Parameters) -> Array:
    """log P(|s| ≤ γ) of each start."""
    return jax.vmap(lambda one: model.posterior.log_mass(model, one))(parameters)


def evidence_threshold(model: Model, engine: Engine, blocks: Blocks, parameters: Parameters) -> float:
    """Evidence that as many rows reach as the states considered should explain, at temperature one; −∞ if all are."""
    mass = model.posterior.log_mass(model, parameters)
    if mass is None:
        return -np.inf
    keep = model.posterior.keep
    share = (1.0 if keep is None else keep) * np.exp(float(mass))
    evidence = engine.map(lambda block: log_evidence(model, block, parameters)[None], blocks)
    return float(engine.quantile(evidence, blocks, np.array([min(share, 1.0)]))[0])


class DataCut:
    """Which share of the rows each start learns from; all arrays have shape (starts,)."""

    def __init__(self, model: Model, n_starts: int) -> None:
        self._model = model
        self._keep = model.posterior.keep
        self._final = np.full(n_starts, np.nan)  # shares that are settled, NaN before
        self.share = np.ones(n_starts)

    @property
    def cutting(self) -> bool:
        """Whether some rows are left out at present."""
        return bool((self.share < 1).any())

    @property
    def max_active(self) -> int | None:
        """Most active causes of the rows that are learned from, if others are left out."""
        return self._model.posterior.max_active if self.cutting else None

    def log_mass(self, parameters: Parameters) -> np.ndarray:
        """log P(|s| ≤ γ), which normalises the prior of the rows that are learned from (ET10 eq. 17)."""
        return np.asarray(log_mass(self._model, parameters), dtype=float)

    def advance(self, progress: np.ndarray, parameters: Parameters) -> None:
        """From all rows at two thirds of the schedule to ``keep`` times P(|s| ≤ γ) at its end, which then stays."""
        if self._keep is None or (progress <= BEGIN).all():
            return
        final = self._keep * np.exp(self.log_mass(parameters))
        final = np.where(np.isnan(self._final), final, self._final)
        self._final = np.where((progress >= 1) & np.isnan(self._final), final, self._final)
        way = np.clip((progress - BEGIN) / (1 - BEGIN), 0, 1)
        self.share = 1 - way * (1 - final)

    def complete(self, progress: np.ndarray) -> np.ndarray:
        """Which starts have reached their final share, so that their free energies can be compared."""
        return np.ones(len(progress), dtype=bool) if self._keep is None else progress >= 1

    def expect(self, engine: Engine, blocks: Blocks, parameters: Parameters, temperature: Array) -> Statistics:
        """E-step of all starts over all data."""
        if not self.cutting:
            return engine.sum(partial(expect, self._model), blocks, parameters, temperature)
        if self.share.min() * blocks.n_weighted < 1:
            raise ValueError(
                f"The data cut would keep less than one of {blocks.n_weighted} rows, because so few should have "
                f"at most {self.max_active} active causes. Raise max_active, lower activity, or use keep=None."
            )
        weighed = engine.map(partial(_weigh, self._model), blocks, parameters, temperature)
        threshold = engine.quantile([energy for _, energy in weighed], blocks, self.share)
        return engine.sum(
            partial(_expect_from, self._model),
            blocks,
            parameters,
            temperature,
            jnp.asarray(threshold),
            aligned=[record for record, _ in weighed],
        )
