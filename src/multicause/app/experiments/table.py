"""Result of an experiment: the expected and the measured value."""

from typing import NamedTuple


class Line(NamedTuple):
    """One result of an experiment."""

    what: str
    expected: str
    found: str
    reached: bool
