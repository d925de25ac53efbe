"""Tables of numbers from files: npy, npz, csv, parquet."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

SUFFIXES = (".npy", ".npz", ".csv", ".tsv", ".parquet")
# Names that an error lists before it only counts.
LISTED = 5
# What files that are called csv have between columns, other than a comma.
SEPARATORS = (";", "\t", "|")


def read_table(
    path: Path,
    *,
    array: str | None = None,
    separator: str | None = None,
    header: bool = True,
    drop: Sequence[str] = (),
    columns: Sequence[str] | None = None,
) -> tuple[np.ndarray, list[str] | None]:
    """Numbers of a file and the names of its columns, if it has any.

    Parameters
    ----------
    path : Path
        A file whose name ends in one of ``SUFFIXES``.
    array : str, optional
        Which array of a npz file to take; needed if it holds several.
    separator : str, optional
        What separates the columns of a csv file; by default a comma, and a tabulator in tsv files.
    header : bool, default=True
        Whether the first line of a csv file has the names of its columns.
    drop : sequence of str
        Columns that are left out.
    columns : sequence of str, optional
        Columns that are taken, in this order; by default all.
    """
    kind = path.suffix.lower()
    if kind in (".npy", ".npz"):
        return _numbers(_read_array(path, array), path), None
    frame = _read_parquet(path) if kind == ".parquet" else _read_text(path, kind, separator, header)
    return _from_frame(frame, path, drop, columns)


def check_finite(rows: np.ndarray, path: Path, names: Sequence[str] | None = None) -> None:
    """Refuse NaN and infinity, and say where the first is."""
    bad = ~np.isfinite(rows)
    if bad.any():
        place = tuple(int(index) for index in np.argwhere(bad)[0])
        column = f"column {names[place[1]]!r}" if names is not None else f"column {place[1]}" if len(place) > 1 else ""
        raise ValueError(
            f"{str(path)!r} has {int(bad.sum())} values that are NaN, empty or infinite, the first in row {place[0]}"
            f"{', ' + column if column else ''} (counted from 0). Leave such rows out, or fill them in."
        )


def need(package: str, purpose: str, extra: str) -> Any:
    """A package that is installed by an extra, or an error that says which."""
    from importlib import import_module

    try:
        return import_module(package)
    except ImportError as error:
        raise ImportError(
            f"{package} is needed for {purpose} and is not installed. Install it with pip install "
            f"'multicause[{extra}]'."
        ) from error


def _read_array(path: Path, array: str | None) -> np.ndarray:
    _check_beginning(path)
    try:
        stored: Any = np.load(path, allow_pickle=False)
        if isinstance(stored, np.ndarray):
            return stored
        with stored:
            names = list(stored.files)
            if array is None and len(names) == 1:
                array = names[0]
            if array not in names:
                what = "expected one" if array is None else f"there is no {array!r}"
                raise LookupError(
                    f"{str(path)!r} holds {len(names)} arrays ({', '.join(names)}); {what}. Choose one with --array "
                    "NAME."
                )
            return stored[array]
    except LookupError as error:
        raise ValueError(error.args[0]) from None
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        raise ValueError(f"{str(path)!r} cannot be read as an array of numbers: {_first_line(error)}") from error


def _check_beginning(path: Path) -> None:
    """Refuse what is no array before numpy does, which would take it for a pickle and say how to open that."""
    with path.open("rb") as file:
        beginning = file.read(6)
    if not beginning.startswith((b"\x93NUMPY", b"PK\x03\x04", b"PK\x05\x06")):
        raise ValueError(
            f"{str(path)!r} cannot be read as an array of numbers: it does not begin as a npy or npz file does. Write "
            "it with numpy.save or numpy.savez."
        )


def _numbers(array: np.ndarray, path: Path) -> np.ndarray:
    if array.dtype.kind not in "buif":
        raise ValueError(f"{str(path)!r} must hold real numbers; got dtype {array.dtype}.")
    if array.size == 0:
        raise ValueError(f"{str(path)!r} is empty; its shape is {array.shape}.")
    return array


def _read_text(path: Path, kind: str, separator: str | None, header: bool) -> Any:
    pandas = need("pandas", f"reading {kind} files", "app")
    if separator is None:
        separator = "\t" if kind == ".tsv" else ","
    try:
        frame = pandas.read_csv(path, sep=separator, header=0 if header else None)
    except (ValueError, UnicodeDecodeError) as error:  # pandas' own errors are ValueErrors
        raise ValueError(f"{str(path)!r} cannot be read as a table: {_first_line(error)}") from error
    if header and len(frame.columns) and all(_is_number(name) for name in frame.columns):
        raise ValueError(
            f"The first line of {str(path)!r} holds numbers only, so it looks like data rather than names of columns. "
            "Use --no-header, or give the columns names."
        )
    frame.columns = [str(name) for name in frame.columns]
    return frame


def _read_parquet(path: Path) -> Any:
    pandas = need("pandas", "reading parquet files", "parquet")
    need("pyarrow", "reading parquet files", "parquet")
    try:
        frame = pandas.read_parquet(path, engine="pyarrow")
    except (ValueError, OSError) as error:
        raise ValueError(f"{str(path)!r} cannot be read as a parquet file: {_first_line(error)}") from error
    frame.columns = [str(name) for name in frame.columns]
    return frame


def _from_frame(
    frame: Any, path: Path, drop: Sequence[str], columns: Sequence[str] | None
) -> tuple[np.ndarray, list[str]]:
    missing = [name for name in columns or () if name not in frame.columns]
    if missing:
        raise ValueError(f"{str(path)!r} lacks columns: {_listed(missing)}; it has {_listed(frame.columns)}.")
    if columns is not None:
        frame = frame[list(columns)]
    unknown = [name for name in drop if name not in frame.columns]
    if unknown:
        raise ValueError(f"{str(path)!r} has no column {unknown[0]!r} to drop; it has {_listed(frame.columns)}.")
    frame = frame.drop(columns=list(drop))
    if frame.shape[0] == 0 or frame.shape[1] == 0:
        raise ValueError(f"{str(path)!r} is empty: {frame.shape[0]} rows, {frame.shape[1]} columns.")
    text = [name for name in frame.columns if frame[name].dtype.kind not in "buif"]
    if text:
        if len(frame.columns) == 1 and any(mark in text[0] for mark in SEPARATORS):
            raise ValueError(
                f"{str(path)!r} has one column, {text[0]!r}, that is not numbers; its columns seem to be separated by "
                "something else. Say by what, for example with --separator ';'."
            )
        options = " ".join(f"--drop {name!r}" for name in text[:LISTED])
        raise ValueError(
            f"{str(path)!r} has columns that are not numbers: {_listed(text)}. Leave them out with {options}, or turn "
            "them into numbers."
        )
    return frame.to_numpy(dtype=float), list(frame.columns)


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name) for name in list(names)[:LISTED])
    return shown + (f" and {len(names) - LISTED} more" if len(names) > LISTED else "")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
