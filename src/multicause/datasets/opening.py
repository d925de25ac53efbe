"""Opening of files that are learned from without being loaded."""

from __future__ import annotations

from collections.abc import Sequence
from glob import glob
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from multicause.datasets.checks import check_dtype
from multicause.runtime.file_kinds import IN_PARTS, ZARR, suffix_of
from multicause.runtime.paths import file_of

if TYPE_CHECKING:
    from multicause.engines.source import Source


def open_rows(
    *paths: str | PathLike[str],
    columns: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    dtype: Any = None,
) -> Source:
    """Open files whose rows are read when they are needed, so that they may be larger than memory.

    The result can be passed to ``fit``, ``transform`` and similar methods. Data that fit into the memory budget of the
    engine are loaded; all others are read block by block in every pass over the data. With
    :class:`multicause.engines.Dask`, workers read the files and must have access to them under the same paths.

    Parameters
    ----------
    *paths : path-like
        Files that end in ``.npy``, ``.parquet``, ``.h5``, ``.hdf5`` or ``.zarr`` (a folder). Rows of several files
        follow each other, and must have the same columns. A pattern such as ``"rows/*.parquet"`` stands for all files
        that match it, in the order of their names, and a folder for all such files in it. If a HDF5 file has several
        datasets, name one: ``"file.h5::name"``.
    columns : sequence of str, optional
        Columns of parquet files to read, in this order. By default all columns, which must be numbers.
    drop : sequence of str
        Columns of parquet files to leave out.
    dtype : {"float32", "float64"}, optional
        Type of the rows. By default float32 if all files hold that, else float64.

    Returns
    -------
    Source
        Rows that can be passed to ``fit`` instead of an array. ``numpy.asarray`` loads all of them.
    """
    from multicause.engines.file_sets import open_files

    if not paths:
        raise ValueError("Name at least one file; got none.")
    for path in paths:
        if not isinstance(path, str | PathLike):
            raise TypeError(
                f"open_rows takes names of files, one after the other; got {type(path).__name__}. Write "
                "open_rows(*files) for a list of files."
            )
    files = [file for path in paths for file in _matching(Path(path).expanduser())]
    return open_files(files, columns, drop, None if dtype is None else check_dtype(dtype))


def _matching(path: Path) -> list[Path]:
    """Return the path itself, the files that match if it is a pattern, or those of a folder."""
    if path.is_dir() and suffix_of(path) != ZARR:
        return _files_in(path)
    if file_of(path).exists() or not any(sign in str(path) for sign in "*?["):
        return [path]
    matches = [Path(name) for name in sorted(glob(str(path), recursive=True))]
    if not matches:
        raise FileNotFoundError(f"No file matches {str(path)!r}.")
    return matches


def _files_in(folder: Path) -> list[Path]:
    """Return the files of a folder that can be read in parts; names that begin with a point or "_" are not data."""
    files = [file for file in sorted(folder.iterdir()) if suffix_of(file) in IN_PARTS and file.name[0] not in "._"]
    kinds = sorted({suffix_of(file) for file in files})
    if not files:
        raise ValueError(f"The folder {str(folder)!r} has no files that end in {', '.join(IN_PARTS)}.")
    if len(kinds) > 1:
        raise ValueError(
            f"The folder {str(folder)!r} has files of several kinds, {', '.join(kinds)}. Name those of one kind: "
            f"open_rows({str(folder / ('*' + kinds[0]))!r})."
        )
    return files
