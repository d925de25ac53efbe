"""The records that flow through learning: a model (its parts), its parameters, and what EM needs from data.

A directed model is a product of freely chosen parts (see ARCHITECTURE.md)::

    prior × combination × noise  →  the joint p(s, y)
    posterior                    →  which states s are considered for one y, and their weights q(s)
    update                       →  how the components move, given the statistics
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np

from multicause.arrays import Array

if TYPE_CHECKING:
    from multicause.combinations.base import Combination
    from multicause.learning.updates.base import Update
    from multicause.noises.base import Noise
    from multicause.posteriors.base import Posterior
    from multicause.priors.base import Prior


@dataclass(frozen=True)
class Model:
    """The parts of one model; hashable, so that compiled programs are shared between equal models."""

    prior: Prior
    combination: Combination
    noise: Noise
    posterior: Posterior
    update: Update
    learn: frozenset[str]
    #: Whether rows may hold NaN for values that were not observed; programs of complete rows know no masks.
    missing: bool = False

    def __post_init__(self) -> None:
        # Every call of a compiled program looks the model up by its hash, which takes longer than some programs.
        parts = (self.prior, self.combination, self.noise, self.posterior, self.update, self.learn, self.missing)
        object.__setattr__(self, "_hash", hash(parts))

    @property
    def linear(self) -> bool:
        """Whether states need no means: ‖y − Σ_h s_h W_h‖² follows from projections on single causes and pairs.

        Where values are missing, these projections would differ from row to row.
        """
        return self.sums_squares and not self.missing

    @property
    def sums_squares(self) -> bool:
        """Whether causes add up under noise that does not depend on the mean."""
        return self.combination.linear and self.noise.linear

    def __hash__(self) -> int:
        return self._hash  # type: ignore[attr-defined]

    def __reduce__(self) -> Any:
        # Hashes of classes and texts differ between processes, so that of a pickled model must be computed anew.
        return Model, (
            self.prior,
            self.combination,
            self.noise,
            self.posterior,
            self.update,
            self.learn,
            self.missing,
        )


@lru_cache(maxsize=128)
def interned(model: Model) -> Model:
    """The first of all models equal to this one: compiled programs find it by identity, without comparing parts."""
    return model


class Parameters(NamedTuple):
    """What a model has learned: arrays only. ``prior``, ``noise``, ``posterior`` belong to the parts of that name."""

    components: Array  # (H, D)
    prior: dict[str, Array]
    noise: dict[str, Array]
    posterior: dict[str, Array] = {}  # α of MCA₃, weights of a recognition network; empty for most posteriors


class Block(NamedTuple):
    """Some rows of the data. Rows that only fill the block up have weight zero."""

    rows: Array  # (n, D), NaN where a value was not observed
    weights: Array  # (n,)
    summary: Array  # (n,) what the noise needs to know of each row in every iteration, computed once


class Moments(NamedTuple):
    """First facts about the data, in double precision, from which starting values are drawn."""

    mean: np.ndarray  # (D,)
    variance: float  # over rows and dimensions together
    spread: float  # mean over dimensions of the variance over rows, which an offset of a dimension does not change
    epsilon: float  # relative rounding of the data's dtype


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Statistics:
    """All that the M-step needs from data; sums over rows, blocks, devices or machines by ``+``."""

    weight: Array  # () Σ_n w_n of the rows that are learned from
    seen: Array  # () Σ_n w_n of all rows
    bound: Array  # () Σ_n w_n F_n of all rows, in double precision
    free_energy: Array  # () Σ_n w_n (⟨log p(s, y_n)⟩ + T H(q_n)), what EM at temperature T raises; at one, the bound
    magnitude: Array  # () Σ_n w_n |b(y_n)|, the size of the terms that cancel in the bound
    components: dict[str, Array]
    prior: dict[str, Array]
    noise: dict[str, Array]
    posterior: dict[str, Array]

    def __add__(self, other: Statistics) -> Statistics:
        return jax.tree.map(lambda a, b: a + b, self, other)

    def scaled(self, factor: Any) -> Statistics:
        """All sums multiplied by one factor, as online learning needs for its running averages."""
        return jax.tree.map(lambda a: (a * factor).astype(a.dtype), self)
