"""Interface of engines and of the data that they hold. Neither knows anything about models."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np

from multicause.engines.missing import MissingValues, filled_with_means
from multicause.engines.overview import Overview, joined, overview_of
from multicause.parts import Part
from multicause.records import Block

# Axis of the device mesh along which rows are distributed.
ROWS = "rows"


class Data(ABC):
    """Rows of one data set in blocks, wherever they are stored.

    Learning accesses rows through these methods only. Functions take a :class:`multicause.records.Block` first and are
    pure. Blocks are summed in a fixed order, so that results depend on data and settings alone.
    """

    n_rows: int
    n_features: int
    n_weighted: int  # number of rows with positive weight
    n_jobs: int  # number of programs that may run at the same time
    mesh: Any = None  # devices over which the rows of every resident block are distributed, along the axis ROWS
    dtype: np.dtype

    @cached_property
    def overview(self) -> Overview:
        """Return missing values, limits and moments of all rows, computed in one pass."""
        return joined(self.each(partial(overview_of, origin=self._origin())))

    def _origin(self) -> np.ndarray:
        """Return a row (D,) in double precision near which the others lie."""
        first = self.rows(np.array([0])).astype(float)
        return filled_with_means(self.look()[0].astype(float))[0] if np.isnan(first).any() else first[0]

    @cached_property
    def missing(self) -> MissingValues:
        """Return how many values are NaN, which marks those that were not observed, and where none was observed."""
        return self.overview.missing

    @property
    def has_missing(self) -> bool:
        """Whether any value is NaN."""
        return self.missing.n_missing > 0

    def _sharing(self, other: Any, *names: str) -> Any:
        """Return another handle on the same rows, with what has been computed already.

        By default that is all; ``names`` lists what also holds for rows whose values have changed.
        """
        for name in names or ("overview", "missing"):
            if name in self.__dict__:
                other.__dict__[name] = self.__dict__[name]
        return other

    @abstractmethod
    def arranged(self, summarize: Callable[[Any], Any], bytes_per_row: int, fixed_bytes: int = 0) -> Data:
        """Return the same rows in blocks that fit into the memory budget.

        ``summarize`` maps rows (n, D) to one number for each, which is stored with the block; it is
        :func:`~multicause.engines.blocks.zero_summary` where none is needed. Temporary arrays take ``fixed_bytes`` plus
        ``bytes_per_row`` for each row of a block. The number of rows of a block is rounded up, so that data sets of
        similar sizes share compiled programs, and padded with rows of weight zero.
        """

    @property
    @abstractmethod
    def resident(self) -> Block | None:
        """Return all blocks as one record with a leading axis of blocks, if one program should process them all.

        None if blocks should be processed by several programs, for example on several cores.
        """

    @property
    @abstractmethod
    def blocks(self) -> Sequence[Block]:
        """Return the blocks, in order."""

    @abstractmethod
    def sum(self, function: Callable[..., Any], *arguments: Any, aligned: Sequence[Any] = ()) -> Any:
        """Return Σ over blocks of ``function(block, *arguments)``, a tree of arrays.

        ``aligned`` holds results of :meth:`map`, one entry per block; the entry of a block is passed as the last
        argument, so that per-row values that are kept between two passes stay with their block.
        """

    @abstractmethod
    def map(self, function: Callable[..., Any], *arguments: Any) -> Sequence[Any]:
        """Return ``function(block, *arguments)`` of every block, in order, stored where the block is."""

    @abstractmethod
    def fold(
        self,
        function: Callable[..., Any],
        carry: Any,
        *arguments: Any,
        aligned: Sequence[Any] = (),
        order: Sequence[int] | None = None,
    ) -> Any:
        """Return the carry after ``carry = function(block, carry, *arguments)`` for one block after the other.

        It serves learning in small batches, where every block continues with the parameters that the one before
        has learned. ``order`` has the numbers of the blocks in the order in which they are visited, by default from
        the first to the last. ``aligned`` has one entry per block, which is passed as the last argument. Blocks that
        are not in memory are read ahead; on a cluster the carry moves from worker to worker, and the rows do not move.
        """

    @abstractmethod
    def keep_states(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return the memory that ``function(block, *arguments, start)`` creates for the rows of every block.

        ``start`` is the number of the block's first row. The result has arrays (starts, ..., n) by name; together they
        are the kept states of all rows (:mod:`multicause.engines.kept_states`).
        """

    @abstractmethod
    def sum_with_states(self, function: Callable[..., Any], kept: Any, *arguments: Any) -> tuple[Any, Any]:
        """Return Σ over blocks of the first result of ``function(block, *arguments, own)``, and the next states.

        ``own`` are the states of the block, and the second result replaces it. ``kept`` comes from :meth:`keep_states`,
        from this method or from a checkpoint; it must not be used afterwards.
        """

    @abstractmethod
    def of_weights(self, function: Callable[[np.ndarray], Any]) -> list[Any]:
        """Return ``function(weights)`` of every block, in order, without reading its rows."""

    def split(self, mapped: Sequence[Any], n: int) -> tuple[Sequence[Any], ...]:
        """Split results of :meth:`map` that are tuples of ``n`` entries into ``n`` results."""
        return tuple(zip(*mapped, strict=True))

    @abstractmethod
    def collect(self, mapped: Sequence[Any]) -> Any:
        """Return results of :meth:`map` with one entry per row as arrays over all rows of the data."""

    def results(self, function: Callable[..., Any], *arguments: Any) -> Iterator[Any]:
        """Yield the arrays of :meth:`collect` of ``map(function, *arguments)``, some rows at a time."""
        yield self.collect(self.map(function, *arguments))

    @abstractmethod
    def quantile(self, mapped: Sequence[Any], share: np.ndarray) -> np.ndarray:
        """Return the largest number that rows with this share of all weight reach or exceed, for each start: (starts,).

        ``mapped`` holds numbers (starts, n) of each block. With equal weights, this is the k-th largest number,
        k = ⌈share · N⌉.
        """

    @abstractmethod
    def can_keep(self, n_bytes: int) -> bool:
        """Return whether results of :meth:`map` of this total size fit into the memory budget."""

    @abstractmethod
    def rows(self, indices: np.ndarray | None = None) -> np.ndarray:
        """Return some rows, or all, as NumPy arrays."""

    @abstractmethod
    def each(self, function: Callable[[np.ndarray, np.ndarray], Any]) -> list[Any]:
        """Return ``function(rows, weights)`` of parts of the rows (n, D), as NumPy arrays and in order.

        Data in memory are one part. Several parts may be computed at the same time, so the function must be pure.
        """

    def fingerprint(self) -> bytes:
        """Return a hash of rows and weights that does not depend on how they are divided into parts."""
        hashed = np.sum(self._hashes(), axis=0, dtype=np.uint64)
        return f"{self.dtype.str}{self.n_rows},{self.n_features}:".encode() + hashed.tobytes()

    @abstractmethod
    def _hashes(self) -> list[np.ndarray]:
        """Return sums of hashes of parts of the rows."""

    @abstractmethod
    def transformed(self, function: Callable[[np.ndarray], np.ndarray]) -> Data:
        """Return the data whose rows are ``function(rows)``, a function of each row; not arranged in blocks."""

    @abstractmethod
    def look(self) -> tuple[np.ndarray, np.ndarray]:
        """Return rows and weights as NumPy arrays for inspection: all if they are in memory, else a random sample."""

    @abstractmethod
    def sample_rows(self, n_rows: int, random: np.random.RandomState) -> tuple[np.ndarray, np.ndarray]:
        """Return rows and weights of a random sample as NumPy arrays, or of all rows if there are not more."""

    @abstractmethod
    def released(self) -> Data:
        """Return the same rows, not arranged in blocks, so that no memory of a device is held."""

    @abstractmethod
    def sample(self, n_rows: int, random: np.random.RandomState) -> Data:
        """Return a random sample of the rows as a separate data set, or all rows if there are not more."""


class LazyResults(ABC):
    """Results of methods such as ``transform`` that are computed later, where the rows are."""

    @abstractmethod
    def n_columns(self, X: Any) -> int | None:
        """Return the number of columns of X, or None if it is unknown until X is computed."""

    @abstractmethod
    def compute_later(
        self, function: Callable[..., Any], X: Any, *arguments: Any, row: np.ndarray, out: Any, refusal: str | None
    ) -> Any:
        """Return what ``function(rows, *arguments)`` returns for all rows of X.

        ``row`` (1, D) is an example of rows, ``out`` where the user wants results to be written, if not None, and
        ``refusal`` says why no value may be missing, if so.
        """


class Engine(Part):
    """Base class of engines, which store data and compute sums over it."""

    #: Largest memory of the temporary arrays of one block, as a number of bytes or a string such as "512MiB".
    memory_budget: str | int
    #: How results for data that this engine accepts are computed later, where the rows are; None if they are not.
    lazy: ClassVar[LazyResults | None] = None
    #: Whether arrays that are loaded stay in the memory of this process.
    in_this_process: ClassVar[bool] = False

    @classmethod
    def accepts(cls, X: Any) -> bool:
        """Return whether this engine is the default one for the type of X."""
        return False

    def source(self, X: Any) -> Any:
        """Return X in the form that :meth:`load` takes, if its rows are not in memory; None if they are."""
        return None

    @abstractmethod
    def load(self, X: Any, weights: np.ndarray | None = None, refusal: str | None = None) -> Data:
        """Return a handle on rows (N, D) and their weights (N,), which are one by default.

        ``refusal`` says why no value may be missing, for the error that names such a value. It is for rows that
        :meth:`source` returned; those in memory have been checked before.
        """
