"""Source of the rows of a parquet file, of which one row group at a time is in memory."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from multicause.engines.file_sources import LISTED, FileSource
from multicause.runtime.optional import need


class RowGroup:
    """Cache of the row group that was read last from a set of files, since a group can only be read as a whole."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.key: tuple[str, int] | None = None
        self.rows = np.empty((0, 0))

    def __reduce__(self) -> Any:
        return RowGroup, ()


class ParquetSource(FileSource):
    """Numeric columns of a parquet file."""

    def __init__(
        self,
        path: Path,
        columns: Sequence[str] | None,
        drop: Sequence[str],
        group: RowGroup,
        first: FileSource | None = None,
    ) -> None:
        parquet = need("pyarrow.parquet", "reading parquet files", "parquet")
        try:
            with parquet.ParquetFile(path) as file:
                metadata, schema = file.metadata, file.schema_arrow
        except (OSError, ValueError) as error:
            raise ValueError(f"{str(path)!r} cannot be read as a parquet file: {error}") from error
        self.names = _numeric_columns(path, schema, columns, drop)
        if first is not None and first.names is not None:
            _check_same_columns(first.name, first.names, path, self.names)
            self.names = first.names
        sizes = [metadata.row_group(number).num_rows for number in range(metadata.num_row_groups)]
        self._starts = np.cumsum([0, *sizes])
        single = all(str(schema.field(name).type) == "float" for name in self.names)
        super().__init__(path, (int(self._starts[-1]), len(self.names)), np.float32 if single else np.float64)
        self._group = group

    @property
    def bytes_at_once(self) -> int:
        """Return the memory of the largest row group."""
        return int(np.diff(self._starts).max(initial=0)) * self.shape[1] * self.dtype.itemsize

    def _read(self, start: int, stop: int) -> np.ndarray:
        first, last = (int(np.searchsorted(self._starts, row, side="right")) - 1 for row in (start, stop - 1))
        parts = []
        for number in range(first, last + 1):
            begin = int(self._starts[number])
            parts.append(self._read_group(number)[max(0, start - begin) : stop - begin])
        return np.concatenate(parts)

    def _read_group(self, number: int) -> np.ndarray:
        key = (str(self._path), number)
        with self._group.lock:
            if self._group.key != key:
                self._group.key = None
                self._group.rows = self._decoded(number)
                self._group.key = key
            return self._group.rows

    def _decoded(self, number: int) -> np.ndarray:
        import pyarrow.parquet

        try:
            with pyarrow.parquet.ParquetFile(self._path) as file:
                table = file.read_row_group(number, columns=self.names)
        except (OSError, ValueError) as error:
            raise OSError(f"row group {number} is damaged or not a parquet row group ({error})") from error
        rows = np.empty((table.num_rows, len(self.names or ())), self.dtype)
        for place, name in enumerate(self.names or ()):
            rows[:, place] = table.column(name).to_numpy()
        return rows


def _numeric_columns(path: Path, schema: Any, columns: Sequence[str] | None, drop: Sequence[str]) -> list[str]:
    """Return the names of the columns to read, all of which must hold numbers."""
    import pyarrow.types as types

    # A pandas index counts or names rows; a range index has no column.
    index = [name for name in (schema.pandas_metadata or {}).get("index_columns", ()) if isinstance(name, str)]
    for name in (*(columns or ()), *drop):
        if name not in schema.names:
            raise ValueError(f"{str(path)!r} has no column {name!r}; it has {_listed(schema.names)}.")
    names = list(columns or [name for name in schema.names if name not in (*drop, *index)])
    for name in names:
        kind = schema.field(name).type
        if not (types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)):
            raise ValueError(
                f"Column {name!r} of {str(path)!r} holds values of type {kind}, not numbers. Leave it out with "
                f"drop=[{name!r}]."
            )
    if not names:
        raise ValueError(f"{str(path)!r} has no columns of numbers.")
    return names


def _check_same_columns(first: str, wanted: Sequence[str], path: Path, names: Sequence[str]) -> None:
    lacking = [name for name in wanted if name not in names]
    more = [name for name in names if name not in wanted]
    parts = [f"it lacks {_listed(lacking)}"] * bool(lacking) + [f"{first} lacks {_listed(more)}"] * bool(more)
    if parts:
        raise ValueError(
            f"Files that are read together must have the same columns, but {str(path)!r} has other ones than {first}: "
            f"{', and '.join(parts)}."
        )


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return ", ".join(repr(name) for name in names[:LISTED]) + more
