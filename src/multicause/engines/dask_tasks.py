"""Tasks that workers of a Dask cluster run on their parts of the data, and the exact quantile over all parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import numpy as np

from multicause.arrays import double_precision
from multicause.engines.allocator import reuse_freed_memory
from multicause.engines.blocks import add, weighted_quantile
from multicause.engines.fingerprints import hash_of_rows
from multicause.engines.kept_states import in_blocks, joined_rows
from multicause.engines.local import Local
from multicause.engines.local_data import LocalData
from multicause.engines.missing import check_finite, without_mask

# Number of order statistics by which each part summarizes its values.
LANDMARKS = 1024


def make_part(
    memory_budget: str | int,
    refusal: str | None,
    chunk: Any,
    weights: np.ndarray | None,
    number: int,
    start: int,
) -> LocalData:
    """Return the validated rows of one chunk as data of this worker."""
    rows = np.asarray(without_mask(chunk))
    if rows.ndim != 2 or rows.dtype.kind not in "biuf":
        raise ValueError(
            f"Block {number} of X must be a table of numbers; got the shape {rows.shape} and dtype {rows.dtype}."
        )
    rows = np.ascontiguousarray(rows, dtype=np.float32 if rows.dtype == np.float32 else np.float64)
    check_finite(rows, start, partial(_within_block, number), refusal=refusal)
    row_weights = np.ones(len(rows), rows.dtype) if weights is None else np.asarray(weights, rows.dtype)
    # Dask runs as many tasks at the same time as a worker has threads.
    return LocalData(Local(memory_budget=memory_budget, n_jobs=1), rows, row_weights)


def _within_block(number: int, row: int) -> str:
    return f", which is row {row} of block {number}"


def of_chunk(
    method: Callable[..., np.ndarray],
    refusal: str | None,
    chunk: Any,
    *arguments: Any,
    block_info: dict[Any, Any] | None = None,
) -> np.ndarray:
    """Return the results of a method for one chunk of a dask array; errors name the block and the row.

    ``block_info`` is what ``dask.array.map_blocks`` tells of the chunk; sizes of earlier chunks may be unknown.
    """
    rows = np.asarray(without_mask(chunk))
    place = (block_info or {}).get(0)
    if place is None:
        return method(rows, *arguments)
    number, start = place["chunk-location"][0], place["array-location"][0][0]
    if np.isfinite(start):
        check_finite(rows, int(start), partial(_within_block, number), refusal=refusal)
    else:
        check_finite(rows, 0, f" of block {number}", refusal=refusal)
    try:
        return method(rows, *arguments)
    except ValueError as error:
        raise ValueError(f"Block {number} of X: {error}") from error


def facts_of(part: LocalData) -> tuple[int, int, int, str]:
    """Return the numbers of rows, features and rows with a weight, and the dtype, of a part."""
    return part.n_rows, part.n_features, part.n_weighted, part.dtype.str


def make_from_part(part: LocalData, function: Callable[[LocalData], LocalData]) -> LocalData:
    """Return the data that a function makes of a part."""
    with double_precision():
        return function(part)


def arrange_part(summarize: Callable[[Any], Any], bytes_per_row: int, fixed_bytes: int, part: LocalData) -> LocalData:
    """Arrange a part in blocks."""
    return part.arranged(summarize, bytes_per_row, fixed_bytes)


def transform_part(function: Callable[[np.ndarray], np.ndarray], part: LocalData) -> LocalData:
    """Transform the rows of a part."""
    return part.transformed(function)


def release_part(part: LocalData) -> LocalData:
    """Return a part that is not arranged in blocks."""
    return part.released()


def same(value: Any) -> Any:
    """Return the argument, to store it on the cluster."""
    return value


def sum_part(part: LocalData, shared: tuple[Callable[..., Any], Any], aligned: Sequence[Any]) -> Any:
    """Sum a function over the blocks of a part."""
    reuse_freed_memory()
    function, arguments = shared
    with double_precision():
        return jax.device_get(part.sum(function, *arguments, aligned=aligned))


def map_part(part: LocalData, shared: tuple[Callable[..., Any], Any]) -> list[Any]:
    """Return the result of a function for each block of a part."""
    reuse_freed_memory()
    function, arguments = shared
    with double_precision():
        # JAX arrays would lose their double precision on the way to another worker.
        return [jax.device_get(found) for found in part.map(function, *arguments)]


def fold_part(
    part: LocalData,
    carry: Any,
    shared: tuple[Callable[..., Any], Any],
    order: Sequence[int],
    aligned: Sequence[Any] | None,
) -> Any:
    """Visit some blocks of a part in the given order; ``aligned`` has an entry for each of them."""
    reuse_freed_memory()
    function, arguments = shared
    with double_precision():
        for position, number in enumerate(order):
            given = () if aligned is None else (aligned[position],)
            carry = part.fold(function, carry, *arguments, *given, order=[number])
        return jax.device_get(carry)


def keep_states_of_part(part: LocalData, shared: tuple[Callable[..., Any], Any], start: int) -> Any:
    """Return the memory that a function creates for the rows of a part, whose first row has the number ``start``."""
    reuse_freed_memory()
    function, arguments = shared
    with double_precision():
        return part.keep_states(partial(_from_row, function, start), *arguments)


def _from_row(function: Callable[..., Any], first: int, *arguments: Any) -> Any:
    return function(*arguments[:-1], arguments[-1] + first)


def sum_part_with_states(part: LocalData, shared: tuple[Callable[..., Any], Any], kept: Any) -> tuple[Any, Any]:
    """Sum a function over the blocks of a part; also return the next states of its rows."""
    reuse_freed_memory()
    function, arguments = shared
    # The states that were given must not change: if this task runs again, it needs the same ones.
    kept = {name: np.array(values) for name, values in kept.items()}
    with double_precision():
        total, after = part.sum_with_states(function, kept, *arguments)
        return jax.device_get(total), after


def rows_of_states(part: LocalData, kept: Any) -> Any:
    """Return the memory of the rows of a part: arrays (starts, ..., n)."""
    return {name: joined_rows(values, part.n_rows) for name, values in kept.items()}


def states_of_part(part: LocalData, rows: Any) -> Any:
    """Return the memory of a part, in blocks, from that of its rows."""
    n_blocks, size = len(part.blocks), len(part.blocks[0].rows)
    return {name: in_blocks(values, n_blocks, size) for name, values in rows.items()}


def entry(record: Sequence[Any], number: int) -> Any:
    """Return one entry of a record."""
    return record[number]


def number_of_blocks(part: LocalData) -> int:
    """Return the number of blocks of a part."""
    return len(part.blocks)


def weights_of_part(part: LocalData, function: Callable[[np.ndarray], Any]) -> list[Any]:
    """Return the result of a function of the weights of each block of a part."""
    return part.of_weights(function)


def entries(records: Sequence[Any], number: int) -> list[Any]:
    """Return one entry of each record."""
    return [record[number] for record in records]


def add_all(terms: Sequence[Any]) -> Any:
    """Sum results in order."""
    total = terms[0]
    with double_precision():
        for term in terms[1:]:
            total = add(total, term)
        return jax.device_get(total)


def collect_part(part: LocalData, mapped: Sequence[Any]) -> Any:
    """Return the results for the rows of a part."""
    return part.collect(mapped)


def each_part(part: LocalData, function: Callable[[np.ndarray, np.ndarray], Any]) -> Any:
    """Apply a function to the rows and weights of a part."""
    (result,) = part.each(function)
    return result


def hash_part(part: LocalData, start: int) -> np.ndarray:
    """Return the sums of hashes of a part, whose first row has the index ``start``."""
    return hash_of_rows(*part.look(), start)


def take(part: LocalData, indices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return some rows of a part, and their weights."""
    rows, weights = part.look()
    return rows[indices], weights[indices]


# --------------------------------------------------------------------------- an exact quantile of all parts


def ranked_values(part: LocalData, mapped: Sequence[Any]) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return values in descending order, and the sums of weights up to each, for every start."""
    weights = np.concatenate([np.asarray(block.weights, dtype=float) for block in part.blocks])
    values = np.concatenate([np.asarray(each) for each in mapped], axis=1)[:, weights > 0]
    order = np.argsort(-values, axis=1, kind="stable")
    return [(one[places], np.cumsum(weights[weights > 0][places])) for one, places in zip(values, order, strict=True)]


def landmarks(ranked: list[tuple[np.ndarray, np.ndarray]]) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return some of the values, including the first and the last, with the weight that reaches each."""
    marks = []
    for values, reached in ranked:
        n_marks = min(LANDMARKS, len(values))
        places: np.ndarray = np.linspace(0, max(0, len(values) - 1), n_marks).astype(int)
        marks.append((values[places], reached[places]))
    return marks


def interval_of(marks: Sequence[list[tuple[np.ndarray, np.ndarray]]], share: np.ndarray) -> np.ndarray:
    """Return an interval (starts, 2), lower and upper end, that contains the quantile."""
    found = []
    for start, wanted in enumerate(share):
        own = [of_part[start] for of_part in marks if len(of_part[start][0])]
        total = sum(reached[-1] for _, reached in own)
        candidates = np.unique(np.concatenate([values for values, _ in own]))
        # Weight that certainly, and that possibly, reaches each candidate.
        least, most = np.zeros(len(candidates)), np.zeros(len(candidates))
        for values, reached in own:
            passed = np.searchsorted(-values, -candidates, side="right")
            steps = np.concatenate([[0.0], reached])
            least += steps[passed]
            most += np.concatenate([reached, reached[-1:]])[passed]
        target = wanted * total * (1 - 4 * np.finfo(float).eps)
        lower = candidates[least >= target]
        upper = candidates[most < target]
        found.append((lower[-1] if len(lower) else -np.inf, upper[0] if len(upper) else np.inf))
    return np.array(found)


def inside(
    ranked: list[tuple[np.ndarray, np.ndarray]], interval: np.ndarray
) -> list[tuple[np.ndarray, np.ndarray, float, float]]:
    """Return the values within an interval with their weights, the weight above it, and the total weight."""
    found = []
    for (values, reached), (lower, upper) in zip(ranked, interval, strict=True):
        weights = np.diff(reached, prepend=0.0)
        within = (values >= lower) & (values <= upper)
        found.append((values[within], weights[within], float(weights[values > upper].sum()), float(weights.sum())))
    return found


def threshold(
    inside: Sequence[list[tuple[np.ndarray, np.ndarray, float, float]]], interval: np.ndarray, share: np.ndarray
) -> np.ndarray:
    """Return the exact quantile of each start."""
    found = []
    for start, wanted in enumerate(share):
        own = [of_part[start] for of_part in inside]
        values, weights = (np.concatenate([each[place] for each in own]) for place in (0, 1))
        above, total = sum(each[2] for each in own), sum(each[3] for each in own)
        found.append(weighted_quantile(values, weights, wanted, above=above, total=total))
    return np.array(found)
