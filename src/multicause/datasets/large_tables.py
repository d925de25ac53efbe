"""Tables larger than the memory budget, and arrays of HDF5 and zarr."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from multicause.datasets.columns import choose_columns, listed
from multicause.datasets.opening import open_rows
from multicause.runtime.file_kinds import HDF5, IN_PARTS, LOADABLE, NPY, PARQUET, suffix_of
from multicause.runtime.optional import need
from multicause.runtime.paths import dataset_of, file_of

if TYPE_CHECKING:
    from multicause.engines.source import Source

# Number of rows of the first file by which the columns of all files are chosen.
ROWS_TO_LOOK_AT = 10_000


class LargeTable(NamedTuple):
    """Table whose rows are read when they are needed."""

    source: Source
    image_shape: tuple[int, int] | None
    remarks: tuple[str, ...]
    summary: str


def open_table(files: Sequence[Path], reading: Any, budget: int | None) -> LargeTable | None:
    """Open files whose rows exceed the memory budget, or that are not plain tables.

    Returns None if they should be loaded like other tables. Columns of parquet files are chosen by the first rows of
    the first file, with the rules for tables in memory.
    """
    kinds = {suffix_of(file_of(file)) for file in files}
    if kinds <= set(LOADABLE):
        if budget is None or sum(map(_n_values, files)) * np.dtype(reading.dtype).itemsize <= budget:
            return None
    elif not kinds <= set(IN_PARTS):
        return None
    files = [_named(file, reading.array) for file in files]
    columns: Sequence[str] | None = reading.columns
    remarks: list[str] = []
    if columns is None and kinds == {PARQUET}:
        columns, remarks = _chosen(files[0], reading)
    source = open_rows(*files, columns=columns, dtype=reading.dtype)
    if budget is not None and source.n_bytes <= budget and kinds <= set(LOADABLE):
        return None
    where = f" of {len(files)} files" if len(files) > 1 else ""
    size = f"{source.n_bytes / 2**30:.1f} GiB, read block by block"
    summary = f"{source.shape[0]} rows{where}, {source.shape[1]} columns ({size})"
    return LargeTable(source, getattr(source, "image_shape", None), tuple(remarks), summary)


def _named(file: Path, array: str | None) -> Path:
    """Append the name of a dataset to a path, if it was given as an option."""
    path, name = dataset_of(file)
    return Path(f"{path}::{array}") if array is not None and name is None and suffix_of(path) in HDF5 else file


def _n_values(file: Path) -> int:
    """Return the number of values of a table; zero if it cannot be read, which is reported when it is loaded."""
    try:
        if suffix_of(file) == NPY:
            return int(np.load(file, mmap_mode="r", allow_pickle=False).size)
        metadata = need("pyarrow.parquet", "reading parquet files", "parquet").read_metadata(file)
        return int(metadata.num_rows * metadata.num_columns)
    except (OSError, ValueError, EOFError, ImportError):
        return 0


def _chosen(file: Path, reading: Any) -> tuple[tuple[str, ...], list[str]]:
    """Return the columns that are features, and remarks on the others."""
    parquet = need("pyarrow.parquet", "reading parquet files", "parquet")
    with parquet.ParquetFile(file) as opened:
        frame = next(opened.iter_batches(ROWS_TO_LOOK_AT)).to_pandas()
    frame = frame.reset_index(drop=True)
    frame.columns = [str(name) for name in frame.columns]
    index = None if reading.index is None else str(reading.index)
    _, columns = choose_columns(frame, file, index=index, drop=reading.drop)
    ignored = [*columns.texts, *columns.empty]
    remarks = [*columns.remarks, *([f"Columns without numbers are ignored: {listed(ignored)}."] if ignored else [])]
    return tuple(columns.features), remarks
