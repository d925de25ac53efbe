"""Engines: storage of the data, and computation of sums over it."""

from typing import Any

from multicause.engines.base import Data, Engine
from multicause.engines.dask import Dask
from multicause.engines.local import Local

#: Engines in the order in which they are asked whether they accept data; the last one accepts all.
ENGINES: tuple[type[Engine], ...] = (Dask, Local)

__all__ = ["ENGINES", "Dask", "Data", "Engine", "Local", "default_engine"]


def default_engine(X: Any) -> Engine:
    """Return the engine for the type of X, with its default settings."""
    return next(engine for engine in ENGINES if engine.accepts(X))()
