"""Data that are read from disk in every pass, because they exceed the memory budget."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any

import jax
import numpy as np

from multicause.arrays import bytes_from, on_cpu
from multicause.engines.base import Data
from multicause.engines.blocks import block_shape, collect, filled_up, quantile_of
from multicause.engines.blockwise import BlockwiseData
from multicause.engines.fingerprints import hash_of_rows
from multicause.engines.local_data import LocalData
from multicause.engines.overview import Overview
from multicause.engines.source import Source
from multicause.records import Block
from multicause.runtime.parallel import in_order, number_of_jobs, read_ahead

# Fraction (1/16) of the memory budget for rows that are processed on the host, and number of blocks read ahead.
PART_OF_BUDGET = 16
READ_AHEAD = 2
# Largest number of parts that are processed on the host at the same time.
MOST_PARTS = 4
# Number of rows inspected to find starts, and number of adjacent rows in a sample, because single rows are slow to
# read.
ROWS_TO_LOOK_AT = 10_000
RUN = 16


class StreamedData(BlockwiseData):
    """Rows of a source; a thread reads blocks while others are computed.

    Blocks are computed in parallel and summed in order, as in memory; if the engine has several devices, each takes the
    next block in turn. Per-row values that a data cut keeps between two passes, and per-row results, are in memory.
    """

    resident = None

    def __init__(
        self,
        engine: Any,
        source: Source,
        weights: np.ndarray | None,
        functions: tuple[Callable[[np.ndarray], np.ndarray], ...] = (),
    ) -> None:
        if weights is not None and len(weights) != source.shape[0]:
            raise ValueError(f"sample_weight has {len(weights)} values, but X has {source.shape[0]:,} rows.")
        if source.bytes_at_once > bytes_from(engine.memory_budget):
            raise ValueError(
                f"{source.name} has pieces of {source.bytes_at_once:,} bytes that can only be read as a whole, more "
                f"than the memory budget of {engine.memory_budget!r}. Write parquet files with smaller row groups "
                "(row_group_size=100_000), or raise it with engine=Local(memory_budget=...)."
            )
        self._engine, self._source, self._weights, self._functions = engine, source, weights, functions
        self.n_rows = source.shape[0]
        row = self._read(0, 1)
        self.n_features, self.dtype = row.shape[1], row.dtype
        if weights is not None:
            self._weights = weights = weights.astype(self.dtype, copy=False)
        self.n_weighted = self.n_rows if weights is None else int((weights > 0).sum())
        mesh = engine.mesh()
        self._devices: tuple[jax.Device, ...] = () if mesh is None else tuple(mesh.devices.flat)
        self.n_jobs = len(self._devices) or (number_of_jobs(engine.n_jobs) if on_cpu() else 1)
        self._size = 0
        self._summarize: Callable[[Any], Any] | None = None

    def _read(self, start: int, stop: int) -> np.ndarray:
        rows = self._source.read(start, stop)
        for function in self._functions:
            rows = function(rows)
        return rows

    def _weights_of(self, start: int, stop: int) -> np.ndarray:
        stop = min(stop, self.n_rows)
        return np.ones(stop - start, self.dtype) if self._weights is None else self._weights[start:stop]

    def arranged(self, summarize: Callable[[Any], Any], bytes_per_row: int, fixed_bytes: int = 0) -> StreamedData:
        """Choose the size of blocks, which are read when they are needed."""
        data = self.released()
        data._summarize = summarize
        # A block that is read ahead exists both in the dtype of the source and in that of the data.
        waiting = 2 * READ_AHEAD * self.n_features * self.dtype.itemsize
        data._size, _ = block_shape(
            self._engine, self.n_rows, bytes_per_row, fixed_bytes, waiting_bytes_per_row=waiting
        )
        if not self._devices:  # the budget is that of each device
            most = bytes_from(self._engine.memory_budget) // (fixed_bytes + data._size * (bytes_per_row + waiting))
            data.n_jobs = max(1, min(most, self.n_jobs))
        return data

    def _like(self) -> StreamedData:
        """Return the same rows in the same blocks."""
        data = self.released()
        data._size, data._summarize, data.n_jobs = self._size, self._summarize, self.n_jobs
        return data

    @property
    def blocks(self) -> Sequence[Block]:
        """Return the blocks, which are read on access."""
        if self._summarize is None:
            raise RuntimeError("Data must be arranged in blocks before they can be used: call arranged().")
        return _Blocks(self)

    def _block(self, number: int) -> Block:
        assert self._summarize is not None
        start, size = number * self._size, self._size
        rows, weights = filled_up(self._read(start, start + size), self._weights_of(start, start + size), size)
        device = self._devices[number % len(self._devices)] if self._devices else None
        # On a CPU, device_put takes an aligned array over without a copy. Nothing writes to it later.
        on_device, weights_on_device = jax.device_put((rows, weights), device)
        return Block(on_device, weights_on_device, self._summarize(on_device))

    def _on_one_device(self, term: Any) -> Any:
        return jax.device_put(term, self._devices[0]) if self._devices else term

    def _visit(self, order: Sequence[int]) -> Iterator[Block]:
        # The carry of a fold is on one device, and so are the blocks that it visits.
        data = self._on_first_device()
        return read_ahead((data.blocks[number] for number in order), READ_AHEAD)

    def _on_first_device(self) -> StreamedData:
        if not self._devices:
            return self
        data = self._like()
        data._devices = self._devices[:1]
        return data

    def of_weights(self, function: Callable[[np.ndarray], Any]) -> list[Any]:
        """Apply the function to the weights of one block after the other, which are in memory."""
        starts = range(0, self.n_rows, self._size)
        return [function(self._padded_weights(start)) for start in starts]

    def _padded_weights(self, start: int) -> np.ndarray:
        weights = self._weights_of(start, start + self._size)
        return np.concatenate([weights, np.zeros(self._size - len(weights), weights.dtype)])

    def _run(self, function: Callable[..., Any], arguments: tuple[Any, ...], aligned: Sequence[Any]) -> Iterator[Any]:
        if self._devices:
            # Arguments that are on one device could not be used with blocks on another.
            arguments = jax.device_get(arguments)
        depth = max(READ_AHEAD, len(self._devices))
        tasks = (
            (block, *arguments, *((aligned[number],) if aligned else ()))
            for number, block in enumerate(read_ahead(self.blocks, depth))
        )
        return in_order(function, tasks, self.n_jobs)

    def results(self, function: Callable[..., Any], *arguments: Any) -> Iterator[Any]:
        """Yield the results of one block after the other."""
        for number, result in enumerate(self._run(function, arguments, ())):
            yield collect([result], min(self._size, self.n_rows - number * self._size))

    def quantile(self, mapped: Sequence[Any], share: np.ndarray) -> np.ndarray:
        """Sort the values of all blocks, which are in memory."""
        filling = len(self.blocks) * self._size - self.n_rows
        weights = np.concatenate([self._weights_of(0, self.n_rows).astype(float), np.zeros(filling)])
        return quantile_of(mapped, weights, share)

    def rows(self, indices: np.ndarray | None = None) -> np.ndarray:
        """Read these rows from the source, adjacent ones together."""
        chosen = np.arange(self.n_rows) if indices is None else np.asarray(indices)
        runs = np.split(chosen, np.flatnonzero(np.diff(chosen) != 1) + 1)
        return np.concatenate([self._read(int(run[0]), int(run[-1]) + 1) for run in runs])

    def each(self, function: Callable[[np.ndarray, np.ndarray], Any]) -> list[Any]:
        """Apply the function to parts that are read one after the other."""
        tasks = ((rows, weights) for _, rows, weights in self._parts())
        return list(in_order(function, tasks, min(self.n_jobs, MOST_PARTS)))

    @cached_property
    def overview(self) -> Overview:
        """Compute the overview; all values have been checked then."""
        overview = super().overview
        self._source.trust()
        return overview

    def _parts(self) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
        """Yield the index of the first row, rows and weights of parts that are read ahead."""
        budget = bytes_from(self._engine.memory_budget) // PART_OF_BUDGET
        size = max(1, budget // (self._source.shape[1] * self._source.dtype.itemsize))
        starts = range(0, self.n_rows, size)
        return read_ahead(
            ((start, self._read(start, start + size), self._weights_of(start, start + size)) for start in starts), 1
        )

    def _hashes(self) -> list[np.ndarray]:
        return [hash_of_rows(rows, weights, start) for start, rows, weights in self._parts()]

    def transformed(self, function: Callable[[np.ndarray], np.ndarray]) -> StreamedData:
        """Apply one more function to rows when they are read."""
        functions = (*self._functions, function)
        return self._sharing(StreamedData(self._engine, self._source, self._weights, functions), "missing")

    def look(self) -> tuple[np.ndarray, np.ndarray]:
        """Return a sample, the same each time."""
        return self.sample_rows(ROWS_TO_LOOK_AT, np.random.RandomState(0))

    def released(self) -> StreamedData:
        """Return the same rows, not arranged in blocks."""
        return self._sharing(StreamedData(self._engine, self._source, self._weights, self._functions))

    def sample(self, n_rows: int, random: np.random.RandomState) -> Data:
        """Draw short runs of rows, and keep them in memory."""
        return self if self.n_rows <= n_rows else LocalData(self._engine, *self.sample_rows(n_rows, random))

    def sample_rows(self, n_rows: int, random: np.random.RandomState) -> tuple[np.ndarray, np.ndarray]:
        """Read short runs of rows that have a weight."""
        possible = np.arange(self.n_rows) if self._weights is None else np.flatnonzero(self._weights > 0)
        n_runs = -(-len(possible) // RUN)
        chosen = np.sort(random.choice(n_runs, min(n_runs, -(-n_rows // RUN)), replace=False))
        indices = possible[(chosen[:, None] * RUN + np.arange(RUN)).ravel().clip(max=len(possible) - 1)]
        indices = np.unique(indices)[:n_rows]
        weights = np.ones(len(indices), self.dtype) if self._weights is None else self._weights[indices]
        return self.rows(indices), weights


class _Blocks(Sequence):
    """Sequence of blocks that are read on access."""

    def __init__(self, data: StreamedData) -> None:
        self._data = data

    def __len__(self) -> int:
        return -(-self._data.n_rows // self._data._size)

    def __getitem__(self, number: Any) -> Any:
        if number >= len(self):
            raise IndexError(number)
        return self._data._block(number)
