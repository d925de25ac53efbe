"""Tables of numbers from files: npy, npz, csv, tsv, parquet."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from multicause.datasets.columns import LISTED, Columns, choose_columns, listed
from multicause.datasets.text_tables import TextTable
from multicause.runtime.file_kinds import ARRAYS, PARQUET, suffix_of
from multicause.runtime.optional import need

# Arrays in a file of scipy.sparse.save_npz, and how many bytes its matrix may take with all zeros.
SPARSE, LARGEST_DENSE = {"format", "shape", "data"}, 4 * 2**30
SEPARATOR_NAMES = {"\t": "tab", " ": "white space"}


class Table(NamedTuple):
    """Rows of numbers, with a description of their file."""

    rows: np.ndarray
    names: list[str] | None  # column names, if the file has any
    summary: str
    remarks: tuple[str, ...]
    understood: dict[str, Any]  # settings that were detected, by their names in Reading
    others: Callable[[], dict[str, np.ndarray]]  # columns that were left out, by name


def read_table(
    path: Path,
    *,
    array: str | None = None,
    separator: str | None = None,
    header: bool | None = None,
    decimal: str | None = None,
    thousands: str | None = None,
    encoding: str | None = None,
    index: str | None = None,
    drop: Sequence[str] = (),
    columns: Sequence[str] | None = None,
) -> Table:
    """Read a table; settings that are not given are detected.

    Parameters
    ----------
    path : Path
        A file whose name ends in one of ``multicause.runtime.file_kinds.TABLES``.
    array : str, optional
        Name of an array in an npz file; needed if it holds several.
    separator, decimal, thousands, encoding : str, optional
        Column separator, decimal mark, thousands separator and encoding of a text file.
    header : bool, optional
        Whether the first line of a text file has the names of its columns.
    index : str, optional
        Name or number of the column that identifies rows and is not a feature; "none" for none.
    drop : sequence of str
        Columns to leave out.
    columns : sequence of str, optional
        Columns to read, in this order; by default all numeric columns.
    """
    kind = suffix_of(path)
    if kind in ARRAYS:
        rows = _numbers(_read_array(path, array), path)
        return Table(rows, None, "", (), {}, dict)
    chosen: dict[str, Any] = {"index": index, "drop": drop, "columns": columns}
    if kind == PARQUET:
        return _from_parquet(path, chosen)
    table = TextTable(
        path,
        separator=separator,
        header=header,
        decimal=decimal,
        thousands=thousands,
        encoding=encoding,
        row_names=None if index is None else index in ("0", "Unnamed: 0"),
    )
    text_format = table.format
    unnamed = text_format.header and not text_format.names[0] and any(text_format.names)
    rows, columns_ = choose_columns(table.frame, path, **chosen, marks=text_format.marks, unnamed=unnamed)
    facts = _facts_of_format(table)
    understood = {
        "separator": text_format.separator,
        "header": text_format.header or text_format.names != [str(number) for number in range(len(text_format.names))],
        "decimal": text_format.marks.decimal,
        "thousands": text_format.marks.thousands or "",
    }
    remarks = [*text_format.remarks, *_remarks_of_text(table), *columns_.remarks]
    summary = _summary(rows, columns_, facts)
    return Table(rows, columns_.features, summary, tuple(remarks), understood, lambda: table.texts(columns_.left_out))


def check_values(
    rows: np.ndarray, path: Path, names: Sequence[str] | None = None, *, allow_missing: bool = False
) -> None:
    """Raise ValueError for infinity, and for NaN unless values may be missing, with the columns and rows."""
    bad = np.isinf(rows) if allow_missing else ~np.isfinite(rows)
    if not bad.any():
        return
    flat = bad.reshape(len(bad), -1)
    columns = np.flatnonzero(flat.any(axis=0))
    where = []
    for column in columns[:LISTED]:
        places = np.flatnonzero(flat[:, column])
        first_places = ", ".join(map(str, places[:LISTED])) + (", …" if len(places) > LISTED else "")
        name = repr(names[column]) if names is not None else str(column)
        where.append(f"column {name} in {len(places)} of {len(rows)} rows ({first_places})")
    if len(columns) > LISTED:
        where.append(f"{len(columns) - LISTED} more columns")
    if np.isinf(rows[bad]).all():
        what, need = "infinite", "Models need finite values"
    else:
        what = "missing (empty or NaN)" if np.isnan(rows[bad]).all() else "missing or infinite"
        need = "Models need complete rows"
    drop = f" leave columns out with drop={tuple(names[c] for c in columns[:LISTED])}," if names else ""
    raise ValueError(
        f"{str(path)!r} has values that are {what}: {'; '.join(where)} (rows are counted from 0). {need}:{drop} remove "
        "these rows, or fill the values in."
    )


def remark_on_missing(rows: np.ndarray, names: Sequence[str] | None = None) -> tuple[str, ...]:
    """Return a remark on how many values are missing, and in which columns; empty if none is missing."""
    absent = np.isnan(rows).reshape(len(rows), -1)
    columns = np.flatnonzero(absent.any(axis=0))
    if not len(columns):
        return ()
    first_columns = ", ".join(repr(names[column]) if names is not None else str(column) for column in columns[:LISTED])
    more = f" and {len(columns) - LISTED} more" if len(columns) > LISTED else ""
    size, share = absent.size, absent.mean()
    return (
        f"{int(absent.sum()):,} of {size:,} values ({100 * share:.2g} %) are missing (empty or NaN), in columns "
        f"{first_columns}{more}. Models learn from the others alone; model.impute(X) fills them in.",
    )


def _summary(rows: np.ndarray, columns: Columns, facts: Sequence[str] = ()) -> str:
    """Describe a table in one line."""
    names = columns.features
    described = _joined(names) if len(names) <= LISTED else f"{names[0]}…{names[-1]}"
    parts = [_counted(len(rows), "row"), f"{_counted(len(names), 'column')} {described}"]
    for what, group in (("index", columns.identifiers), ("text", columns.texts), ("empty", columns.empty)):
        if group and what == "index":
            parts.append(f"index: {_joined(group)}")
        elif group:
            parts.append(f"{_counted(len(group), f'{what} column')} ignored: {_shortened(group)}")
    if columns.dropped:
        parts.append(f"{_counted(len(columns.dropped), 'column')} left out: {_shortened(columns.dropped)}")
    return ", ".join(parts) + (f" ({', '.join(facts)})" if facts else "")


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _joined(names: Sequence[str]) -> str:
    """Return names separated by commas, with quotation marks if a name has a comma itself."""
    return ", ".join(repr(name) if "," in name else name for name in names)


def _shortened(names: Sequence[str]) -> str:
    return _joined(names[:LISTED]) + (", …" if len(names) > LISTED else "")


def _facts_of_format(table: TextTable) -> list[str]:
    """Describe unusual properties of a text file."""
    text_format = table.format
    facts = []
    if text_format.separator != ",":
        facts.append(f"separated by {SEPARATOR_NAMES.get(text_format.separator, text_format.separator)}")
    if text_format.marks.decimal == ",":
        facts.append("decimal commas")
    if text_format.marks.thousands is not None:
        facts.append(f"thousands separated by {text_format.marks.thousands!r}")
    if not text_format.header and text_format.names[0] == "0":
        facts.append("no header")
    return facts


def _remarks_of_text(table: TextTable) -> list[str]:
    remarks = []
    if table.renamed:
        remarks.append(f"Names that occur more than once are numbered ('a', 'a.1', …): {listed(table.renamed)}.")
    if table.n_comments:
        remarks.append(f"Lines between rows that begin with # were left out as comments: {table.n_comments}.")
    if table.n_blank:
        remarks.append(f"Rows without any value were left out: {table.n_blank}.")
    return remarks


def _from_parquet(path: Path, chosen: dict[str, Any]) -> Table:
    pandas = need("pandas", "reading parquet files", "parquet")
    need("pyarrow", "reading parquet files", "parquet")
    try:
        frame = pandas.read_parquet(path, engine="pyarrow")
    except (ValueError, OSError) as error:
        raise ValueError(f"{str(path)!r} cannot be read as a parquet file: {_first_line(error)}") from error
    own_index = [str(name or "index") for name in frame.index.names]
    with_index = not isinstance(frame.index, pandas.RangeIndex)
    frame.columns = [str(name) for name in frame.columns]
    if with_index:
        frame = frame.reset_index(names=own_index)
        if chosen["columns"] is None and chosen["index"] is None and len(own_index) == 1:
            chosen = {**chosen, "index": own_index[0]}
        elif chosen["columns"] is None and len(own_index) > 1:
            chosen = {**chosen, "drop": (*chosen["drop"], *own_index)}
    rows, columns = choose_columns(frame, path, **chosen)

    def others() -> dict[str, np.ndarray]:
        return {name: frame[name].to_numpy() for name in columns.left_out}

    return Table(rows, columns.features, _summary(rows, columns), tuple(columns.remarks), {}, others)


def _read_array(path: Path, array: str | None) -> np.ndarray:
    _check_beginning(path)
    try:
        stored: Any = np.load(path, allow_pickle=False)
        if isinstance(stored, np.ndarray):
            return stored
        with stored:
            names = list(stored.files)
            if array is None and set(names) >= SPARSE:
                return _dense(path, stored["shape"])
            if array is None and len(names) == 1:
                array = names[0]
            if array not in names:
                what = "expected one" if array is None else f"there is no {array!r}"
                raise _UnsuitableError(
                    f"{str(path)!r} holds {len(names)} arrays ({', '.join(names)}); {what}. Choose one with "
                    "array='NAME'."
                )
            return stored[array]
    except _UnsuitableError:
        raise
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        raise ValueError(f"{str(path)!r} cannot be read as an array of numbers: {_first_line(error)}") from error


class _UnsuitableError(ValueError):
    """A file can be read, but not be used; its text is complete."""


def _dense(path: Path, shape: np.ndarray) -> np.ndarray:
    """Read a sparse matrix that scipy.sparse.save_npz has written, with all of its zeros."""
    from scipy.sparse import load_npz

    size = 8 * int(np.prod(shape, dtype=object))
    if size > LARGEST_DENSE:
        raise _UnsuitableError(
            f"{str(path)!r} is a sparse matrix of {shape[0]}×{shape[1]}, which would take {size / 2**30:.3g} GiB with "
            "its zeros. In Python, models of counts take sparse matrices as they are: "
            "NonnegativeCauses(noise='poisson').fit(scipy.sparse.load_npz(path))."
        )
    return load_npz(path).toarray()


def _check_beginning(path: Path) -> None:
    """Raise ValueError if a file is not an array; numpy would take it for a pickle and suggest to open that."""
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


def _first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
