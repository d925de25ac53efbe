"""Sources of rows that are not in memory: memory maps, HDF5 and zarr arrays, read in parts."""

from __future__ import annotations

import mmap
import os
from importlib import import_module
from typing import Any

import numpy as np
from scipy.sparse import issparse

from multicause.engines.source import Source
from multicause.engines.sparse_source import SparseSource

# Number of bytes of which the address of an array must be a multiple for JAX.
ALIGNMENT = 64


class _ArrayLikeSource(Source):
    """Array of another library, or a part of a memory map, that is read by slices."""

    def __init__(self, name: str, array: Any) -> None:
        super().__init__(name, array.shape, np.dtype(array.dtype))
        self._array = array
        if getattr(array, "filename", None) is not None:
            self.files = (os.path.abspath(str(array.filename)),)

    def __getstate__(self) -> dict[str, Any]:
        """Replace an HDF5 dataset, which other processes must open themselves, by its file and its name."""
        if type(self._array).__module__.startswith("h5py"):
            return {**self.__dict__, "_array": (self._array.file.filename, self._array.name)}
        return self.__dict__

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if isinstance(self._array, tuple):
            filename, name = self._array
            self._array = import_module("h5py").File(filename, "r")[name]

    def _read(self, start: int, stop: int) -> np.ndarray:
        rows = np.array(self._array[start:stop])
        mapped = getattr(self._array, "_mmap", None)
        if mapped is not None and hasattr(mmap, "MADV_DONTNEED") and getattr(self._array, "mode", "c") == "r":
            # Pages that have been read would otherwise count as memory of this process.
            mapped.madvise(mmap.MADV_DONTNEED)
        return rows


class _MemoryMapSource(Source):
    """Memory map of a whole file, read from the file, because pages of a map count as memory of this process."""

    def __init__(self, array: np.memmap) -> None:
        super().__init__(f"the memory map of {array.filename}", array.shape, array.dtype)
        self._stored, self._offset, self._path = array.dtype, int(array.offset), os.path.abspath(str(array.filename))
        self._size, self.files = os.path.getsize(self._path), (self._path,)
        # Like the map, the open file continues to exist if its name is removed.
        self._file = os.open(self._path, os.O_RDONLY)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_file"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def _read(self, start: int, stop: int) -> np.ndarray:
        if not hasattr(self, "_file"):  # in another process
            self._file = os.open(self._path, os.O_RDONLY)
        if os.fstat(self._file).st_size > self._size:
            raise OSError("it has become larger since it was opened. Do not write to a file while it is in use.")
        width = self.shape[1] * self._stored.itemsize
        values = aligned_empty((stop - start, self.shape[1]), self._stored)
        buffer, done = values.data.cast("B"), 0
        while done < len(buffer):
            count = os.preadv(self._file, [buffer[done:]], self._offset + start * width + done)
            if count == 0:
                return values[: done // width]
            done += count
        return values

    def __del__(self) -> None:
        if hasattr(self, "_file"):
            os.close(self._file)


def aligned_empty(shape: tuple[int, int], dtype: np.dtype) -> np.ndarray:
    """Return an array whose memory begins where JAX can use it on a CPU without a copy."""
    n_bytes = shape[0] * shape[1] * dtype.itemsize
    memory = np.empty(n_bytes + ALIGNMENT, np.uint8)
    begin = -memory.ctypes.data % ALIGNMENT
    return memory[begin : begin + n_bytes].view(dtype).reshape(shape)


def as_source(X: Any) -> Source | None:
    """Return a source for X, or None if X is a dense array in memory."""
    if isinstance(X, Source):
        return X
    if isinstance(X, np.memmap):
        whole = isinstance(X.base, mmap.mmap) and X.flags.c_contiguous and X.mode == "r" and X.filename is not None
        if whole and hasattr(os, "preadv"):
            return _MemoryMapSource(X)
        return _ArrayLikeSource(f"the memory map of {X.filename}", X)
    if issparse(X):
        return SparseSource(X)
    package = type(X).__module__.partition(".")[0]
    if package in ("h5py", "zarr"):
        if not hasattr(X, "shape"):
            raise TypeError(
                f"X must be an array; got a {type(X).__name__} of {package}, which holds arrays. Pass one of them, "
                "such as X['name']."
            )
        return _ArrayLikeSource(f"the {package} array {getattr(X, 'name', '')}".rstrip(), X)
    return None


def source_for_workers(X: Any) -> Source | None:
    """Return a source that other processes can read, given access to the same files; None if there is none."""
    source = as_source(X)
    part_of_map = isinstance(source, _ArrayLikeSource) and isinstance(X, np.memmap)
    return None if part_of_map else source
