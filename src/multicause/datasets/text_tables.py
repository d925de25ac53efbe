"""Tables from delimited text files (csv, tsv), read with pandas."""

from __future__ import annotations

import csv
import io
import re
import warnings
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from multicause.datasets.numerals import GROUPING, Marks, numbers_from
from multicause.datasets.text_format import SEPARATOR_WORDS, TextFormat, find_format, is_comment, open_text
from multicause.runtime.optional import need


class TextTable:
    """Text file with its detected format and its columns as a data frame.

    Numeric columns have a numeric dtype; all others are strings. Columns without a name are called "Unnamed: 2" by
    their position, as in pandas, and a repeated name becomes "a.1".
    """

    def __init__(self, path: Path, **settings: Any) -> None:
        self.path, self.n_comments = path, 0
        word = settings.get("separator")
        settings["separator"] = SEPARATOR_WORDS.get(word, word) if word else None
        _check_signs(settings)
        self._pandas = need("pandas", f"reading {path.suffix} files", "app")
        try:
            self.format: TextFormat = find_format(path, **settings)
            self.names, self.renamed = unique_names(self.format.names)
            self.frame = self._read()
        except (EOFError, zlib.error, csv.Error) as error:
            raise ValueError(f"{str(path)!r} cannot be read as a table: {error}.") from error
        blank = self.frame.isna().all(axis=1)
        self.n_blank = int(blank.sum())
        self._kept = ~blank.to_numpy()
        self.frame = self.frame[self._kept].reset_index(drop=True)

    def texts(self, names: Sequence[str]) -> dict[str, Any]:
        """Return columns as strings as they are in the file, so that no digit of an identifier is lost: name → (n,)."""
        if not names:
            return {}
        frame = self._read(usecols=list(names), dtype=str, keep_default_na=False, na_values=[])
        return {name: frame[name].to_numpy(dtype=object)[self._kept] for name in names}

    def _read(self, **changes: Any) -> Any:
        text_format = self.format
        settings: dict[str, Any] = {
            "sep": r"\s+" if text_format.separator == " " else text_format.separator,
            "header": 0 if text_format.header else None,
            "names": self.names,
            "index_col": False,
            "skiprows": text_format.skip,
            "decimal": text_format.marks.decimal,
            "skipinitialspace": True,
            "low_memory": False,
        }
        grouped = text_format.marks.thousands is not None and not changes
        if grouped:  # pandas would remove the mark anywhere: 1.5 would become 15
            settings |= {"dtype": str}
        try:
            with warnings.catch_warnings(), self._stream() as stream:
                warnings.simplefilter("error", self._pandas.errors.ParserWarning)
                frame = self._pandas.read_csv(stream, **settings, **changes)
        except (ValueError, self._pandas.errors.ParserWarning) as error:  # errors of pandas are ValueErrors
            raise ValueError(_explained(self.path, str(error), text_format)) from error
        return frame.apply(_ungrouped, marks=text_format.marks) if grouped else frame

    def _stream(self) -> Any:
        """Return the file without comments between its rows."""
        file = open_text(self.path, self.format.encoding)
        if not self.format.comments:
            return file
        with file:
            lines = file.readlines()
        text_format = self.format
        comments = {
            n
            for n, line in enumerate(lines)
            if n >= text_format.skip and is_comment(line, text_format.separator, len(text_format.names))
        }
        self.n_comments = len(comments)
        return io.StringIO("".join(line for n, line in enumerate(lines) if n not in comments))


def unique_names(names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return unique names, and those that occurred more than once."""
    found: list[str] = []
    repeated: list[str] = []
    for place, name in enumerate(names):
        column = name or f"Unnamed: {place}"
        new, number = column, 0
        while new in found or (new != column and new in names):
            number += 1
            new = f"{column}.{number}"
        if number:
            repeated.append(column)
        found.append(new)
    return found, list(dict.fromkeys(repeated))


def _ungrouped(column: Any, marks: Marks) -> Any:
    """Convert a column of strings to numbers, if all of them are numbers in groups of three digits."""
    numbers = numbers_from(column, marks)
    present = column.notna().to_numpy()
    converted = (numbers == numbers)[present].all()  # NaN differs from itself
    return type(column)(numbers, index=column.index) if converted else column


def _check_signs(settings: dict[str, Any]) -> None:
    separator, decimal, thousands = (settings.get(name) for name in ("separator", "decimal", "thousands"))
    if separator is not None and len(separator) != 1:
        raise ValueError(f"separator must be one character, or a word such as 'tab' or 'space'; got {separator!r}.")
    if thousands is not None and thousands != "" and thousands not in GROUPING:
        raise ValueError(f"thousands must be one of {' '.join(map(repr, GROUPING))}; got {thousands!r}.")
    if decimal not in (None, ",", "."):
        raise ValueError(f"decimal must be a comma or a point; got {decimal!r}.")


def _explained(path: Path, text: str, text_format: TextFormat) -> str:
    """Return the text of an error for what pandas has reported."""
    short = re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", text)
    if short:
        expected, line, saw = short.groups()
        what = f"line {line} has {saw} values, but there are {expected} columns"
    elif "does not match length of data" in text:
        what = f"its first row has more values than there are columns ({len(text_format.names)})"
    elif "EOF inside string" in text:
        what = "a quotation mark is opened and never closed"
    else:
        what = (text.strip() or "unknown error").splitlines()[0].rstrip(".")
    return (
        f"{str(path)!r} cannot be read as a table: {what} (columns are separated by "
        f"{text_format.separator!r}). Correct the file, or set another separator, such as separator=';'."
    )
