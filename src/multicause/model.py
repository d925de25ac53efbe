"""Records used in learning: a model (its parts), a fitted model, and sufficient statistics.

A directed model is a product of freely chosen parts (see ARCHITECTURE.md)::

    prior × combination × noise  →  the joint p(s, y)
    posterior                    →  the states s that are considered for one y, and their probabilities q(s)
    update                       →  the M-step of the components, given the statistics
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import jax

from multicause.arrays import Array
from multicause.combinations.base import Combination
from multicause.generative import GenerativeModel
from multicause.noises.base import Noise
from multicause.posteriors.base import Posterior
from multicause.priors.base import Prior
from multicause.records import Parameters
from multicause.updates.base import Update


@dataclass(frozen=True)
class Model(GenerativeModel):
    """The parts of one model; hashable, so that compiled programs are shared between equal models."""

    prior: Prior
    combination: Combination
    noise: Noise
    posterior: Posterior
    update: Update
    learn: frozenset[str]
    missing: bool = False

    def __post_init__(self) -> None:
        # Every call of a compiled program looks up the model by its hash, whose computation takes longer than some
        # programs.
        parts = (self.prior, self.combination, self.noise, self.posterior, self.update, self.learn, self.missing)
        object.__setattr__(self, "_hash", hash(parts))

    def __hash__(self) -> int:
        return self._hash  # type: ignore[attr-defined]

    def __reduce__(self) -> Any:
        # Hashes of classes and strings differ between processes, so that of a pickled model must be recomputed.
        return Model, (
            self.prior,
            self.combination,
            self.noise,
            self.posterior,
            self.update,
            self.learn,
            self.missing,
        )


class FittedModel(NamedTuple):
    """Parts and parameters of a fitted causal model."""

    parts: Model
    recognizer: Model  # parts with which causes of rows are inferred, usually the same
    parameters: Parameters


@lru_cache(maxsize=128)
def interned(model: Model) -> Model:
    """Return the first of all models equal to this one, so that compiled programs find it by identity."""
    return model


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Statistics:
    """Sufficient statistics for the M-step; those of rows, blocks, devices or machines are added by ``+``."""

    weight: Array  # () Σ_n w_n of the rows that learning uses
    seen: Array  # () Σ_n w_n of all rows
    bound: Array  # () Σ_n w_n F_n of all rows, in double precision
    free_energy: Array  # () Σ_n w_n (⟨log p(s, y_n)⟩ + T H(q_n)), objective of EM at temperature T; at T = 1, the bound
    magnitude: Array  # () Σ_n w_n |b(y_n)|, the size of the terms that cancel in the bound
    components: dict[str, Array]
    prior: dict[str, Array]
    noise: dict[str, Array]
    posterior: dict[str, Array]

    def __add__(self, other: Statistics) -> Statistics:
        return jax.tree.map(lambda a, b: a + b, self, other)

    def scaled(self, factor: Any) -> Statistics:
        """Return all sums multiplied by a factor, for the running averages of online learning."""
        return jax.tree.map(lambda a: (a * factor).astype(a.dtype), self)
