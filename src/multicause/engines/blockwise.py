"""Base class of data in memory and in files, whose blocks are processed in order by this process."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from multicause.arrays import bytes_from
from multicause.engines import kept_states
from multicause.engines.base import Data, Engine
from multicause.engines.blocks import add, collect
from multicause.records import Block


class BlockwiseData(Data):
    """Data of this process, whose blocks are processed in order."""

    _engine: Engine

    @abstractmethod
    def _run(self, function: Callable[..., Any], arguments: tuple[Any, ...], aligned: Sequence[Any]) -> Iterable[Any]:
        """Return ``function(block, *arguments)`` of every block, in order; see :meth:`Data.sum` for ``aligned``."""

    @abstractmethod
    def _visit(self, order: Sequence[int]) -> Iterable[Block]:
        """Return blocks in the given order."""

    def fold(
        self,
        function: Callable[..., Any],
        carry: Any,
        *arguments: Any,
        aligned: Sequence[Any] = (),
        order: Sequence[int] | None = None,
    ) -> Any:
        """Visit one block after the other in this process."""
        numbers = range(len(self.blocks)) if order is None else [int(number) for number in order]
        for number, block in zip(numbers, self._visit(numbers), strict=True):
            carry = function(block, carry, *arguments, *((aligned[number],) if len(aligned) else ()))
        return carry

    def sum(self, function: Callable[..., Any], *arguments: Any, aligned: Sequence[Any] = ()) -> Any:
        """Sum the results from the first block to the last, whichever is computed first."""
        total = None
        for term in self._run(function, arguments, aligned):
            total = self._on_one_device(term) if total is None else add(total, self._on_one_device(term))
        return total

    def _on_one_device(self, term: Any) -> Any:
        """Return the result of a block where it can be added to those of other blocks."""
        return term

    def map(self, function: Callable[..., Any], *arguments: Any, aligned: Sequence[Any] = ()) -> Sequence[Any]:
        """Return a list with one entry per block."""
        return list(self._run(function, arguments, aligned))

    def keep_states(self, function: Callable[..., Any], *arguments: Any) -> kept_states.KeptStates:
        """Keep arrays of all blocks in this process, or in a temporary file."""
        size = len(self.blocks[0].rows)
        starts = [np.asarray(number * size) for number in range(len(self.blocks))]
        return kept_states.first_of_blocks(self._run(function, arguments, starts), len(starts), self.can_keep)

    def sum_with_states(
        self, function: Callable[..., Any], kept: kept_states.KeptStates, *arguments: Any
    ) -> tuple[Any, kept_states.KeptStates]:
        """Replace the states of one block after the other."""
        n_blocks = len(self.blocks)
        kept = kept_states.rearranged(kept, n_blocks, len(self.blocks[0].rows), self.n_rows)
        kept = kept_states.within_budget(kept, self.can_keep)
        own, total = [kept_states.block_of(kept, number) for number in range(n_blocks)], None
        for number, (term, after) in enumerate(self._run(function, arguments, own)):
            kept_states.store(kept, number, after)
            total = self._on_one_device(term) if total is None else add(total, self._on_one_device(term))
        return total, kept

    def collect(self, mapped: Sequence[Any]) -> Any:
        """Return NumPy arrays without the padding rows."""
        return collect(mapped, self.n_rows)

    def can_keep(self, n_bytes: int) -> bool:
        """Return whether the size is within the budget for the temporary arrays of one block."""
        return n_bytes <= bytes_from(self._engine.memory_budget)
