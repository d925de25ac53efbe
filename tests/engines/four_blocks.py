"""Rows in memory in as many blocks as on a cluster."""

from functools import partial

import jax.numpy as jnp
import numpy as np

from multicause.engines import Local
from multicause.engines.local_data import LocalData
from multicause.records import Block


class FourBlocks(Local):
    """Local engine that divides the rows into four blocks."""

    def load(self, X, weights=None):
        data = super().load(X, weights)
        data.arranged = partial(_arranged_in_four, self, data)
        data.transformed = lambda function: self.load(function(data._X), data._weights)
        return data


def _arranged_in_four(engine, data, summarize, *sizes):
    blocks = [
        Block(jnp.asarray(X), jnp.asarray(w), summarize(jnp.asarray(X)))
        for X, w in zip(np.split(data._X, 4), np.split(data._weights, 4), strict=True)
    ]
    return LocalData(engine, data._X, data._weights, blocks)
