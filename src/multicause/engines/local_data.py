"""Rows in the memory of this process, in blocks on one device, on several, or on all cores of the CPU."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from multicause.arrays import bytes_from, on_cpu
from multicause.engines.base import ROWS
from multicause.engines.blocks import block_shape, filled_up, quantile_of
from multicause.engines.blockwise import BlockwiseData
from multicause.engines.fingerprints import hash_of_rows
from multicause.engines.overview import ROWS_AT_ONCE, Overview, joined, overview_of
from multicause.records import Block
from multicause.runtime.blas import one_blas_thread
from multicause.runtime.parallel import number_of_jobs, run_all

# Number of pieces of the rows that one task of the overview works through.
SLICES = 8


class LocalData(BlockwiseData):
    """Rows in memory; see :class:`multicause.engines.base.Data`."""

    _engine: Any  # of the class Local

    def __init__(
        self,
        engine: Any,
        X: np.ndarray,
        weights: np.ndarray,
        blocks: Sequence[Block] = (),
        bytes_per_block: int = 1,
        mesh: jax.sharding.Mesh | None = None,
    ) -> None:
        self._engine, self._X, self._weights, self._blocks = engine, X, weights, blocks
        self.n_rows, self.n_features = X.shape
        self.dtype = X.dtype
        self.n_weighted = int((weights > 0).sum())
        # Blocks that are computed at the same time share the memory budget.
        most = max(1, bytes_from(engine.memory_budget) // bytes_per_block)
        self.mesh = mesh
        self.n_jobs = min(most, number_of_jobs(engine.n_jobs)) if on_cpu() and mesh is None else 1

    def __sizeof__(self) -> int:
        """Return the memory of rows, weights and blocks, from which Dask decides whether data can be moved."""
        arrays = jax.tree.leaves((self._X, self._weights, list(self._blocks)))
        return object.__sizeof__(self) + sum(int(array.nbytes) for array in arrays)

    def __getstate__(self) -> dict[str, Any]:
        """Convert blocks to NumPy arrays: JAX arrays would lose their double precision in a pickle."""
        kept = {name: value for name, value in self.__dict__.items() if name != "resident"}
        return {**kept, "_blocks": [jax.device_get(block) for block in self._blocks]}

    def arranged(self, summarize: Callable[[Any], Any], bytes_per_row: int, fixed_bytes: int = 0) -> LocalData:
        """Divide the rows into blocks of equal size, so that one program is compiled."""
        mesh = self._engine.mesh()
        n_devices = 1 if mesh is None else mesh.size
        size, n_blocks = block_shape(
            self._engine,
            -(-self.n_rows // n_devices),
            bytes_per_row,
            fixed_bytes,
            for_threads=on_cpu() and mesh is None,
        )
        size *= n_devices
        blocks = []
        for number in range(n_blocks):
            own = slice(number * size, (number + 1) * size)
            rows, weights = filled_up(self._X[own], self._weights[own], size)
            # On a CPU, device_put takes the user's array over; jnp.array would compile a program for each shape.
            if on_cpu():
                rows, weights = np.array(rows), np.array(weights)
            on_device, weights_on_device = jax.device_put((rows, weights))
            blocks.append(Block(on_device, weights_on_device, summarize(on_device)))
        size_of_block = fixed_bytes + size * bytes_per_row
        return self._sharing(LocalData(self._engine, self._X, self._weights, blocks, size_of_block, mesh))

    @property
    def blocks(self) -> Sequence[Block]:
        """Return the blocks, in order."""
        if not self._blocks:
            raise RuntimeError("Data must be arranged in blocks before they can be used: call arranged().")
        return self._blocks

    @cached_property
    def resident(self) -> Block | None:
        """Return all blocks on an accelerator, or the only block on a CPU; None for several blocks on a CPU."""
        if on_cpu() and len(self.blocks) > 1 and self.mesh is None:
            return None
        if on_cpu() and self.mesh is None:
            return jax.tree.map(lambda leaf: jax.device_put(np.array(leaf)[None]), self.blocks[0])
        stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *self.blocks)
        if self.mesh is not None:
            spread = jax.sharding.NamedSharding(self.mesh, jax.sharding.PartitionSpec(None, ROWS))
            stacked = jax.tree.map(lambda leaf: jax.device_put(leaf, spread), stacked)
        # A second copy would halve the size of the data that an accelerator can take.
        self._blocks = _Slices(stacked)
        return stacked

    def _run(self, function: Callable[..., Any], arguments: tuple[Any, ...], aligned: Sequence[Any]) -> list[Any]:
        tasks = [
            (block, *arguments, *((aligned[number],) if aligned else ())) for number, block in enumerate(self.blocks)
        ]
        return run_all(function, tasks, self.n_jobs)

    def _visit(self, order: Sequence[int]) -> Iterable[Block]:
        return (self.blocks[number] for number in order)

    def of_weights(self, function: Callable[[np.ndarray], Any]) -> list[Any]:
        """Apply the function to the weights of one block after the other."""
        return [function(np.asarray(block.weights)) for block in self.blocks]

    def quantile(self, mapped: Sequence[Any], share: np.ndarray) -> np.ndarray:
        """Sort the values of all blocks, partially where all weights are equal."""
        weights = np.concatenate([np.asarray(block.weights, dtype=float) for block in self.blocks])
        return quantile_of(mapped, weights, share)

    def rows(self, indices: np.ndarray | None = None) -> np.ndarray:
        """Return rows of the array that was loaded."""
        return self._X if indices is None else self._X[indices]

    def each(self, function: Callable[[np.ndarray, np.ndarray], Any]) -> list[Any]:
        """Apply the function to all rows at once."""
        return [function(self._X, self._weights)]

    @cached_property
    def overview(self) -> Overview:
        """Compute the overview of slices of the rows on all cores."""
        n_jobs, size = number_of_jobs(self._engine.n_jobs), SLICES * ROWS_AT_ONCE
        slices = [slice(start, start + size) for start in range(0, self.n_rows, size)]
        origin = self._origin()
        tasks = [(self._X[own], self._weights[own], origin) for own in slices]
        with one_blas_thread():  # otherwise each of the tasks would use all cores
            return joined(run_all(overview_of, tasks, n_jobs))

    def _hashes(self) -> list[np.ndarray]:
        return [hash_of_rows(self._X, self._weights, 0)]

    def transformed(self, function: Callable[[np.ndarray], np.ndarray]) -> LocalData:
        """Transform all rows at once."""
        return self._sharing(LocalData(self._engine, function(self._X), self._weights), "missing")

    def look(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the arrays that were loaded."""
        return self._X, self._weights

    def sample_rows(self, n_rows: int, random: np.random.RandomState) -> tuple[np.ndarray, np.ndarray]:
        """Draw without replacement and keep the order."""
        if self.n_rows <= n_rows:
            return self._X, self._weights
        chosen = np.sort(random.choice(self.n_rows, n_rows, replace=False))
        return self._X[chosen], self._weights[chosen]

    def released(self) -> LocalData:
        """Return a handle on the arrays that were loaded."""
        return self._sharing(LocalData(self._engine, self._X, self._weights))

    def sample(self, n_rows: int, random: np.random.RandomState) -> LocalData:
        """Draw without replacement and keep the order; all rows are returned if no drawn row has a weight."""
        if self.n_rows <= n_rows:
            return self
        rows, weights = self.sample_rows(n_rows, random)
        return LocalData(self._engine, rows, weights) if (weights > 0).any() else self


class _Slices(Sequence):
    """Sequence of blocks that are sliced from one stacked record on access."""

    def __init__(self, stacked: Block) -> None:
        self._stacked = stacked

    def __len__(self) -> int:
        return len(self._stacked.rows)

    def __getitem__(self, number: Any) -> Any:
        if number >= len(self):
            raise IndexError(number)
        return jax.tree.map(lambda leaf: leaf[number], self._stacked)
