"""Units of a softmax network that represent several causes at once are split after learning.

The rule learns from rows that one unit explains. A cause that never occurs alone is only learned together with another
one, and rows with one of both causes are then explained by a unit that has the pixels of both. What such a row and the
unit have in common is the cause that is missing. It takes the place of the unit that is missed least, if that raises
the evidence of all rows.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from multicause.engines.base import Data
from multicause.inference import active_causes
from multicause.model import Model
from multicause.records import Parameters
from multicause.search.variants import falls_without

# Part of the rows, those of which units explain most that is not there, and the largest number of such rows.
SHARE_OF_ROWS, MOST_ROWS = 0.5, 1000
# Part of a unit's weights that a row may have in common with it: more is noise, less another cause that overlaps.
COMMON = (0.2, 0.85)
# Cosine from which on two such parts are the same, and below which they differ from all units.
SAME, NEW = 0.95, 0.9
# Number of rows that must have a part in common, and largest number of parts that are tried in one round.
LEAST_ROWS, MOST_PARTS = 2, 10
# Rounds, and parts in a row that may fail to raise the evidence before a round ends: frequent ones are tried first.
ROUNDS, FAILURES = 3, 3


def split_units(
    model: Model,
    data: Data,
    parameters: Parameters,
    rows: np.ndarray,
    repetitions: np.ndarray,
    evidence: Callable[[Parameters], float],
) -> Parameters:
    """Return parameters in which units that are hardly missed have become parts of others, if that raises the evidence.

    ``rows`` (n, D) are those of the ``data``, which count as often as their ``repetitions`` (n,) say, and of which the
    ``model`` recognizes units; ``evidence`` is that of all rows.
    """
    best = evidence(parameters)
    for _ in range(ROUNDS):
        before, failures = best, 0
        active = data.collect(data.map(partial(active_causes, model), parameters))
        for part in common_parts(np.asarray(parameters.components), rows, np.asarray(active) > 0.5, repetitions):
            components = np.array(parameters.components)
            components[np.argmin(falls_without(model, data, parameters))] = part
            variant = parameters._replace(components=components)  # type: ignore[arg-type]
            value = evidence(variant)
            failures = 0 if value > best else failures + 1
            if value > best:
                parameters, best = variant, value
            if failures == FAILURES:
                break
        if not best > before:
            break
    return parameters


def common_parts(
    weights: np.ndarray, rows: np.ndarray, active: np.ndarray, repetitions: np.ndarray
) -> list[np.ndarray]:
    """Return parts of units (D,) that several rows (n, D) show without the rest, the most frequent ones first.

    ``active`` (n, H) says which units explain each row. Parts have the sum of the units' weights.
    """
    shown = repetitions > 0
    rows, active, repetitions = rows[shown], active[shown], repetitions[shown]
    explained = np.zeros_like(rows)
    for unit, on in zip(weights, active.T, strict=True):
        np.maximum(explained, np.where(on[:, None], unit, 0), out=explained)
    chosen = _largest(np.maximum(explained - rows, 0).sum(axis=1), repetitions)
    total = weights.sum(axis=1).mean()
    found, counts = [], []
    for unit, on in zip(weights, active.T, strict=True):
        common = np.minimum(unit, rows[chosen & on])
        sums = common.sum(axis=1, keepdims=True)
        is_part = ((sums > COMMON[0] * unit.sum()) & (sums < COMMON[1] * unit.sum()))[:, 0]
        found.append(common[is_part] * (total / sums[is_part]))
        counts.append(repetitions[chosen & on][is_part])
    return _frequent(np.concatenate(found), np.concatenate(counts), weights, total)


def _largest(excess: np.ndarray, repetitions: np.ndarray) -> np.ndarray:
    """Return which rows have the largest excess (n,), so many that repeated and weighted rows give the same."""
    order = np.argsort(-excess, kind="stable")
    share = min(SHARE_OF_ROWS * repetitions.sum(), MOST_ROWS)
    last = np.searchsorted(np.cumsum(repetitions[order]), share)
    # Rows without any excess, of which there may be many, have no part of a unit alone.
    return (excess > 0) & (excess >= excess[order[min(last, len(order) - 1)]])


def _frequent(parts: np.ndarray, counts: np.ndarray, weights: np.ndarray, total: float) -> list[np.ndarray]:
    """Return means of parts that are the same, the most frequent first, without those that are units already."""
    new = (_directions(parts) @ _directions(weights).T).max(axis=1) < NEW
    parts, counts = parts[new], counts[new]
    directions = _directions(parts)
    means: list[np.ndarray] = []
    while len(parts) and len(means) < MOST_PARTS:
        same = directions @ directions.T > SAME
        frequency = same @ counts
        most = int(frequency.argmax())
        if frequency[most] < LEAST_ROWS:
            break
        mean = np.average(parts[same[most]], axis=0, weights=counts[same[most]])
        means.append(mean * (total / mean.sum()))
        others = directions @ _directions(mean[None])[0] < NEW
        parts, counts, directions = parts[others], counts[others], directions[others]
    return means


def _directions(vectors: np.ndarray) -> np.ndarray:
    """Return vectors of length one."""
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), np.finfo(vectors.dtype).tiny)
