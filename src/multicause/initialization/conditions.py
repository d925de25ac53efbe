"""Inputs from which initial parameters are drawn: the model, the data and their first moments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from multicause.engines.base import Data
from multicause.model import Model
from multicause.records import Moments


class InitialConditions(NamedTuple):
    """Model, data and random state from which initial parameters of all starts are drawn."""

    model: Model
    moments: Moments
    data: Data
    random: np.random.RandomState
    n_starts: int
    record: Mapping[str, np.ndarray] = {}  # record of the preparation


def first_moments(data: Data) -> Moments:
    """Return the weighted mean of each dimension, the variance of all values together, and that within dimensions."""
    mean, spread = data.overview.mean, data.overview.spread
    with np.errstate(over="ignore", invalid="ignore"):
        variance = spread + float(np.var(mean))
    return Moments(mean, variance, spread, float(np.finfo(data.dtype).eps))
