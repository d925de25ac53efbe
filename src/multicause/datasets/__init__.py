"""Data sets with known causes."""

from multicause.datasets.bars import make_bars

__all__ = ["make_bars"]
