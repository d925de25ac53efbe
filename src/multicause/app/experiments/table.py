"""The form of a result: what was asked, what was found."""

from typing import NamedTuple


class Line(NamedTuple):
    """One number of an experiment."""

    what: str
    asked: str
    found: str
    reached: bool
