"""Parsing of numbers in text files: decimal points and commas, thousands separators, missing values."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

#: Strings for missing values: those of pandas.read_csv, in lower case.
MISSING = frozenset(
    {"", "nan", "-nan", "na", "n/a", "#na", "#n/a", "#n/a n/a", "<na>", "null", "none"}
    | {"1.#ind", "-1.#ind", "1.#qnan", "-1.#qnan"}
)
#: Characters that group digits by thousands. The space may be a no-break space.
GROUPING = (",", ".", " ", "'", "’", "\u00a0", "\u202f")

_SIGN, _EXPONENT = r"\s*[+-]?", r"(?:[eE][+-]?\d+)?\s*"
_POINT = re.compile(rf"{_SIGN}(?:\d+\.\d*|\.\d+){_EXPONENT}")
_COMMA = re.compile(rf"{_SIGN}(?:\d+,\d*|,\d+){_EXPONENT}")
_WHOLE = re.compile(rf"{_SIGN}\d+{_EXPONENT}")
_WORD = re.compile(r"\s*[+-]?(?:inf|infinity|nan)\s*", re.IGNORECASE)
_GROUPED = re.compile(
    r"\s*[+-]?[1-9]\d{0,2}(?P<mark>[,. '’\u00a0\u202f])\d{3}(?:(?P=mark)\d{3})*(?:(?P<decimal>[.,])\d*)?\s*"
)


class Marks(NamedTuple):
    """Decimal mark and thousands separator of numbers."""

    decimal: str = "."
    thousands: str | None = None


class AmbiguousMarksError(ValueError):
    """Numbers that can be read in two ways."""


def is_missing(text: str) -> bool:
    """Return whether a string stands for a missing value."""
    return text.strip().lower() in MISSING


def is_number(text: str) -> bool:
    """Return whether a string is a number in any supported notation."""
    return any(pattern.fullmatch(text) for pattern in (_WHOLE, _POINT, _COMMA, _WORD)) or _grouping(text) is not None


def find_marks(texts: Iterable[str], marks: tuple[str | None, str | None] = (None, None)) -> Marks:
    """Detect the decimal mark and the thousands separator from some numbers and the marks that are known.

    An empty thousands separator means that there is none. Raises :class:`AmbiguousMarksError` if the numbers can be
    read in two ways, or in none.
    """
    decimal, thousands = marks
    if decimal is not None and decimal == thousands:
        raise ValueError(f"Decimal mark and thousands separator must differ; both are {decimal!r}.")
    examples: dict[str, str] = {}
    for text in texts:
        for sign in _evidence(text):
            examples.setdefault(sign, text.strip())
    if decimal is None:
        decimal = _decimal(examples, thousands)
    if thousands == "":
        return Marks(decimal)
    if thousands is None:
        certain = [sign[-1] for sign in examples if sign.startswith("groups by")]
        either = {"." if decimal == "," else ","} & {sign[-1] for sign in examples if sign.startswith("either")}
        thousands = next((mark for mark in [*certain, *either] if mark != decimal), None)
    return Marks(decimal, thousands)


def numbers_from(texts: Any, marks: Marks) -> np.ndarray:
    """Convert strings (n,) to float64, with NaN for missing values and for strings that are not numbers.

    Digits must be grouped by three: with thousands separated by points, "1.5" is not a number.
    """
    return np.array([_number(text, marks) for text in texts], dtype=float)


def _number(text: Any, marks: Marks) -> float:
    if not isinstance(text, str):
        return float(text) if isinstance(text, int | float) else np.nan
    plain = text.strip()
    grouped = _GROUPED.fullmatch(plain)
    if marks.thousands is not None and grouped is not None and grouped["mark"] == marks.thousands:
        plain = plain.replace(marks.thousands, "")
    if marks.decimal == ",":
        plain = "invalid" if "." in plain else plain.replace(",", ".")
    valid = any(pattern.fullmatch(plain) for pattern in (_WHOLE, _POINT, _WORD))
    return float(plain) if valid else np.nan


def _grouping(text: str) -> tuple[str, str | None] | None:
    """Return the mark that groups digits by three and the decimal mark, or None."""
    match = _GROUPED.fullmatch(text)
    if match is None or match["mark"] == match["decimal"]:
        return None
    return match["mark"], match["decimal"]


def _evidence(text: str) -> list[str]:
    """Return what one number implies about the marks; "either" stands for "1,234", which can be read in two ways."""
    grouping = _grouping(text)
    if grouping is not None:
        mark, decimal = grouping
        if mark in ",." and decimal is None and text.count(mark) == 1:
            return [f"either {mark}"]
        signs = [f"groups by {mark}"]
        return [*signs, f"decimal {decimal}"] if decimal is not None else signs
    if _COMMA.fullmatch(text):
        return ["decimal ,"]
    return ["decimal ."] if _POINT.fullmatch(text) else []


def _decimal(examples: dict[str, str], thousands: str | None) -> str:
    """Return the decimal mark implied by the evidence."""
    comma, point = "decimal ," in examples or "groups by ." in examples, "decimal ." in examples
    point = point or "groups by ," in examples
    if comma and point:
        with_comma = examples.get("decimal ,", examples.get("groups by ."))
        with_point = examples.get("decimal .", examples.get("groups by ,"))
        raise AmbiguousMarksError(
            f"some numbers have a decimal comma ({with_comma!r}) and others a decimal point ({with_point!r}). Say "
            "which with decimal=',' or decimal='.'."
        )
    if comma or thousands == ".":
        return ","
    if "either ," in examples and not point and thousands != ",":
        text = examples["either ,"]
        raise AmbiguousMarksError(
            f"{text!r} may be {text.replace(',', '')} or {text.replace(',', '.')}. Say which with thousands=',' "
            "or decimal=','."
        )
    return "."
