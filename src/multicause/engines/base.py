"""The interface of an engine and of the data that it holds. Neither knows anything about models."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from multicause.engines.fingerprints import hash_of_rows
from multicause.engines.missing import MissingValues, combined, missing_values_of
from multicause.model import Block
from multicause.parts import Part

# The axis of a mesh of devices along which rows are spread.
ROWS = "rows"


class Data(ABC):
    """The rows of one data set, wherever they are, in blocks.

    Learning sees rows through these methods only. Functions take a :class:`multicause.model.Block` first and are pure.
    Blocks are summed in a fixed order, so that a result depends on nothing but data and settings.
    """

    n_rows: int
    n_features: int
    n_weighted: int  # rows of positive weight
    n_jobs: int  # programs that may run at the same time
    mesh: Any = None  # devices over which the rows of every resident block are spread, along the axis ROWS
    dtype: np.dtype

    @cached_property
    def missing(self) -> MissingValues:
        """Return how many values are NaN, which marks those that were not observed, and where none was observed."""
        return combined(self.each(missing_values_of), self.n_features)

    @property
    def has_missing(self) -> bool:
        """Whether any value is NaN."""
        return self.missing.n_missing > 0

    def _sharing(self, other: Any) -> Any:
        """Return another handle on the same rows, which need not be searched for missing values again."""
        if "missing" in self.__dict__:
            other.__dict__["missing"] = self.__dict__["missing"]
        return other

    @abstractmethod
    def arranged(
        self, summarize: Callable[[Any], Any], bytes_per_row: int, fixed_bytes: int = 0, *, exact: bool = False
    ) -> Data:
        """Return the same rows in blocks that keep within the memory budget.

        ``summarize`` turns rows (n, D) into one number for each, which stays with the block. Temporary arrays take
        ``fixed_bytes`` in any case, and ``bytes_per_row`` more for each row of a block. The number of rows of a block
        is rounded up, so that data sets of similar sizes share compiled programs, and the rest is filled up with rows
        of weight zero; ``exact`` fills up as few as possible.
        """

    @property
    @abstractmethod
    def resident(self) -> Block | None:
        """All blocks as one record with a leading axis of blocks, if one program can best work through all of them.

        None if blocks are better handed to several programs, for example because they run on several cores.
        """

    @property
    @abstractmethod
    def blocks(self) -> Sequence[Block]:
        """The blocks, in order."""

    @abstractmethod
    def sum(self, function: Callable[..., Any], *arguments: Any, aligned: Sequence[Any] = ()) -> Any:
        """Return Σ over blocks of ``function(block, *arguments)``, a tree of arrays.

        ``aligned`` holds results of :meth:`map`, one entry per block; each block's own entry comes as the last
        argument, so that what a row has to keep between two passes stays with its block.
        """

    @abstractmethod
    def map(self, function: Callable[..., Any], *arguments: Any) -> Sequence[Any]:
        """Return ``function(block, *arguments)`` of every block, in order, kept where the block is."""

    def split(self, mapped: Sequence[Any], n: int) -> tuple[Sequence[Any], ...]:
        """Return each of the ``n`` entries of results of :meth:`map` that are tuples, as results of their own."""
        return tuple(zip(*mapped, strict=True))

    @abstractmethod
    def collect(self, mapped: Sequence[Any]) -> Any:
        """Return results of :meth:`map` with one entry per row as arrays over all rows of the data."""

    def results(self, function: Callable[..., Any], *arguments: Any) -> Iterator[Any]:
        """Yield what :meth:`collect` would return of ``map(function, *arguments)``, of some rows after the other."""
        yield self.collect(self.map(function, *arguments))

    @abstractmethod
    def quantile(self, mapped: Sequence[Any], share: np.ndarray) -> np.ndarray:
        """For each start, return the largest number that rows with this share of all weight reach or exceed: (starts,).

        ``mapped`` holds numbers (starts, n) of each block. With equal weights, this is the k-th largest number,
        k = ⌈share · N⌉.
        """

    @abstractmethod
    def can_keep(self, n_bytes: int) -> bool:
        """Return whether results of :meth:`map` of this size, of all blocks together, are within the memory budget."""

    @abstractmethod
    def rows(self, indices: np.ndarray | None = None) -> np.ndarray:
        """Return some rows, or all, on the host."""

    @abstractmethod
    def each(self, function: Callable[[np.ndarray, np.ndarray], Any]) -> list[Any]:
        """Return ``function(rows, weights)`` of parts of the rows (n, D), on the host and in order.

        Data in memory are one part.
        """

    def fingerprint(self) -> bytes:
        """Return what tells these rows and weights from others, however they are cut into parts."""
        hashed = sum(self._hashes(), np.zeros(2, dtype=np.uint64))
        return f"{self.dtype.str}{self.n_rows},{self.n_features}:".encode() + hashed.tobytes()

    def _hashes(self) -> list[np.ndarray]:
        """Return sums of hashes of parts of the rows."""
        start = 0

        def hashed(rows: np.ndarray, weights: np.ndarray) -> np.ndarray:
            nonlocal start
            start += len(rows)
            return hash_of_rows(rows, weights, start - len(rows))

        return self.each(hashed)

    @abstractmethod
    def transformed(self, function: Callable[[np.ndarray], np.ndarray]) -> Data:
        """Return the data whose rows are ``function(rows)``, which works on each row by itself, not in blocks."""

    @abstractmethod
    def look(self) -> tuple[np.ndarray, np.ndarray]:
        """Return rows and weights to look at on the host: all, if they are in memory, or else a random sample."""

    @abstractmethod
    def released(self) -> Data:
        """Return the same rows, not arranged in blocks, so that no memory of a device is held."""

    @abstractmethod
    def sample(self, n_rows: int, random: np.random.RandomState) -> Data:
        """Return a random part of the rows as a data set of its own; all, if there are not more."""


class Engine(Part):
    """Where data is, and how sums over it are computed."""

    def source(self, X: Any) -> Any:
        """Return what :meth:`load` takes for rows that are not in the memory of this process, or None if they are."""
        return None

    @abstractmethod
    def load(self, X: Any, weights: np.ndarray | None = None) -> Data:
        """Take hold of rows (N, D) and their weights (N,), which are one by default."""
