"""Sources of the rows of one file: npy, HDF5 or zarr.

Files are opened when rows are read, and closed again where that is fast, so that a set may have more files than a
process may have open. A source can be sent to another process that has access to the same files.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from multicause.engines.source import Source
from multicause.runtime.file_kinds import HDF5, suffix_of
from multicause.runtime.optional import need

# Number of names that an error lists.
LISTED = 5
# Smallest change of a file's time, in seconds, that counts: computers that share a file may round its time differently.
LEAST_SECONDS = 1.0


class FileSource(Source):
    """Base class of sources of one file."""

    def __init__(self, path: Path, shape: tuple[int, ...], dtype: Any) -> None:
        super().__init__(repr(str(path)), shape, dtype)
        self._path = Path(os.path.abspath(path))
        self.files = (str(self._path),)
        self._size, self._time = self._size_and_time()

    def _size_and_time(self) -> tuple[int, float]:
        """Return the current size of the file and the time of its last change; zeros for a folder."""
        if self._path.is_dir():
            return 0, 0.0
        now = self._path.stat()
        return now.st_size, now.st_mtime

    def read(self, start: int, stop: int) -> np.ndarray:
        """Return the rows from ``start`` to ``stop``; raise OSError if the file has changed."""
        where = f"Rows {start:,} to {min(stop, self.shape[0]) - 1:,} of {self.name} cannot be read"
        try:
            size, time = self._size_and_time()
        except OSError as error:
            raise OSError(f"{where}: {error.strerror}. Do not move files while they are in use.") from error
        if size != self._size or abs(time - self._time) >= LEAST_SECONDS:
            what = "its size has changed" if size != self._size else "it has been written or replaced"
            raise OSError(f"{where}: {what} since it was opened. Do not write to a file while it is in use.")
        return super().read(start, stop)


class NpySource(FileSource):
    """NumPy array file; an array with three axes holds one image in each row."""

    def __init__(self, path: Path) -> None:
        try:
            stored: Any = np.load(path, mmap_mode="r", allow_pickle=False)
        except (ValueError, EOFError) as error:
            raise ValueError(f"{str(path)!r} cannot be read as an array of numbers: {error}") from error
        self.image_shape = stored.shape[1:] if stored.ndim == 3 else None
        shape = stored.shape if self.image_shape is None else (len(stored), self.image_shape[0] * self.image_shape[1])
        super().__init__(path, shape, stored.dtype)
        self._stored, self._offset, self._by_rows = stored.dtype, int(stored.offset), bool(stored.flags.c_contiguous)

    def _read(self, start: int, stop: int) -> np.ndarray:
        if not self._by_rows:
            return np.load(self._path, mmap_mode="r")[start:stop].reshape(stop - start, -1)
        with self._path.open("rb") as file:
            file.seek(self._offset + start * self.shape[1] * self._stored.itemsize)
            values = np.fromfile(file, self._stored, (stop - start) * self.shape[1])
        whole = values[: len(values) // self.shape[1] * self.shape[1]]
        return whole.reshape(-1, self.shape[1])


class ArraySource(FileSource):
    """Array in an HDF5 file or a zarr folder, which stays open because it has a cache of chunks."""

    def __init__(self, path: Path, dataset: str | None) -> None:
        self._name = dataset
        self._array = _hdf5_array(path, dataset) if suffix_of(path) in HDF5 else _zarr_array(path)
        super().__init__(path, self._array.shape, self._array.dtype)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_array": None}

    def _read(self, start: int, stop: int) -> np.ndarray:
        if self._array is None:
            self._array = ArraySource(self._path, self._name)._array
        return np.asarray(self._array[start:stop])


def _hdf5_array(path: Path, name: str | None) -> Any:
    h5py = need("h5py", "reading HDF5 files")
    try:
        file = h5py.File(path, "r")
    except OSError as error:
        raise ValueError(f"{str(path)!r} cannot be read as a HDF5 file: {error}") from error
    arrays: dict[str, Any] = {}
    file.visititems(lambda key, item: arrays.update({key: item}) if isinstance(item, h5py.Dataset) else None)
    return _only(arrays, path, name, f"{path.name}::NAME")


def _zarr_array(path: Path) -> Any:
    zarr = need("zarr", "reading zarr arrays")
    try:
        stored = zarr.open(path, mode="r")
    except (OSError, ValueError, KeyError) as error:
        raise ValueError(f"{str(path)!r} cannot be read as a zarr array: {error}") from error
    if hasattr(stored, "shape"):
        return stored
    return _only(dict(stored.arrays()), path, None, f"{path.name}/NAME, if it is renamed to end in .zarr")


def _only(arrays: dict[str, Any], path: Path, name: str | None, how: str) -> Any:
    """Return the array that the user named, or the only one."""
    only = next(iter(arrays)) if len(arrays) == 1 else None
    wanted = only if name is None else name.strip("/")
    if wanted is None or wanted not in arrays:
        what = "expected one" if name is None else f"there is no {name!r}"
        first_names = ", ".join(list(arrays)[:LISTED])
        raise ValueError(f"{str(path)!r} holds {len(arrays)} arrays ({first_names}); {what}. Choose one with {how}.")
    return arrays[wanted]
