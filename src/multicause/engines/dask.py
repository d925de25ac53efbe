"""Engine for data on the workers of a Dask cluster. Rows stay there; only parameters and sums are transferred.

Every chunk of the data becomes a part: rows in the memory of one worker, arranged in blocks, which
:class:`multicause.engines.local.LocalData` processes. An iteration sends one task to each part and sums the results in
a tree of fixed order. Parts of a lost worker are recomputed by others, because Dask knows how they were made.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from multicause.engines import dask_tasks as tasks
from multicause.engines.base import Engine, LazyResults
from multicause.engines.dask_clusters import check_versions, connected, distributed_package, local_cluster
from multicause.engines.dask_data import DaskData
from multicause.engines.dask_placement import Parts, balanced_homes, map_at
from multicause.engines.dask_results import gather, gather_facts
from multicause.engines.sources import Source, source_for_workers
from multicause.runtime.user_warnings import warn_user

if TYPE_CHECKING:
    from distributed import Client

# Largest memory of a part that workers read from files.
BYTES_PER_PART = 2**28


class LazyDaskResults(LazyResults):
    """Dask arrays as results, with one chunk for each chunk of the rows."""

    def n_columns(self, X: Any) -> int | None:
        """Return the number of columns; None for delayed blocks, which are checked when they are computed."""
        if delayed_blocks(X) is not None:
            return None
        return len(X.columns) if hasattr(X, "columns") else int(X.shape[-1])

    def compute_later(
        self, function: Callable[..., Any], X: Any, *arguments: Any, row: np.ndarray, out: Any, refusal: str | None
    ) -> Any:
        """Return a dask array of a function's results, which are computed where the chunks of X are."""
        if out is not None:
            raise TypeError("The result for a dask array is a dask array: leave out=, and use its to_zarr or store.")
        example = function(row, *arguments)
        if not isinstance(example, np.ndarray):
            raise TypeError(
                "recognize lists states only for rows in the memory of this process. Give some rows of the dask "
                "array, such as X[:1000].compute(), or use transform."
            )
        X = as_dask_array(X, row.shape[1])
        X = X.rechunk({1: -1}) if len(X.chunks[1]) > 1 else X
        columns = {"chunks": (X.chunks[0], *((size,) for size in example.shape[1:]))}
        dropped = {"drop_axis": 1} if example.ndim == 1 else {}
        of_chunk = partial(tasks.of_chunk, function, refusal)
        return X.map_blocks(of_chunk, *arguments, dtype=example.dtype, meta=example[:0], **columns, **dropped)


class Dask(Engine):
    """Engine that learns on a Dask cluster (``pip install 'multicause[dask]'``).

    Parameters
    ----------
    scheduler : str, distributed.Client or None
        Address of a scheduler such as "tcp://scheduler:8786", or a client. None uses the current client, or starts a
        cluster with one process for each core of this machine.
    memory_budget : str or int, default="2GiB"
        Largest memory of temporary arrays on each worker; see :class:`multicause.engines.Local`.
    timeout : float, default=30
        Seconds to wait for the scheduler, for the first worker, and for new workers if a cluster has lost all of them.
    """

    def __init__(
        self, scheduler: str | Client | None = None, *, memory_budget: str | int = "2GiB", timeout: float = 30
    ) -> None:
        self.scheduler = scheduler
        self.memory_budget = memory_budget
        self.timeout = timeout

    lazy = LazyDaskResults()

    @classmethod
    def accepts(cls, X: Any) -> bool:
        """Return whether X is a dask array or data frame, a delayed block, or a list of delayed blocks."""
        return is_distributed(X)

    def __sklearn_clone__(self) -> Dask:
        return Dask(self.scheduler, memory_budget=self.memory_budget, timeout=self.timeout)

    def __deepcopy__(self, memo: dict[int, Any]) -> Dask:
        return self.__sklearn_clone__()

    def settings_to_save(self) -> dict[str, Any]:
        """Return the settings with the address of a client instead of the client."""
        scheduler = getattr(getattr(self.scheduler, "scheduler", None), "address", self.scheduler)
        return {**self.get_params(deep=False), "scheduler": scheduler}

    def __getstate__(self) -> dict[str, Any]:
        """Drop the client, which exists in one process only; a copy elsewhere uses the current client there."""
        kept = self.scheduler if isinstance(self.scheduler, str) else None
        return {"scheduler": kept, "memory_budget": self.memory_budget, "timeout": self.timeout}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def source(self, X: Any) -> Any:
        """Return X, or a source, if its rows are on the cluster, are computed there, or can be read by workers."""
        if is_distributed(X):
            return delayed_blocks(X) or X
        return source_for_workers(X)

    def client(self) -> Client:
        """Return the client, with at least one worker that can run this library."""
        distributed = distributed_package()
        if not isinstance(self.timeout, Real) or isinstance(self.timeout, bool) or not self.timeout > 0:
            raise ValueError(f"timeout must be a positive number of seconds; got {self.timeout!r}.")
        if isinstance(self.scheduler, distributed.Client):
            client = self.scheduler
            if client.status == "closed":
                raise ConnectionError("The client of engine=Dask(client) is closed. Use one that is connected.")
        elif isinstance(self.scheduler, str):
            client = connected(self.scheduler, self.timeout)
        elif self.scheduler is not None:
            raise TypeError(
                "scheduler must be an address such as 'tcp://scheduler:8786', a distributed.Client or None; got "
                f"{self.scheduler!r}."
            )
        else:
            try:
                client = distributed.default_client()
            except ValueError:
                client = local_cluster()
        try:
            client.wait_for_workers(1, timeout=self.timeout)
        except TimeoutError as error:
            raise self._without_workers(client) from error
        check_versions(client)
        return client

    def _without_workers(self, client: Client) -> TimeoutError:
        return TimeoutError(
            f"The Dask scheduler at {client.scheduler.address} has had no worker for {self.timeout} seconds. Start "
            "workers, or wait longer with engine=Dask(timeout=...)."
        )

    def load(self, X: Any, weights: np.ndarray | None = None, refusal: str | None = None) -> DaskData:
        """Return a handle on a dask array or data frame, delayed blocks, or an array, which is sent to workers.

        Sources of :func:`multicause.datasets.open_rows`, memory maps of whole files, HDF5 and zarr arrays are read by
        workers, which must have access to the same files.
        """
        client = self.client()
        n_threads = client.nthreads()
        if not n_threads:  # workers have been lost since
            raise self._without_workers(client)
        return load(self, client, n_threads, X, weights, refusal)


def is_distributed(X: Any) -> bool:
    """Return whether X is a dask array or data frame, a delayed block, or a list of delayed blocks."""
    if not isinstance(X, list | tuple):
        return _is_dask(X)
    if not any(map(_is_dask, X)):
        return False
    for number, block in enumerate(X):
        if not _is_delayed(block):
            raise TypeError(
                f"Blocks of X must be dask.delayed objects; block {number} is of the type {type(block).__name__}. Use "
                "dask.delayed(block) for rows in memory, and dask.array.concatenate or dask.dataframe.concat for a "
                "list of dask arrays or data frames."
            )
    return True


def _is_dask(X: Any) -> bool:
    return type(X).__module__.partition(".")[0] in ("dask", "dask_expr") and hasattr(X, "__dask_graph__")


def _is_delayed(X: Any) -> bool:
    return _is_dask(X) and not hasattr(type(X), "shape")  # delayed objects have attributes of every name


def delayed_blocks(X: Any) -> list[Any] | None:
    """Return the blocks of a list of them, or of a single delayed block; None if X is of another kind."""
    if isinstance(X, list | tuple) and is_distributed(X):
        return list(X)
    return [X] if _is_delayed(X) else None


def as_dask_array(X: Any, n_features: int) -> Any:
    """Return rows on a cluster, a data frame of them or delayed blocks, as a dask array."""
    blocks = delayed_blocks(X)
    if blocks is not None:
        import dask.array as da

        arrays = [da.from_delayed(block, (np.nan, n_features), float) for block in blocks]
        return da.concatenate(arrays, allow_unknown_chunksizes=True)
    return X.to_dask_array() if hasattr(X, "to_dask_array") else X


# --------------------------------------------------------------------------------------------------- loading


def load(
    engine: Dask,
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
    sizes = gather(client, client.map(len, chunks, pure=False), chunks, numbers, engine.timeout)
    starts = np.cumsum([0, *sizes])
    if weights is not None and len(weights) != starts[-1]:
        raise ValueError(f"sample_weight has {len(weights)} values, but X has {starts[-1]:,} rows.")
    numbers = [number for number in numbers if sizes[number]]
    holders = client.who_has(chunks)
    homes = balanced_homes(
        [sizes[number] for number in numbers], [holders[chunks[number].key] for number in numbers], n_threads
    )
    make = partial(tasks.make_part, engine.memory_budget, refusal)
    own = [None if weights is None else np.asarray(weights[starts[n] : starts[n + 1]]) for n in numbers]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sending large graph")  # weights
        columns = [chunks[n] for n in numbers], own, numbers, [int(starts[n]) for n in numbers]
        parts = Parts(map_at(client, make, homes, *columns), numbers, homes)
    return DaskData(engine, client, parts, gather_facts(client, parts, engine.timeout))


def _check_numbers(X: Any) -> None:
    """Raise ValueError if a data frame has columns that do not hold numbers, which its types tell before any work."""
    if not (_is_dask(X) and hasattr(type(X), "columns")):
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
    if not _is_dask(X):
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
