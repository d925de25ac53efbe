"""Data on the workers of a Dask cluster: one task for each part, and sums in a tree of fixed order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np

from multicause.arrays import bytes_from
from multicause.engines import dask_tasks as tasks
from multicause.engines.base import Data
from multicause.engines.blocks import block_shape
from multicause.engines.dask_placement import Parts, map_at
from multicause.engines.dask_results import address_of, gather, gather_facts, lost_scheduler
from multicause.engines.kept_states import joined_rows
from multicause.engines.local import Local
from multicause.engines.local_data import LocalData
from multicause.records import Block

if TYPE_CHECKING:
    from distributed import Client, Future

# Number of results that one task of the tree sums.
FAN_IN = 8
# Number of rows inspected to find starts.
ROWS_TO_LOOK_AT = 10_000


class DaskSettings(NamedTuple):
    """Settings of the engine that its data need."""

    memory_budget: str | int
    timeout: float


class DaskData(Data):
    """Rows on the workers; see :class:`multicause.engines.base.Data`. Results of :meth:`map` stay on the workers."""

    resident = None
    n_jobs = 1

    def __init__(
        self,
        settings: DaskSettings,
        client: Client,
        parts: Parts,
        facts: Sequence[tuple[int, int, int, str]],
        shapes: Sequence[Block] = (),
    ) -> None:
        self._settings, self._connection, self._facts, self._shapes = settings, client, facts, shapes
        self._parts, self._numbers, self._homes = parts.futures, parts.numbers, parts.homes
        self._address = address_of(client)
        if not facts:
            raise ValueError("Found array with 0 sample(s) while a minimum of 1 is required: X has no rows.")
        self._sizes = [n_rows for n_rows, _, _, _ in facts]
        widths = sorted({n_features for _, n_features, _, _ in facts})
        dtypes = sorted({dtype for _, _, _, dtype in facts})
        if len(widths) > 1:
            odd = next(number for number, fact in enumerate(facts) if fact[1] != facts[0][1])
            raise ValueError(
                f"Blocks of X must have the same number of features; block {parts.numbers[0]} has {facts[0][1]}, block "
                f"{parts.numbers[odd]} has {facts[odd][1]}."
            )
        if len(dtypes) > 1:
            raise ValueError(f"Blocks of X must have one dtype; got {', '.join(dtypes)}. Use X.astype(...).")
        self.n_rows, self.n_features = sum(self._sizes), widths[0]
        self.n_weighted, self.dtype = sum(weighted for _, _, weighted, _ in facts), np.dtype(dtypes[0])

    @property
    def _client(self) -> Client:
        if self._connection.status == "closed":  # the client has given up waiting for the scheduler
            raise lost_scheduler(self._address, "the client is closed")
        return self._connection

    def _map(self, function: Callable[..., Any], *columns: Sequence[Any]) -> list[Future]:
        """Return the futures of a function of each part, and of an entry of each column, on the worker of the part."""
        return map_at(self._client, function, self._homes, self._parts, *columns)

    def _replaced(self, function: Callable[..., Any]) -> DaskData:
        parts = self._made(function)
        facts = gather_facts(self._client, parts, self._settings.timeout)
        return DaskData(self._settings, self._client, parts, facts)

    def _made(self, function: Callable[[LocalData], LocalData]) -> Parts:
        """Return new parts that are made of these."""
        return Parts(self._map(tasks.make_from_part, self._each(function)), self._numbers, self._homes)

    def _each(self, value: Any) -> list[Any]:
        """Return a column of tasks: the same value for each part."""
        return [value] * len(self._parts)

    def _gather(self, wanted: Any) -> Any:
        return gather(self._client, wanted, self._parts, self._numbers, self._settings.timeout)

    def arranged(self, summarize: Callable[[Any], Any], bytes_per_row: int, fixed_bytes: int = 0) -> DaskData:
        """Arrange each part in blocks, on its worker."""
        parts = self._made(partial(tasks.arrange_part, summarize, bytes_per_row, fixed_bytes))
        local = Local(memory_budget=self._settings.memory_budget)
        shapes = []
        for n_rows in self._sizes:
            size, n_blocks = block_shape(local, n_rows, bytes_per_row, fixed_bytes)
            numbers: Any = jax.ShapeDtypeStruct((size,), self.dtype)
            rows: Any = jax.ShapeDtypeStruct((size, self.n_features), self.dtype)
            shapes += [Block(rows, numbers, numbers)] * n_blocks
        return self._sharing(DaskData(self._settings, self._client, parts, self._facts, shapes))

    @property
    def blocks(self) -> Sequence[Block]:
        """Return the shapes of the blocks, which are on the workers."""
        return self._shapes

    def sum(self, function: Callable[..., Any], *arguments: Any, aligned: Sequence[Any] = ()) -> Any:
        """Sum on the workers, in a tree of fixed order."""
        return self._total(self._map(tasks.sum_part, self._shared(function, arguments), aligned or self._each(())))

    def _total(self, terms: Sequence[Future]) -> Any:
        """Sum results of parts in a tree of fixed order."""
        while len(terms) > 1:
            groups = [terms[start : start + FAN_IN] for start in range(0, len(terms), FAN_IN)]
            terms = self._client.map(tasks.add_all, groups, pure=False)
        return self._gather(terms[0])

    def keep_states(self, function: Callable[..., Any], *arguments: Any) -> WorkerStates:
        """Keep arrays of each part on its worker."""
        return WorkerStates(self, self._map(tasks.keep_states_of_part, self._shared(function, arguments), self._starts))

    @property
    def _starts(self) -> list[int]:
        """Return the number of the first row of each part."""
        return np.cumsum([0, *self._sizes])[:-1].tolist()

    def sum_with_states(self, function: Callable[..., Any], kept: Any, *arguments: Any) -> tuple[Any, WorkerStates]:
        """Sum on the workers, where the states stay; those of a checkpoint are sent there first."""
        if not isinstance(kept, WorkerStates):
            kept = WorkerStates(self, self._sent(kept))
        futures = self._map(tasks.sum_part_with_states, self._shared(function, arguments), kept.parts)
        terms, after = (map_at(self._client, tasks.entry, self._homes, futures, self._each(place)) for place in (0, 1))
        return self._total(terms), WorkerStates(self, after)

    def _sent(self, kept: dict[str, Any]) -> list[Future]:
        """Return the memory of each part, as a task that survives its worker."""
        rows = {name: joined_rows(values, self.n_rows) for name, values in kept.items()}
        return self._map(
            tasks.states_of_part,
            [
                {name: np.ascontiguousarray(values[..., start : start + size]) for name, values in rows.items()}
                for start, size in zip(self._starts, self._sizes, strict=True)
            ],
        )

    def map(self, function: Callable[..., Any], *arguments: Any) -> Sequence[Any]:
        """Return futures of one list for each part, with one entry for each of its blocks."""
        return self._map(tasks.map_part, self._shared(function, arguments))

    def fold(
        self,
        function: Callable[..., Any],
        carry: Any,
        *arguments: Any,
        aligned: Sequence[Any] = (),
        order: Sequence[int] | None = None,
    ) -> Any:
        """Send the carry from worker to worker; consecutive blocks of one part are one task."""
        ends = np.cumsum(self._blocks_per_part)
        numbers = np.arange(ends[-1]) if order is None else np.asarray(order)
        which = np.searchsorted(ends, numbers, side="right")
        shared = self._share((function, jax.device_get(arguments)))
        carry = self._share(jax.device_get(carry))
        for run in np.split(np.arange(len(numbers)), np.flatnonzero(np.diff(which)) + 1):
            part = int(which[run[0]])
            own = (numbers[run] - (ends[part] - self._blocks_per_part[part])).tolist()
            entries = [aligned[number] for number in numbers[run]] if len(aligned) else None
            carry = self._at(part, tasks.fold_part, self._parts[part], carry, shared, own, entries)
        return self._gather(carry)

    @cached_property
    def _blocks_per_part(self) -> list[int]:
        return self._gather(self._map(tasks.number_of_blocks))

    def of_weights(self, function: Callable[[np.ndarray], Any]) -> list[Any]:
        """Apply the function on the workers."""
        by_part = self._gather(self._map(tasks.weights_of_part, self._each(function)))
        return [result for of_part in by_part for result in of_part]

    def split(self, mapped: Sequence[Any], n: int) -> tuple[Sequence[Any], ...]:
        """Split tuples on the workers."""
        return tuple(
            map_at(self._client, tasks.entries, self._homes, mapped, self._each(number)) for number in range(n)
        )

    def _at(self, part: int, function: Callable[..., Any], *arguments: Any) -> Future:
        """Return the future of a function on the worker of a part."""
        home = self._homes[part]
        return self._client.submit(function, *arguments, workers=[home], allow_other_workers=True, pure=False)

    def _shared(self, function: Callable[..., Any], arguments: Any) -> list[Future]:
        """Return a column of tasks: a function and its arguments, which are sent to the cluster once."""
        return self._each(self._share((function, jax.device_get(arguments))))

    def _share(self, value: Any) -> Future:
        """Send a value to the cluster once, for many tasks."""
        return self._client.submit(tasks.same, value, pure=False)

    def collect(self, mapped: Sequence[Any]) -> Any:
        """Return NumPy arrays without the padding rows."""
        return jax.tree.map(lambda *parts: np.concatenate(parts), *self._gather(self._map(tasks.collect_part, mapped)))

    def results(self, function: Callable[..., Any], *arguments: Any) -> Iterator[Any]:
        """Transfer the results of one part after the other to this process."""
        mapped = self.map(function, *arguments)
        for number, (part, of_part) in enumerate(zip(self._parts, mapped, strict=True)):
            yield self._gather(self._at(number, tasks.collect_part, part, of_part))

    def quantile(self, mapped: Sequence[Any], share: np.ndarray) -> np.ndarray:
        """Find an interval from order statistics of each part, then the exact value among those within it.

        Both steps run on the workers, one after the other without a return to this process; no row leaves its worker.
        """
        share = np.asarray(share, dtype=float)
        ranked = self._map(tasks.ranked_values, mapped)
        marks = map_at(self._client, tasks.landmarks, self._homes, ranked)
        interval = self._client.submit(tasks.interval_of, marks, share, pure=False)
        inside = map_at(self._client, tasks.inside, self._homes, ranked, self._each(interval))
        return self._gather(self._client.submit(tasks.threshold, inside, interval, share, pure=False))

    def can_keep(self, n_bytes: int) -> bool:
        """Return whether the size is within the budget for temporary arrays of all workers."""
        return n_bytes <= bytes_from(self._settings.memory_budget) * max(1, len(self._client.nthreads()))

    def _hashes(self) -> list[np.ndarray]:
        """Compute the hashes of the parts on the workers."""
        return self._gather(self._map(tasks.hash_part, self._starts))

    def rows(self, indices: np.ndarray | None = None) -> np.ndarray:
        """Transfer some rows, or all, to this process."""
        return self._fetch(np.arange(self.n_rows) if indices is None else np.asarray(indices))[0]

    def _fetch(self, indices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        ends = np.cumsum(self._sizes)
        which = np.searchsorted(ends, indices, side="right")
        pieces, order = [], []
        for number in np.unique(which):
            wanted = np.flatnonzero(which == number)
            start = ends[number] - self._sizes[number]
            pieces.append(self._at(number, tasks.take, self._parts[number], indices[wanted] - start))
            order.append(wanted)
        taken = self._gather(pieces)
        back = np.argsort(np.concatenate(order), kind="stable")
        rows, weights = (np.concatenate(parts)[back] for parts in zip(*taken, strict=True))
        return rows, weights

    def each(self, function: Callable[[np.ndarray, np.ndarray], Any]) -> list[Any]:
        """Apply the function to each part, on its worker."""
        return self._gather(self._map(tasks.each_part, self._each(function)))

    def transformed(self, function: Callable[[np.ndarray], np.ndarray]) -> DaskData:
        """Transform the rows of each part, on its worker."""
        return self._sharing(self._replaced(partial(tasks.transform_part, function)), "missing")

    def look(self) -> tuple[np.ndarray, np.ndarray]:
        """Transfer a sample, the same each time, to this process."""
        return self.sample_rows(ROWS_TO_LOOK_AT, np.random.RandomState(0))

    def sample_rows(self, n_rows: int, random: np.random.RandomState) -> tuple[np.ndarray, np.ndarray]:
        """Transfer a sample to this process, drawn without replacement and in order."""
        return self._fetch(np.sort(random.choice(self.n_rows, min(self.n_rows, n_rows), replace=False)))

    def released(self) -> DaskData:
        """Return the same rows, not arranged in blocks."""
        return self._sharing(self._replaced(tasks.release_part))

    def sample(self, n_rows: int, random: np.random.RandomState) -> Data:
        """Transfer a sample to this process, where small problems are solved."""
        if self.n_rows <= n_rows:
            return self
        rows, weights = self.sample_rows(n_rows, random)
        return (
            self
            if not (weights > 0).any()
            else LocalData(Local(memory_budget=self._settings.memory_budget), rows, weights)
        )


class WorkerStates(dict[str, Any]):
    """States that a posterior keeps on the workers, as the futures of those of all parts.

    Its items, which checkpoints save, are transferred to this process. If a worker is lost, Dask computes the states of
    its parts again, from the first iteration, or from the checkpoint from which the fit was resumed.
    """

    def __init__(self, data: DaskData, parts: Sequence[Future]) -> None:
        super().__init__()
        self._data, self.parts = data, parts

    def items(self) -> Any:
        """Return names and arrays (starts, 1, ..., N) of all rows as one block."""
        all_kept = self._data._gather(self._data._map(tasks.rows_of_states, self.parts))
        joined = {name: np.concatenate([kept[name] for kept in all_kept], axis=-1) for name in all_kept[0]}
        return {name: values[:, None] for name, values in joined.items()}.items()
