"""The E-step over all data, with or without a cut of rows that no considered state explains (ET10 §2).

With a cut an iteration has two passes: the first weighs the states of every row and keeps the weights where the rows
are, the order statistic of the rows' evidence over all data gives a threshold, and the second pass sums over the rows
above it. Candidates, states and weights of a row are computed once, as long as they fit into the memory budget.
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
        noise=model.noise.statistics(inference, parameters.noise),
        posterior=model.posterior.statistics(inference),
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
def _free_energy(model: Any, block: Block, parameters: Parameters, temperature: Array) -> Array:
    """First pass of which nothing but the free energy of each row is kept: (starts, n)."""
    return _weigh(model, block, parameters, temperature)[1]


@jit_by_parts
def _expect_above(
    model: Any, block: Block, parameters: Parameters, temperature: Array, threshold: Array, weighed: Any = None
) -> Statistics:
    """Second pass, over the rows whose free energy reaches the threshold."""

    def one(parameters: Parameters, temperature: Array, threshold: Array, weighed: Any = None) -> Statistics:
        if weighed is None:
            weighed = model.posterior.weigh(model, parameters, block, temperature)
        inference = model.posterior.infer_from(model, parameters, block, temperature, weighed, threshold)
        return statistics_of(model, parameters, block, inference)

    of_starts = (parameters, temperature, threshold) + (() if weighed is None else (weighed,))
    return over_starts(one)(*of_starts)


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
    def memory(self) -> tuple[np.ndarray, ...]:
        """All that the next iteration needs; assign it to go on from there."""
        return self._final, self.share

    @memory.setter
    def memory(self, memory: tuple[np.ndarray, ...]) -> None:
        self._final, self.share = memory

    @property
    def cut(self) -> np.ndarray:
        """Which starts leave some rows out at present."""
        return self.share < 1

    def check(self, parameters: Parameters, blocks: Blocks) -> None:
        """Raise ValueError if activities that are not learned will leave no row."""
        if self._keep is not None and "activity" not in self._model.learn:
            self._check_rows(self._final_share(parameters), blocks)

    def log_mass(self, parameters: Parameters) -> np.ndarray:
        """log P(|s| ≤ γ), which normalises the prior of the rows that are learned from (ET10 eq. 17); 0 if all are."""
        if not self.cut.any():
            return np.zeros(len(self.share))
        return np.where(self.cut, np.asarray(log_mass(self._model, parameters), dtype=float), 0)

    def advance(self, progress: np.ndarray, parameters: Parameters) -> None:
        """From all rows at two thirds of the schedule to ``keep`` times P(|s| ≤ γ) at its end, which then stays."""
        if self._keep is None or (progress <= BEGIN).all():
            return
        final = np.where(np.isnan(self._final), self._final_share(parameters), self._final)
        self._final = np.where((progress >= 1) & np.isnan(self._final), final, self._final)
        way = np.clip((progress - BEGIN) / (1 - BEGIN), 0, 1)
        self.share = 1 - way * (1 - final)

    def complete(self, progress: np.ndarray) -> np.ndarray:
        """Which starts have reached their final share, so that their free energies can be compared."""
        return np.ones(len(progress), dtype=bool) if self._keep is None else progress >= 1

    def expect(self, engine: Engine, blocks: Blocks, parameters: Parameters, temperature: Array) -> Statistics:
        """E-step of all starts over all data."""
        if not self.cut.any():
            return engine.sum(partial(expect, self._model), blocks, parameters, temperature)
        self._check_rows(self.share, blocks)
        record = jax.eval_shape(partial(_weigh, self._model), next(iter(blocks)), parameters, temperature)
        n_bytes = len(list(blocks)) * sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(record))
        if engine.can_keep(n_bytes):
            weighed = engine.map(partial(_weigh, self._model), blocks, parameters, temperature)
            records, energies = zip(*weighed, strict=True)
        else:
            # Weights of all rows would take more memory than is allowed, so they are computed twice.
            records, energies = (
                (),
                tuple(engine.map(partial(_free_energy, self._model), blocks, parameters, temperature)),
            )
        threshold = jnp.asarray(engine.quantile(energies, blocks, self.share))
        return engine.sum(
            partial(_expect_above, self._model), blocks, parameters, temperature, threshold, aligned=records
        )

    def _final_share(self, parameters: Parameters) -> np.ndarray:
        assert self._keep is not None
        return self._keep * np.exp(np.asarray(log_mass(self._model, parameters), dtype=float))

    def _check_rows(self, share: np.ndarray, blocks: Blocks) -> None:
        if share.min() * blocks.n_weighted < 1:
            raise ValueError(
                f"The data cut would keep less than one of {blocks.n_weighted} rows: keep={self._keep} of those "
                f"that, by the activities, have at most {self._model.posterior.max_active} active causes. Raise "
                "max_active or keep, start with a lower activity, or use keep=None."
            )
