"""States that posteriors keep for each row between iterations, in memory, in a file or on workers.

They are a dictionary of arrays (starts, blocks, ..., n) with the rows of a block along the last axis. Rows of all
blocks together are those of the data, in order, so that they can be arranged in other blocks, as when a fit resumes
with another engine.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

KeptStates = dict[str, Any]


def joined_rows(values: np.ndarray, n_rows: int) -> np.ndarray:
    """Return the states of all rows, (starts, ..., N), given blocks (starts, blocks, ..., n)."""
    values = np.moveaxis(np.asarray(values), 1, -2)
    return values.reshape(*values.shape[:-2], -1)[..., :n_rows]


def in_blocks(values: np.ndarray, n_blocks: int, size: int) -> np.ndarray:
    """Return the states of rows (starts, ..., N) as blocks (starts, blocks, ..., n), padded with the first row."""
    filling = np.repeat(values[..., :1], n_blocks * size - values.shape[-1], axis=-1)
    values = np.concatenate([values, filling], axis=-1)
    return np.moveaxis(values.reshape(*values.shape[:-1], n_blocks, size), -2, 1)


def rearranged(kept: KeptStates, n_blocks: int, size: int, n_rows: int) -> KeptStates:
    """Return kept states in blocks of the given size, unchanged if they have these already."""
    some = next(iter(kept.values()))
    if some.shape[1] == n_blocks and some.shape[-1] == size:
        return kept
    return {name: in_blocks(joined_rows(values, n_rows), n_blocks, size) for name, values in kept.items()}


def first_of_blocks(blocks: Iterable[KeptStates], n_blocks: int, can_keep: Callable[[int], bool]) -> KeptStates:
    """Return the states of all blocks, given those of one after the other.

    They are in a temporary file, which ends with this process, if they would exceed the memory budget.
    """
    kept: KeptStates = {}
    for number, of_block in enumerate(blocks):
        of_block = {name: np.asarray(values) for name, values in of_block.items()}
        if not kept:
            in_memory = can_keep(n_blocks * sum(values.nbytes for values in of_block.values()))
            kept = {name: _room(values, n_blocks, in_memory) for name, values in of_block.items()}
        store(kept, number, of_block)
    return kept


def within_budget(kept: KeptStates, can_keep: Callable[[int], bool]) -> KeptStates:
    """Return kept states that can be changed, in a temporary file if they would exceed the memory budget."""
    arrays = {name: np.asarray(values) for name, values in kept.items()}
    in_file = any(isinstance(values, np.memmap) for values in kept.values())
    if in_file or (can_keep(sum(values.nbytes for values in arrays.values())) and _writable(arrays)):
        return kept if in_file else arrays
    n_blocks = next(iter(arrays.values())).shape[1]
    return first_of_blocks((block_of(arrays, number) for number in range(n_blocks)), n_blocks, can_keep)


def block_of(kept: KeptStates, number: int) -> KeptStates:
    """Return the states of one block: arrays (starts, ..., n)."""
    return {name: values[:, number] for name, values in kept.items()}


def store(kept: KeptStates, number: int, of_block: KeptStates) -> None:
    """Replace the states of one block."""
    for name, values in of_block.items():
        kept[name][:, number] = np.asarray(values)


def _writable(arrays: KeptStates) -> bool:
    return all(values.flags.writeable for values in arrays.values())


def _room(values: np.ndarray, n_blocks: int, in_memory: bool) -> np.ndarray:
    shape = (values.shape[0], n_blocks, *values.shape[1:])
    if in_memory:
        return np.empty(shape, values.dtype)
    with tempfile.TemporaryFile() as file:  # the map keeps the file until it is released itself
        return np.memmap(file, values.dtype, "w+", shape=shape)
