"""Trials that are EM alone: one start, a fixed schedule, and all data in one block."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from sklearn.utils import check_random_state

from multicause.arrays import key_from
from multicause.engines import Blocks
from multicause.learning import recognition
from multicause.learning.bulk import Trial, learn_trials
from multicause.learning.expectation_maximization import has_died, start_of
from multicause.learning.initialization import Outset, choose_annealing, first_moments
from multicause.model import Block, Model
from multicause.trials.base import BulkTrial, keep_end

if TYPE_CHECKING:
    from multicause.estimator import CausalEstimator


class EMTrial(BulkTrial):
    """A trial of :func:`multicause.learning.bulk.learn_trials`."""

    def __init__(self, estimator: CausalEstimator, dataset: np.ndarray) -> None:
        estimator._validate_params()
        _check_settings(estimator)
        self.estimator, self.annealing = estimator, choose_annealing(estimator.annealing)
        X = estimator._validate_rows(dataset, reset=True)
        self.model, random = estimator._wire(X), check_random_state(estimator.random_state)
        self.model.noise.check_data(X)
        if self.model.posterior.keep is not None:
            raise ValueError(f"fit_trials has no data cut; use keep=None instead of {self.model.posterior.keep!r}.")
        _check_memory(estimator, self.model, X)
        rows, weights = jnp.asarray(X), np.ones(len(X), X.dtype)
        position = jnp.arange(len(X), dtype=jnp.uint32)
        block = Block(rows, jnp.asarray(weights), recognition.summarize(self.model, rows), position)
        self.blocks = Blocks([block], len(X), len(X))
        moments = first_moments(estimator._engine(), self.blocks)
        start = estimator._starts(Outset(self.model, moments, X, weights, random, 1))
        own = (block, jax.random.key_data(key_from(random)))
        block, key = jax.tree.map(lambda leaf: np.asarray(leaf)[None], own)
        self.given = (block, start, key)

    def learn(self, given: Any) -> Trial:
        """EM of all trials."""
        blocks, starts, keys = given
        settings = (self.annealing, int(self.estimator.max_iter), self.estimator.tol > 0)
        return learn_trials(self.model, *settings, blocks, starts, jax.random.wrap_key_data(keys))

    def keep(self, found: Trial) -> None:
        """The only start."""
        end = start_of(found)
        self.estimator._keep(self.model, end.parameters)
        died = has_died(end.parameters, end.statistics, self.blocks)
        keep_end(self.estimator, end, self.annealing, self.blocks, died=died)


def _check_settings(estimator: CausalEstimator) -> None:
    if estimator.annealing == "auto" or estimator.repair or estimator._n_starts > 1:
        given = estimator.get_params(deep=False)
        told = ", ".join(f"{name}={given[name]!r}" for name in ("annealing", "repair", "n_init") if name in given)
        raise ValueError(
            "fit_trials runs one start of a fixed program: give annealing=None or a schedule instead of 'auto', "
            f"n_init=1, and no repair; got {told}."
        )


def _check_memory(estimator: CausalEstimator, model: Model, X: np.ndarray) -> None:
    per_row, fixed = estimator._memory(model, X, estimator.n_components)
    n_bytes = len(X) * per_row + fixed
    if not estimator._engine().can_keep(n_bytes):
        raise ValueError(
            f"A trial with {len(X)} rows needs {n_bytes:,} bytes of temporary memory, more than the budget, and "
            "fit_trials does not cut data into blocks. Use fit, which does, or raise the budget with "
            "engine=Local(memory_budget=...)."
        )
