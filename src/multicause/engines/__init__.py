"""Engines: where data lies, and how sums over it are made."""

from multicause.engines.base import Blocks, Engine
from multicause.engines.local import Local

__all__ = ["Blocks", "Engine", "Local"]
