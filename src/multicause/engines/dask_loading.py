"""Loading of rows onto the workers of a Dask cluster, as parts of similar size."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from multicause.engines import dask_tasks as tasks
from multicause.engines.dask_data import DaskData, DaskSettings
from multicause.engines.dask_inputs import delayed_blocks, is_dask
from multicause.engines.dask_placement import Parts, balanced_homes, map_at
from multicause.engines.dask_results import gather, gather_facts
from multicause.engines.source import Source
from multicause.runtime.user_warnings import warn_user

if TYPE_CHECKING:
    from distributed import Client

# Largest memory of a part that workers read from files.
BYTES_PER_PART = 2**28


def load(
    settings: DaskSettings,
    client: Client,
    n_threads: Mapping[str, int],
    X: Any,
    weights: np.ndarray | None,
    refusal: str | None,
) -> DaskData:
    """Create a part from every chunk, on the worker that computed the chunk unless that has more than its share."""
    if isinstance(X, Source):
        X.check_from_now(refusal)
    _check_numbers(X)
    chunks = _chunks(client, X, n_threads)
    numbers = list(range(len(chunks)))
    sizes = gather(client, client.map(len, chunks, pure=False), chunks, numbers, settings.timeout)
    starts = np.cumsum([0, *sizes])
    if weights is not None and len(weights) != starts[-1]:
        raise ValueError(f"sample_weight has {len(weights)} values, but X has {starts[-1]:,} rows.")
    numbers = [number for number in numbers if sizes[number]]
    holders = client.who_has(chunks)
    homes = balanced_homes(
        [sizes[number] for number in numbers], [holders[chunks[number].key] for number in numbers], n_threads
    )
    make = partial(tasks.make_part, settings.memory_budget, refusal)
    of_parts = [None if weights is None else np.asarray(weights[starts[n] : starts[n + 1]]) for n in numbers]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sending large graph")  # weights
        columns = [chunks[n] for n in numbers], of_parts, numbers, [int(starts[n]) for n in numbers]
        parts = Parts(map_at(client, make, homes, *columns), numbers, homes)
    return DaskData(settings, client, parts, gather_facts(client, parts, settings.timeout))


def _check_numbers(X: Any) -> None:
    """Raise ValueError if a data frame has columns that do not hold numbers, which its types tell before any work."""
    if not (is_dask(X) and hasattr(type(X), "columns")):
        return
    others = [
        name for name, dtype in zip(X.columns, X.dtypes, strict=True) if getattr(dtype, "kind", "O") not in "biuf"
    ]
    if others:
        raise ValueError(
            f"Columns of a data frame must hold numbers; {', '.join(map(repr, others))} "
            f"{'does' if len(others) == 1 else 'do'} not. Leave out what is no measurement: X.drop(columns={others!r})."
        )


def _chunks(client: Client, X: Any, n_threads: Mapping[str, int]) -> list[Any]:
    """Return futures of arrays, one for each chunk of rows."""
    if isinstance(X, Source):
        n_at_once = sum(n_threads.values())
        n_parts = min(len(X), n_at_once * max(1, -(-X.n_bytes // (n_at_once * BYTES_PER_PART))))
        ends = np.linspace(0, len(X), n_parts + 1).astype(int).tolist()
        return map_at(client, X.read, _spread(np.diff(ends).tolist(), n_threads), ends[:-1], ends[1:])
    blocks = delayed_blocks(X)
    if blocks is not None:
        return client.compute(blocks)
    if not is_dask(X):
        rows = np.asarray(X)
        n_parts = min(len(rows), sum(n_threads.values()))
        pieces = np.array_split(rows, n_parts)
        with warnings.catch_warnings():
            # As a part of a task, rows survive the worker that holds them. Scattered rows would be lost with it.
            warnings.filterwarnings("ignore", "Sending large graph")
            return [
                client.submit(tasks.same, piece, workers=[home], allow_other_workers=True, pure=False)
                for piece, home in zip(pieces, _spread([len(piece) for piece in pieces], n_threads), strict=True)
            ]
    if hasattr(X, "to_delayed") and hasattr(X, "columns"):
        return client.compute(list(X.to_delayed()))
    if X.ndim != 2:
        raise ValueError(f"X must have two dimensions, rows and features; got {X.ndim}.")
    if len(X.chunks[1]) > 1:
        X = X.rechunk({1: -1})
    if np.isnan(X.shape[0]):
        warn_user(
            "The chunks of X have unknown sizes, which are computed first. X.compute_chunk_sizes() does so once for "
            "several calls."
        )
    return client.compute([chunk for (chunk,) in X.to_delayed().tolist()])


def _spread(sizes: Sequence[int], n_threads: Mapping[str, int]) -> list[str]:
    """Return a worker for each piece of so many rows, none of which is on the cluster yet."""
    return balanced_homes(sizes, [()] * len(sizes), n_threads)
