"""Rows of several files, one file after the other."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from multicause.engines.file_sources import ArraySource, FileSource, NpySource
from multicause.engines.parquet_source import ParquetSource, RowGroup
from multicause.engines.source import Source
from multicause.runtime.file_kinds import IN_PARTS, NPY, PARQUET, suffix_of
from multicause.runtime.paths import dataset_of


def open_files(paths: Sequence[Path], columns: Sequence[str] | None, drop: Sequence[str], dtype: Any) -> Source:
    """Return the rows of some files, one file after the other; see :func:`multicause.datasets.open_rows`."""
    groups = RowGroup()
    first = _open(paths[0], columns, drop, groups)
    # Later files need the columns of the first one, in any order.
    sources = [first, *(_open(path, columns, drop, groups, first) for path in paths[1:])]
    source = first if len(sources) == 1 else FileSet(sources)
    if source.shape[0] == 0:
        raise ValueError(f"{source.name} has no rows.")
    if dtype is not None:
        source.use_dtype(np.dtype(dtype))
    return source


def _open(
    path: Path, columns: Sequence[str] | None, drop: Sequence[str], groups: RowGroup, first: FileSource | None = None
) -> FileSource:
    file, dataset = dataset_of(path)
    if not file.exists():
        raise FileNotFoundError(f"There is no {str(file)!r}.")
    kind = suffix_of(file)
    if kind not in IN_PARTS:
        raise ValueError(f"{str(file)!r} cannot be read in parts. Known endings: {', '.join(IN_PARTS)}.")
    if kind != PARQUET and (columns or drop):
        raise ValueError(f"{str(file)!r} has no column names, so columns cannot be selected or dropped.")
    if kind == PARQUET:
        source: FileSource = ParquetSource(file, columns, drop, groups, first)
    elif kind == NPY:
        source = NpySource(file)
    else:
        source = ArraySource(file, dataset)
    if first is not None and (source.names is None) != (first.names is None):
        without, having = (source, first) if source.names is None else (first, source)
        raise ValueError(f"{without.name} has no column names, but {having.name} has. Read them separately.")
    if first is not None and source.shape[1] != first.shape[1]:
        raise ValueError(
            f"Files that are read together must have rows of one length, but {first.name} has {first.shape[1]} columns "
            f"and {source.name} has {source.shape[1]}."
        )
    return source


class FileSet(Source):
    """Source of the rows of several files, one file after the other."""

    def __init__(self, sources: Sequence[FileSource]) -> None:
        self._sources = [source for source in sources if source.shape[0]] or list(sources[:1])
        self._starts = np.cumsum([0, *(source.shape[0] for source in self._sources)])
        single = all(source.dtype == np.float32 for source in self._sources)
        shape = (int(self._starts[-1]), sources[0].shape[1])
        name = f"{sources[0].name} and {len(sources) - 1} other file{'s' if len(sources) > 2 else ''}"
        super().__init__(name, shape, np.float32 if single else np.float64)
        self.names = sources[0].names
        self.files = tuple(file for source in sources for file in source.files)
        self.use_dtype(self.dtype)

    def use_dtype(self, dtype: np.dtype) -> None:
        """Convert rows of all files to a dtype."""
        self.dtype = dtype
        for source in self._sources:
            source.use_dtype(dtype)

    def check_from_now(self, refusal: str | None) -> None:
        """Check values that are read of all files."""
        super().check_from_now(refusal)
        for source in self._sources:
            source.check_from_now(refusal)

    def trust(self) -> None:
        """Leave values of all files unchecked from now on."""
        super().trust()
        for source in self._sources:
            source.trust()

    @property
    def bytes_at_once(self) -> int:
        """Return the memory of the largest piece of all files that must be read as a whole."""
        return max(source.bytes_at_once for source in self._sources)

    def read(self, start: int, stop: int) -> np.ndarray:
        """Return the rows from ``start`` to ``stop``; errors name the file and its row."""
        return self._read(start, min(stop, self.shape[0]))

    def _read(self, start: int, stop: int) -> np.ndarray:
        first, last = (int(np.searchsorted(self._starts, row, side="right")) - 1 for row in (start, stop - 1))
        parts = []
        for number in range(first, last + 1):
            begin = int(self._starts[number])
            source = self._sources[number]
            parts.append(source.read(max(0, start - begin), min(stop - begin, source.shape[0])))
        return parts[0] if len(parts) == 1 else np.concatenate(parts)
