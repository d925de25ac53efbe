"""New components for causes that are not used: residuals of the rows that the model explains worst."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np

from multicause.engines.base import Data
from multicause.inference import log_evidence, mean_data, summarize
from multicause.model import Model
from multicause.records import Block, Parameters

# Part of the rows, those with the lowest evidence, from which new components are drawn.
WORST = 0.1
# Amount by which non-negative components are raised, relative to their mean: a weight of zero gets no credit.
LIFT = 0.05


def worst_rows(model: Model, data: Data, parameters: Parameters) -> np.ndarray:
    """Return the indices of the rows with the lowest log evidence, lowest first."""
    weights = np.concatenate(data.each(lambda rows, weights: weights))
    evidence = data.collect(data.map(partial(log_evidence, model), parameters))
    possible = np.flatnonzero(weights > 0)
    return possible[np.argsort(evidence[possible], kind="stable")][: max(1, int(WORST * len(possible)))]


def revive(
    model: Model,
    data: Data,
    parameters: Parameters,
    unused: np.ndarray,
    worst: np.ndarray,
    random: np.random.RandomState,
) -> Parameters:
    """Return parameters whose ``unused`` components (H,) are residuals of some of the ``worst`` rows.

    Their activities are the means of those of the other causes. Where causes have a strength, components have the mean
    length of the others; a binary cause explains the residual of a row only if its component has the same length.
    """
    n_unused = int(unused.sum())
    chosen = np.sort(random.choice(worst, n_unused, replace=n_unused > len(worst)))
    rows = data.rows(chosen)
    # One program serves any number of unused causes.
    padded = jnp.asarray(np.pad(rows, ((0, len(unused) - n_unused), (0, 0)), mode="edge"))
    block = Block(padded, jnp.ones(len(padded), padded.dtype), summarize(model.noise, model.missing, padded))
    residuals = rows - np.asarray(mean_data(model, block, parameters))[:n_unused]
    residuals = np.where(np.isnan(residuals), 0, residuals)  # a value that was not observed has no residual
    components: Any = np.array(parameters.components)
    if model.prior.has_states and model.prior.has_strengths:
        length = np.linalg.norm(components[~unused], axis=1).mean()
        residuals *= (length / np.maximum(np.linalg.norm(residuals, axis=1), np.finfo(residuals.dtype).tiny))[:, None]
    if model.combination.bounds[0] >= 0:
        residuals = np.maximum(residuals, 0) + LIFT * np.abs(components).mean()
    components[unused] = model.combination.project(residuals)
    learned = getattr(model.prior, "learn", tuple(parameters.prior))
    prior: dict[str, Any] = dict(parameters.prior)
    for name in [] if unused.all() else [name for name in prior if name in learned]:
        prior[name] = np.array(prior[name], dtype=components.dtype)
        prior[name][unused] = prior[name][~unused].mean(axis=0)
    return parameters._replace(components=components, prior=prior)
