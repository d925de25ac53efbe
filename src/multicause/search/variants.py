"""Variants of a fit that may have a higher bound: causes are copied, or replaced by residuals.

The usual local optimum of causal models has one cause twice (or a cause for rare coincidences) and another that
represents a mixture of two (MCA08 fig. 7).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
import numpy as np

from multicause.em.results import FitResult, stack_starts
from multicause.em.usage import dead_causes
from multicause.engines.base import Data
from multicause.inference import active_causes
from multicause.model import Model
from multicause.records import Block, Parameters
from multicause.search.revival import revive, worst_rows

# Largest number of variants in which causes are copied or come back.
MOST_VARIANTS = 24
# Number of variants in which dead causes come back, each with other rows.
REVIVALS = 3
# Smallest probability left to the other states: rounding leaves none where a cause is certain.
LEAST_REMAINING = 1e-12
# Standard deviation of the random factors that turn one cause into two different ones.
PERTURBATION = 0.5
# Amount by which all weights are raised in one variant, relative to their mean. A weight that has reached zero makes
# every state without a second cause impossible, and so never gets the credit that would raise it again.
LIFT = 0.2


def falls_without(model: Model, data: Data, parameters: Parameters) -> np.ndarray:
    """Return by how much the bound of all data falls without each cause (H,).

    Without cause h, the states in which it is active are missing, whose probability is q_n(s_h = 1) for row n, and the
    prior of the others is larger by 1/(1 − π_h). So the bound changes by Σ_n w_n log(1 − ⟨s_h⟩_n) − Σ_n w_n log(1 −
    π_h), and one pass over the data gives the changes of all causes.
    """
    *logs, weight = data.sum(partial(_log_remaining, model), parameters)
    activity = np.asarray(model.prior.activity(parameters.prior), dtype=float)
    return weight * np.log1p(-np.minimum(activity, 1 - LEAST_REMAINING)) - np.array(logs)


def _log_remaining(model: Model, block: Block, parameters: Parameters) -> np.ndarray:
    """Compute Σ_n w_n log(1 − ⟨s_h⟩_n) of every cause, and Σ_n w_n: (H + 1,)."""
    remaining = 1 - np.asarray(active_causes(model, block, parameters), dtype=float)
    weights = np.asarray(block.weights, dtype=float)
    return np.append(weights @ np.log(np.maximum(remaining, LEAST_REMAINING)), weights.sum())


def all_variants(
    model: Model,
    data: Data,
    fit: FitResult,
    order: Sequence[int],
    number: int,
    random: np.random.RandomState,
) -> Parameters:
    """Return variants in which the cause at a place of the ``order``, least missed first, is recycled.

    If causes are dead, they come back from residuals in some variants. In one variant of the first tournament, all
    weights are raised.
    """
    dead = dead_causes(fit.parameters, fit.statistics, data)
    n_revivals = min(REVIVALS, len(dead) - 1) if dead.any() else 0
    most = min(len(dead), MOST_VARIANTS) - n_revivals
    variants = [revived(model, data, fit.parameters, dead, random, n_revivals)] if n_revivals else []
    variants.append(copied(model, fit.parameters, order[number], random, lifted=number == 0, most=most))
    return jax.tree.map(lambda *leaves: np.concatenate(leaves), *variants)


def revived(
    model: Model, data: Data, parameters: Parameters, dead: np.ndarray, random: np.random.RandomState, n_variants: int
) -> Parameters:
    """Return variants in which all dead causes (H,) are residuals of rows that are explained worst."""
    worst = worst_rows(model, data, parameters)
    return stack_starts([revive(model, data, parameters, dead, worst, random) for _ in range(n_variants)])


def copied(
    model: Model,
    parameters: Parameters,
    recycled: int,
    random: np.random.RandomState,
    *,
    lifted: bool,
    most: int = MOST_VARIANTS,
) -> Parameters:
    """Return one start for each promising cause, in which the recycled cause becomes a copy of it.

    If ``lifted``, one more start has all weights raised. It is the same whichever cause is recycled.
    """
    components: Any = parameters.components
    starts = []
    for source in _promising(model, parameters, recycled, lifted, most):
        factors = np.asarray(PERTURBATION * random.normal(size=components.shape[1]), dtype=components.dtype)
        moved = components.copy()
        if source == recycled and model.combination.bounds[0] >= 0:
            moved += LIFT * components.mean()
        else:
            moved[recycled] = components[source] * (1 + factors)
            moved[source] = components[source] * (1 - factors)
        moved = model.combination.reflect(moved)
        prior = model.prior.copied(parameters.prior, source, recycled)
        starts.append(parameters._replace(components=moved, prior=prior))
    return stack_starts(starts)


def _promising(model: Model, parameters: Parameters, recycled: int, lifted: bool, most: int) -> list[int]:
    """Return at most so many causes that may represent a mixture: those with the largest activity times sum of weights.

    A mixture of two causes that exclude each other in most rows is active as often as both, and has the weights of each
    in part, so that the product is that of both. With squared weights, it would be that of one.

    The cause to be recycled is included if all weights are to be raised.
    """
    activity = np.asarray(model.prior.activity(parameters.prior), dtype=float)
    explained = activity * np.abs(np.asarray(parameters.components, dtype=float)).sum(axis=1)
    explained[recycled] = np.inf
    if not lifted:
        return sorted(np.argsort(explained)[-2::-1][:most].tolist())
    return sorted(np.argsort(explained)[::-1][:most].tolist())
