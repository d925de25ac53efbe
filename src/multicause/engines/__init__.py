"""Engines: storage of the data, and computation of sums over it."""

from multicause.engines.base import Data, Engine
from multicause.engines.dask import Dask
from multicause.engines.local import Local

__all__ = ["Dask", "Data", "Engine", "Local"]
