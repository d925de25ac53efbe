"""Data that Dask computes on its workers: which objects they are, and their blocks."""

from __future__ import annotations

from typing import Any

import numpy as np


def is_distributed(X: Any) -> bool:
    """Return whether X is a dask array or data frame, a delayed block, or a list of delayed blocks."""
    if not isinstance(X, list | tuple):
        return is_dask(X)
    if not any(map(is_dask, X)):
        return False
    for number, block in enumerate(X):
        if not _is_delayed(block):
            raise TypeError(
                f"Blocks of X must be dask.delayed objects; block {number} is of the type {type(block).__name__}. Use "
                "dask.delayed(block) for rows in memory, and dask.array.concatenate or dask.dataframe.concat for a "
                "list of dask arrays or data frames."
            )
    return True


def is_dask(X: Any) -> bool:
    """Return whether X is an object of Dask that is computed later."""
    return type(X).__module__.partition(".")[0] in ("dask", "dask_expr") and hasattr(X, "__dask_graph__")


def _is_delayed(X: Any) -> bool:
    return is_dask(X) and not hasattr(type(X), "shape")  # delayed objects have attributes of every name


def delayed_blocks(X: Any) -> list[Any] | None:
    """Return the blocks of a list of them, or of a single delayed block; None if X is of another kind."""
    if isinstance(X, list | tuple) and is_distributed(X):
        return list(X)
    return [X] if _is_delayed(X) else None


def as_dask_array(X: Any, n_features: int) -> Any:
    """Return rows on a cluster, a data frame of them or delayed blocks, as a dask array."""
    blocks = delayed_blocks(X)
    if blocks is not None:
        import dask.array as da

        arrays = [da.from_delayed(block, (np.nan, n_features), float) for block in blocks]
        return da.concatenate(arrays, allow_unknown_chunksizes=True)
    return X.to_dask_array() if hasattr(X, "to_dask_array") else X
