"""Engines: where data is, and how sums over it are computed."""

from multicause.engines.base import Data, Engine
from multicause.engines.dask import Dask
from multicause.engines.local import Local

__all__ = ["Dask", "Data", "Engine", "Local"]
