"""Scales of initial components: equal sums, lengths of the data, or length one with slabs that have the scale."""

from __future__ import annotations

from typing import Any

import numpy as np

from multicause.initialization.conditions import InitialConditions
from multicause.records import Moments, Parameters

# Default standard deviation of the noise of sparse coding, relative to that of the data within dimensions.
RELATIVE_NOISE = 0.3
# Minimum fraction of the mean square of the data that initial slabs explain, however large the noise is.
LEAST_EXPLAINED = 0.25


def with_equal_sums(starts: Parameters, initial: InitialConditions, total: float | None) -> Parameters:
    """Return starts of restricted maximal causes, whose components are scaled to the sum C (``total``).

    By default C is the mean sum of a row divided by the expected number π·H of active causes. Causes occlude each
    other, so this is slightly less than the sum of a single cause; its scale does not affect which causes are found
    (MCA08 appendix E.1).
    """
    sums = starts.components.sum(axis=-1, keepdims=True)
    if not (np.asarray(sums) > 0).all():
        raise ValueError(
            "Every component in init needs a positive sum, because components are scaled to one sum; "
            f"component {int(np.argmin(np.asarray(sums)[0]))} is zero. Remove it, or use init='random'."
        )
    if total is None:
        expected = float(np.asarray(initial.model.prior.activity(starts.prior))[0].sum())
        total = float(np.sum(initial.moments.mean)) / expected
    return starts._replace(components=starts.components * (float(total) / sums).astype(starts.components.dtype))


def with_relative_noise(starts: Parameters, moments: Moments) -> Parameters:
    """Return starts of sparse coding, with noise in proportion to the standard deviation of the data."""
    variance: Any = np.full_like(starts.noise["variance"], (RELATIVE_NOISE * _deviation(moments)) ** 2)
    return starts._replace(noise={**starts.noise, "variance": variance})


def with_lengths_of_data(starts: Parameters, initial: InitialConditions) -> Parameters:
    """Return starts with random components that are as long as the standard deviation of the data."""
    draws = initial.random.normal(size=starts.components.shape)
    components: Any = _deviation(initial.moments) * draws / np.linalg.norm(draws, axis=-1, keepdims=True)
    return starts._replace(components=components.astype(initial.data.dtype))


def with_slabs(starts: Parameters, moments: Moments) -> Parameters:
    """Return starts with components of length one, and slabs that explain the mean square not explained by noise."""
    components = np.asarray(starts.components)
    length = np.maximum(np.linalg.norm(components, axis=-1, keepdims=True), np.finfo(components.dtype).tiny)
    activity, n_features = np.asarray(starts.prior["activity"]), components.shape[-1]
    square = float(n_features * moments.spread + np.sum(moments.mean**2))
    left = max(square - n_features * float(np.mean(starts.noise["variance"])), LEAST_EXPLAINED * square)
    variance = np.broadcast_to(left / activity.sum(axis=-1, keepdims=True), activity.shape)
    prior: Any = {**starts.prior, "slab_variance": variance.astype(components.dtype)}
    scaled: Any = components / length
    return starts._replace(components=scaled, prior=prior)


def _deviation(moments: Moments) -> float:
    """Return the standard deviation of the data within dimensions; of all values, if each dimension is constant."""
    return float(np.sqrt(moments.spread or moments.variance))
