"""Detection of the format of a delimited text file: encoding, separator, header and marks of numbers.

Settings of the user are used unchanged. All others are detected from the beginning of the file; if two readings are
possible, an error names the option that decides.
"""

from __future__ import annotations

import csv
import gzip
import io
import itertools
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

from multicause.datasets.numerals import AmbiguousMarksError, Marks, find_marks, is_missing, is_number
from multicause.runtime.file_kinds import GZIP

SEPARATORS = (",", ";", "\t", "|", " ")  # " " stands for any run of white space
#: Names of separators that are hard to type.
SEPARATOR_WORDS = {"tab": "\t", r"\t": "\t", "space": " ", "comma": ",", "semicolon": ";", r"\s+": " "}
COMMENT = "#"
# Size of the sample that is examined: characters, lines, fields (of at least some lines), and lines for the separator.
SAMPLE, SAMPLE_LINES, SAMPLE_FIELDS, FEWEST_LINES = 1 << 20, 1000, 50_000, 20
CHUNK = 1 << 20
# Fraction of lines that must have equally many fields, and of values that must be numbers in a numeric column.
MOST = 0.9
# Number of consecutive numbers in a first line from which on they may be column names; two are enough for years.
LEAST_CONSECUTIVE = 3
YEARS = range(1800, 2200)
_CODE = re.compile(r"\s*0\d+\s*")


class TextFormat(NamedTuple):
    """Format of a text file."""

    encoding: str
    separator: str
    marks: Marks
    header: bool  # whether the first line after ``skip`` lines has column names
    names: list[str]  # names of all columns; "" for a column without a name
    skip: int  # number of lines before the table
    comments: bool  # whether there are comment lines after the first row
    remarks: tuple[str, ...]


def open_text(path: Path, encoding: str) -> IO[str]:
    """Open a text file, which may be compressed (gz)."""
    return io.TextIOWrapper(_open_bytes(path), encoding=encoding, newline="")


def _open_bytes(path: Path) -> Any:
    return gzip.open(path, "rb") if path.suffix.lower() == GZIP else path.open("rb")


def find_format(
    path: Path,
    *,
    encoding: str | None = None,
    separator: str | None = None,
    header: bool | None = None,
    decimal: str | None = None,
    thousands: str | None = None,
    row_names: bool | None = None,
) -> TextFormat:
    """Detect the settings that are not given. ``row_names`` says whether the first column has no name in the header."""
    encoding, commented, remarks = find_encoding(path, encoding)
    with open_text(path, encoding) as file:
        text = file.read(SAMPLE)
        whole = not file.read(1)
    lines = text.splitlines(keepends=True)
    lines = (lines if whole or len(lines) == 1 else lines[:-1])[:SAMPLE_LINES]
    commented = commented and not _hash_belongs_to_values(lines)
    skip, commented_header, declared = _beginning(lines)
    body = "".join(lines[skip:])
    if not body.strip():
        raise ValueError(f"{str(path)!r} is empty: it has no rows.")
    separator = separator or declared or find_separator(body, "\t" if ".tsv" in path.name.lower() else ",")
    rows = split_rows(body, separator)
    rows = rows[: max(FEWEST_LINES, SAMPLE_FIELDS // max(map(len, rows)))]
    names = _commented_names(commented_header, separator, rows) if header is not False else None
    has_header = names is None and (_has_header(path, rows) if header is None else header)
    marks = _marks(path, rows[1:] if has_header else rows, decimal, thousands)
    width = _width(rows, has_header)
    if names is None:
        names = _names(path, rows, width, row_names) if has_header else [str(number) for number in range(width)]
    remarks += _of_leading_zeros(names, rows[1:] if has_header else rows)
    return TextFormat(encoding, separator, marks, has_header, names, skip, commented, tuple(remarks))


def find_encoding(path: Path, encoding: str | None = None) -> tuple[str, bool, list[str]]:
    """Return the encoding, whether lines after the first are comments, and remarks.

    A byte order mark decides. Without one a file is UTF-8 or, if that is impossible, Windows-1252 or Latin-1, of which
    the latter can decode everything.
    """
    with _open_bytes(path) as file:
        beginning = file.read(4)
    known = {b"\xef\xbb\xbf": "utf-8-sig", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
    marked = next((name for mark, name in known.items() if beginning.startswith(mark)), None)
    if encoding is not None and encoding.lower().replace("_", "-") in ("utf-8", "utf8") and marked == "utf-8-sig":
        encoding = marked
    candidates = [encoding] if encoding else [marked] if marked else ["utf-8", "cp1252", "latin-1"]
    for candidate in candidates:
        try:
            commented = _decode(path, candidate)
        except UnicodeError as error:
            if candidate == candidates[-1]:
                reason = getattr(error, "reason", error)
                raise ValueError(
                    f"{str(path)!r} is not encoded as {candidate}: {reason}. "
                    "Name its encoding, such as encoding='latin-1'."
                ) from error
            continue
        except LookupError as error:
            raise ValueError(f"Unknown encoding {candidate!r}. Known are utf-8, latin-1, cp1252 and others.") from error
        remarks = []
        if candidate != candidates[0]:
            remarks.append(f"The file is not UTF-8 and was read as {candidate}; set encoding=... to choose another.")
        return candidate, commented, remarks
    raise AssertionError("the last candidate returns or raises")


def _decode(path: Path, encoding: str) -> bool:
    """Decode a whole file; return whether some line after a line of data is a comment."""
    seen_data, has_comments, before = False, False, "\n"
    with open_text(path, encoding) as file:
        while chunk := file.read(CHUNK):
            if "\0" in chunk:
                raise ValueError(
                    f"{str(path)!r} cannot be read as a table: it holds binary data, or text in another encoding (such "
                    "as encoding='utf-16')."
                )
            text, before = before + chunk, chunk[-1]
            has_comments = has_comments or (seen_data and "\n#" in text)
            if not seen_data:
                data = re.search(r"[\r\n][^#\s]", text)
                seen_data = data is not None
                has_comments = data is not None and re.search(r"[\r\n]#", text[data.start() :]) is not None
    return has_comments


def _beginning(lines: Sequence[str]) -> tuple[int, str | None, str | None]:
    """Return the number of lines before the table, the last comment among them, and the separator that they declare.

    Spreadsheet programs write the line "sep=;" to declare a separator.
    """
    declared = comment = None
    comments = not _hash_belongs_to_values(lines)
    for number, line in enumerate(lines):
        match = re.fullmatch(r"sep=(.)\s*", line)
        if number == 0 and match:
            declared = match[1]
        elif comments and line.startswith(COMMENT):
            comment = line.lstrip(COMMENT).strip()
        elif line.strip():
            return number, comment or None, declared
    return len(lines), comment or None, declared


def _hash_belongs_to_values(lines: Sequence[str]) -> bool:
    """Return whether most lines begin with #, which then belongs to the values of a column."""
    marked = [line.startswith(COMMENT) for line in lines if line.strip()]
    return 2 * sum(marked) > len(marked)


def is_comment(line: str, separator: str, width: int) -> bool:
    """Return whether a line between rows is a comment: it begins with # and has another number of values than rows."""
    return line.startswith(COMMENT) and (width == 1 or len(split_rows(line, separator)[0]) != width)


def _commented_names(comment: str | None, separator: str, rows: Sequence[Sequence[str]]) -> list[str] | None:
    """Return the column names in the last comment before the data, as numpy.savetxt writes them, or None."""
    if comment is None or _first_row_has_names(rows) is not False:
        return None
    names = split_rows(comment, separator)[0]
    return names if len(names) == _width(rows, False) and not any(map(is_number, names)) else None


def split_rows(text: str, separator: str) -> list[list[str]]:
    """Return the fields of all lines that are not blank."""
    if separator == " ":
        return [line.split() for line in text.splitlines() if line.strip()]
    try:
        rows = list(csv.reader(io.StringIO(text), delimiter=separator, skipinitialspace=True))
    except csv.Error:
        rows = [line.split(separator) for line in text.splitlines()]
    return [row for row in rows if row and any(field.strip() for field in row)]


def find_separator(text: str, default: str) -> str:
    """Return the separator that splits most lines into equally many fields, and most of these into numbers."""
    scores: dict[str, tuple[bool, float, bool, bool]] = {}
    for separator in SEPARATORS:
        rows = split_rows(text, separator)
        rows = rows[: max(FEWEST_LINES, SAMPLE_FIELDS // len(SEPARATORS) // max(map(len, rows)))]
        below = rows[1:] or rows
        (width, count), *_ = Counter(map(len, below)).most_common(1)
        if width > 1:
            fields = [field for row in below for field in row]
            numbers = sum(is_number(field) or is_missing(field) for field in fields) / len(fields)
            consistent, like_first = count >= MOST * len(below), len(rows[0]) == width
            scores[separator] = (consistent, round(numbers, 2), like_first, separator == default)
    return max(scores, key=lambda separator: scores[separator]) if scores else default


def _column(rows: Sequence[Sequence[str]], number: int) -> list[str]:
    """Return the values of one column that are not missing."""
    return [row[number] for row in rows if number < len(row) and not is_missing(row[number])]


def _width(rows: Sequence[Sequence[str]], has_header: bool) -> int:
    below = rows[1:] if has_header and len(rows) > 1 else rows
    return Counter(map(len, below)).most_common(1)[0][0]


def _number_columns(rows: Sequence[Sequence[str]], width: int) -> list[int]:
    """Return the indices of the columns that hold mostly numbers."""
    columns = {number: _column(rows, number) for number in range(width)}
    return [n for n, values in columns.items() if values and sum(map(is_number, values)) >= MOST * len(values)]


def _has_header(path: Path, rows: Sequence[Sequence[str]]) -> bool:
    has_names = _first_row_has_names(rows)
    if has_names is None:
        raise ValueError(
            f"The first line of {str(path)!r} ({_shortened(rows[0])}) may hold names of columns or data. Say which "
            "with header=True or header=False."
        )
    return has_names


def _first_row_has_names(rows: Sequence[Sequence[str]]) -> bool | None:
    """Return whether the first row has names: text above columns of numbers. None if that cannot be decided."""
    first, below = rows[0], rows[1:]
    if not below:
        return not any(map(is_number, first))
    width = _width(rows, True)
    shift = max(width - len(first), 0)
    columns = [n for n in _number_columns(below, width) if 0 <= n - shift < len(first)]
    if not columns:
        return not any(map(is_number, first))
    names = [first[n - shift] for n in columns]
    texts = [name for name in names if not is_number(name) and not is_missing(name)]
    numbers = [name for name in names if is_number(name)]
    without_name = not first[0].strip() and len(_column(below, 0)) == len(below)
    if (texts and not numbers) or (without_name and (texts or _are_consecutive(numbers))):
        return True
    return None if texts or (_are_consecutive(numbers) and not _continues_counting(first, below[0])) else False


def _are_consecutive(texts: Sequence[str]) -> bool:
    """Return whether these are consecutive whole numbers from 0 or 1 on, or years."""
    if not all(re.fullmatch(r"\d+", text.strip()) for text in texts) or len(texts) < 2:
        return False
    numbers = [int(text) for text in texts]
    if any(b - a != 1 for a, b in itertools.pairwise(numbers)):
        return False
    return (numbers[0] in (0, 1) and len(numbers) >= LEAST_CONSECUTIVE) or all(number in YEARS for number in numbers)


def _continues_counting(row: Sequence[str], after: Sequence[str]) -> bool:
    """Return whether the second row continues to count where the first one ends."""
    return _are_row_names([*row, *after])


def _names(path: Path, rows: Sequence[Sequence[str]], width: int, row_names: bool | None) -> list[str]:
    """Return a name for each column, from a header that may be one name shorter or longer than the rows."""
    names, below = [name.strip() for name in rows[0]], rows[1:]
    while len(names) > width and not names[-1]:
        names.pop()
    if len(names) > width and below:
        raise ValueError(
            f"The first line of {str(path)!r} has more names ({_shortened(names)}) than most rows have values ({width})"
            ". Give every column a name and every row the same number of values, or set separator=... for this file."
        )
    if len(names) >= width:
        return names
    lacking = width - len(names)
    if lacking == 1 and all(len(row) < width or not row[-1].strip() for row in below):
        return [*names, ""]  # rows end with a separator
    if lacking == 1 and (row_names or (row_names is None and _are_row_names([row[0] for row in below]))):
        return ["", *names]
    hints = " If the first column has names of rows, use index=0." if lacking == 1 else ""
    if len(names) == 1:
        hints += " If it is a title, remove it. If the comma is a decimal comma, use separator=';' and decimal=','."
    raise ValueError(
        f"The first line of {str(path)!r} has fewer names ({_shortened(names)}) than most rows have values ({width})."
        f"{hints} Otherwise give every column a name."
    )


def _are_row_names(values: Sequence[str]) -> bool:
    """Return whether values name rows: all different, and text or consecutive numbers."""
    if len(set(values)) < len(values):
        return False
    if not any(map(is_number, values)):
        return True
    whole = all(re.fullmatch(r"\d+", value.strip()) for value in values)
    return (
        whole
        and len(values) >= LEAST_CONSECUTIVE
        and [int(v) for v in values] == list(range(int(values[0]), int(values[0]) + len(values)))
    )


def _marks(path: Path, rows: Sequence[Sequence[str]], decimal: str | None, thousands: str | None) -> Marks:
    width = max(map(len, rows), default=0)
    texts = [text for number in _number_columns(rows, width) for text in _column(rows, number)]
    try:
        return find_marks(texts, (decimal, thousands))
    except AmbiguousMarksError as error:
        raise ValueError(f"Numbers of {str(path)!r} can be read in two ways: {error}") from None


def _of_leading_zeros(names: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    columns = [names[n] for n in _number_columns(rows, len(names)) if any(map(_CODE.fullmatch, _column(rows, n)))]
    if not columns:
        return []
    return [f"Numbers that begin with zeros may be codes (drop=... leaves such columns out): {_shortened(columns)}."]


def _shortened(fields: Sequence[str]) -> str:
    first_fields = ", ".join(repr(field) for field in fields[:4])
    return first_fields + (", …" if len(fields) > 4 else "")
