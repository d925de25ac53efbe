"""Selection of the columns of a table that are features: numeric columns that do not merely identify or count rows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from multicause.datasets.numerals import Marks, is_number, numbers_from

# Number of names, or rows, that an error or a remark lists before it only counts the rest.
LISTED = 5
# Number of strings examined before a column counts as text.
ENOUGH_TEXTS = 1000
# Fraction of numbers in a column from which on other text in it is an error.
MOSTLY_NUMBERS = 0.5
# Number of rows from which on consecutive numbers in a column are taken for row numbers.
COUNTED_ROWS = 5
# Names of columns whose whole numbers, if all differ, identify rows.
IDENTIFIER = re.compile(r"(?:^|.*[_\-. ])(?:id|ids|idx|index|key|uid|uuid|guid|rowid|rownames?)", re.IGNORECASE)
# Numbers with a currency sign, a percent sign or a short unit.
QUANTITY = re.compile(r"\s*[€$£¥]?\s*[+-]?[\d.,]+\s*(?:[%€$£¥°µ]|[A-Za-z°µ]{1,3})?\s*")
# Whole numbers below this are exact in float64.
LARGEST_EXACT = 2**53
NO_INDEX = "none"


class Columns(NamedTuple):
    """Names of the columns of a table, grouped by how they are used."""

    features: list[str]
    identifiers: list[str]  # index columns
    texts: list[str]
    empty: list[str]
    dropped: list[str]  # dropped by the user, or not used by the fitted model
    remarks: list[str]

    @property
    def left_out(self) -> list[str]:
        """Return all columns that are not features and are not empty."""
        return [*self.identifiers, *self.texts, *self.dropped]


def choose_columns(
    frame: Any,
    path: Path,
    *,
    index: str | None = None,
    drop: Sequence[str] = (),
    columns: Sequence[str] | None = None,
    marks: Marks = Marks(),  # noqa: B008, it is immutable
    unnamed: bool = False,
) -> tuple[np.ndarray, Columns]:
    """Return the features (n, D) of a data frame, and how each column is used.

    Parameters
    ----------
    frame : DataFrame
        A table whose columns all have different names.
    path : Path
        Its file, for messages.
    index : str, optional
        Name or place of the column that identifies rows; "none" if there is none. By default it is detected.
    drop : sequence of str
        Columns that are left out; names may be joined by commas.
    columns : sequence of str, optional
        The features, in this order; by default all columns of numbers.
    marks : Marks
        How numbers in columns of texts are written.
    unnamed : bool
        Whether the first column has no name while others have: data frames are written like this with their index.
    """
    names = [str(name) for name in frame.columns]
    if columns is not None:
        _check_present(columns, names, path)
        rows: dict[str, Any] = {name: _numbers(frame[name], name, path, marks, needed=True) for name in columns}
        others = [name for name in names if name not in rows]
        return _stacked(rows), Columns(list(columns), [], [], [], others, [])
    dropped = _resolved_drop(drop, names, path)
    index_column = _resolved_index(index, names, path)
    rest = [name for name in names if name not in (*dropped, *index_column)]
    converted = {name: _numbers(frame[name], name, path, marks) for name in rest}
    empty = [name for name in rest if frame[name].isna().all()]
    numbers = {name: values for name, values in converted.items() if values is not None and name not in empty}
    remarks = []
    if index is None:
        for name, values in numbers.items():
            differ = frame[name].is_unique  # before large numbers are rounded
            why = _identifies(values, name, differ, first_unnamed=unnamed and name == names[0])
            if why:
                index_column.append(name)
                remarks.append(f"Column {name!r} {why} and is taken as index, not as feature; index='none' keeps it.")
    features = {name: values for name, values in numbers.items() if name not in index_column}
    texts = [name for name in rest if converted[name] is None and name not in empty]
    if not features:
        raise ValueError(_nothing_left(path, frame, texts, index_column, dropped))
    remarks += [*_of_constants(frame, features), *_of_large_numbers(frame, features), *_of_quantities(frame, texts)]
    return _stacked(features), Columns(list(features), index_column, texts, empty, dropped, remarks)


def listed(names: Sequence[str]) -> str:
    """Return quoted names; only the first ones of many."""
    first_names = ", ".join(repr(name) for name in list(names)[:LISTED])
    return first_names + (f" and {len(names) - LISTED} more" if len(names) > LISTED else "")


def _stacked(columns: dict[str, np.ndarray]) -> np.ndarray:
    return np.column_stack(list(columns.values()))


def _check_present(columns: Sequence[str], names: Sequence[str], path: Path) -> None:
    missing = [name for name in columns if name not in names]
    if missing:
        raise ValueError(
            f"{str(path)!r} lacks columns that the model was fitted to: {listed(missing)}; it has {listed(names)}. "
            "Columns are matched by name, in any order. If the file was misread, set separator=... or "
            "header=... for it."
        )


def _resolved_drop(drop: Sequence[str], names: Sequence[str], path: Path) -> list[str]:
    wanted = [name for text in drop for name in ([text] if text in names else [n.strip() for n in text.split(",")])]
    unknown = [name for name in wanted if name not in names]
    if unknown:
        raise ValueError(f"{str(path)!r} has no column {unknown[0]!r} to drop; it has {listed(names)}.")
    return list(dict.fromkeys(wanted))


def _resolved_index(index: str | None, names: Sequence[str], path: Path) -> list[str]:
    if index is None or (index.lower() == NO_INDEX and index not in names):
        return []
    if index in names:
        return [index]
    if re.fullmatch(r"-?\d+", index) and -len(names) <= int(index) < len(names):
        return [names[int(index)]]
    raise ValueError(
        f"{str(path)!r} has no column {index!r} for index=...; it has {listed(names)}. Give a name, a number from 0 to "
        f"{len(names) - 1}, or 'none'."
    )


def _numbers(column: Any, name: str, path: Path, marks: Marks, needed: bool = False) -> np.ndarray | None:
    """Return a column as float64 (n,), or None if it holds text; raise an error for a mixture."""
    if getattr(column.dtype, "kind", "O") in "buif":
        return column.to_numpy(dtype=float, na_value=np.nan)
    present = column.notna().to_numpy()
    values = column.to_numpy(dtype=object)[present]
    few = numbers_from(values[:ENOUGH_TEXTS], marks)
    if not needed and len(few) and np.isnan(few).all():
        return None
    numbers = np.full(len(column), np.nan)
    numbers[present] = numbers_from(values, marks)
    odd = np.flatnonzero(present & np.isnan(numbers))
    share = 1 - len(odd) / max(len(values), 1)
    if len(odd) == 0:
        return numbers
    if share < MOSTLY_NUMBERS and not needed:
        return None
    text = column.iloc[odd[0]]
    rows = f"row {odd[0]}" if len(odd) == 1 else f"{len(odd)} rows, the first of them row {odd[0]},"
    raise ValueError(
        f"Column {name!r} of {str(path)!r} has numbers in {len(values) - len(odd)} of {len(column)} rows, but other "
        f"text in {rows} such as {text!r} (rows are counted from 0).{_hint(text, marks)} Correct or fill in these, "
        f"or leave the column out with drop=({name!r},)."
    )


def _hint(text: Any, marks: Marks) -> str:
    if not isinstance(text, str) or not is_number(text):
        return ""
    if marks.decimal == ",":
        return " If points are decimal points, use decimal='.'; if they separate thousands, thousands='.'."
    if "." in text:
        return " If points separate thousands, use decimal=',' and thousands='.'."
    return " If commas are decimal commas, use decimal=','; if they separate thousands, thousands=','."


def _identifies(values: np.ndarray, name: str, differ: bool, first_unnamed: bool) -> str:
    """Explain how a column of numbers identifies rows; empty if it does not."""
    if first_unnamed:
        return "has no name"
    whole = bool((np.isfinite(values) & (values == np.rint(values))).all())
    if not whole:
        return ""
    steps = np.diff(values)
    if len(values) >= COUNTED_ROWS and values[0] in (0, 1) and (steps == 1).all():
        return "counts the rows"
    if IDENTIFIER.fullmatch(name) and len(values) > 1 and differ:
        return "identifies rows (by its name, and by whole numbers that all differ)"
    return ""


def _of_constants(frame: Any, features: dict[str, np.ndarray]) -> list[str]:
    def is_constant(name: str) -> bool:
        values = features[name]
        return len(values) > 1 and bool((values == values[0]).all()) and frame[name].nunique() == 1

    constant = [name for name in features if is_constant(name)]
    if not constant:
        return []
    return [f"Constant, so that nothing can be learned from them (drop=... leaves them out): {listed(constant)}."]


def _of_large_numbers(frame: Any, features: dict[str, np.ndarray]) -> list[str]:
    def exact(name: str) -> bool:
        return getattr(frame[name].dtype, "kind", "O") == "f" or not (np.abs(features[name]) >= LARGEST_EXACT).any()

    large = [name for name in features if not exact(name)]
    if not large:
        return []
    return [
        "Whole numbers beyond 2^53 are rounded (if they are identifiers, leave them out with index=... or drop=...): "
        f"{listed(large)}."
    ]


def _of_quantities(frame: Any, texts: Sequence[str]) -> list[str]:
    """Remark on columns of texts such as "5 %" or "$12"."""

    def is_quantity(name: str) -> bool:
        values = [str(value) for value in frame[name].dropna()[:ENOUGH_TEXTS]]
        return sum(map(bool, map(QUANTITY.fullmatch, values))) > MOSTLY_NUMBERS * len(values)

    quantities = [name for name in texts if is_quantity(name)]
    remark = f"Numbers with signs or units are ignored as texts; write them without: {listed(quantities)}."
    return [remark] if quantities else []


def _nothing_left(path: Path, frame: Any, texts: Sequence[str], index: Sequence[str], dropped: Sequence[str]) -> str:
    if len(frame) == 0 or frame.shape[1] == 0:
        return f"{str(path)!r} is empty: {frame.shape[0]} rows, {frame.shape[1]} columns."
    parts = {"texts": texts, "index": index, "dropped": dropped}
    named = "; ".join(f"{what}: {listed(names)}" for what, names in parts.items() if names)
    return (
        f"{str(path)!r} has no column of numbers to learn from ({named}). If it was misread, set separator=..., "
        "decimal=... or index='none'."
    )
