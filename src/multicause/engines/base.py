"""The interface of an engine: it holds the data, and knows nothing of models."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from multicause.model import Block
from multicause.parts import Part


@dataclass(frozen=True)
class Blocks:
    """The rows of one data set in blocks of equal size, and how many of the rows are real."""

    blocks: Sequence[Block]
    n_rows: int
    n_weighted: int  # rows of positive weight

    def __iter__(self) -> Iterator[Block]:
        return iter(self.blocks)


class Engine(Part):
    """Three verbs are all that learning needs of data. Functions take a block first, and are pure.

    The order in which blocks are summed is fixed, so that a result depends on nothing but data and settings.
    """

    @abstractmethod
    def load(
        self,
        X: np.ndarray,
        weights: np.ndarray,
        summarize: Callable[[Any], Any],
        bytes_per_row: int,
        fixed_bytes: int = 0,
    ) -> Blocks:
        """Take hold of rows (N, D) and weights (N,), in blocks that keep within the memory budget.

        ``summarize`` turns rows (n, D) into one number for each, which stays with the block. Temporary arrays take
        ``fixed_bytes`` in any case, and ``bytes_per_row`` more for each row of a block.
        """

    @abstractmethod
    def sum(self, function: Callable[..., Any], blocks: Blocks, *arguments: Any, aligned: Sequence[Any] = ()) -> Any:
        """Σ over blocks of ``function(block, *arguments)``, a record that has ``+``.

        ``aligned`` holds results of :meth:`map` with one entry per block; each block's own entry comes as the
        last argument, so that what a row needs to remember between two passes stays with its block.
        """

    @abstractmethod
    def map(self, function: Callable[..., Any], blocks: Blocks, *arguments: Any) -> Sequence[Any]:
        """``function(block, *arguments)`` of every block, kept where the block is, in order."""

    @abstractmethod
    def collect(self, mapped: Sequence[Any], blocks: Blocks) -> Any:
        """Results of :meth:`map` with one entry per row, as arrays over all rows of the data."""

    @abstractmethod
    def can_keep(self, n_bytes: int) -> bool:
        """Whether results of :meth:`map` of this size, all blocks together, are within the memory budget."""

    @abstractmethod
    def quantile(self, mapped: Sequence[Any], blocks: Blocks, share: np.ndarray) -> np.ndarray:
        """For each start, the largest number that rows with this share of all weight reach or exceed: (starts,).

        ``mapped`` holds numbers (starts, n) of each block; the order is that of all rows of the data. With equal
        weights this is the k-th largest, k = ⌈share · N⌉.
        """
