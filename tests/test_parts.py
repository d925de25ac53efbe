"""Equality of parts, by which compiled programs are shared."""

from dataclasses import dataclass

from multicause.parts import Part


class Plain(Part):
    def __init__(self, size=1, **others):
        self.size = size


@dataclass(eq=False)
class Declared(Part):
    size: float


def test_parts_are_equal_if_their_settings_are():
    assert Plain(2) == Plain(2)
    assert hash(Plain(2)) == hash(Plain(2))
    assert Plain(2) != Plain(3)


def test_settings_of_a_dataclass_count():
    """Its constructor is made after the class."""
    assert Declared(1.0) == Declared(1.0)
    assert Declared(1.0) != Declared(2.0)
    assert Declared(1.0) != Plain(1.0)
