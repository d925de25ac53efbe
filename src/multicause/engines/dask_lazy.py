"""Results for rows on a Dask cluster, as Dask arrays that are computed later."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from multicause.engines import dask_tasks as tasks
from multicause.engines.base import LazyResults
from multicause.engines.dask_inputs import as_dask_array, delayed_blocks


class LazyDaskResults(LazyResults):
    """Dask arrays as results, with one chunk for each chunk of the rows."""

    def n_columns(self, X: Any) -> int | None:
        """Return the number of columns; None for delayed blocks, which are checked when they are computed."""
        if delayed_blocks(X) is not None:
            return None
        return len(X.columns) if hasattr(X, "columns") else int(X.shape[-1])

    def compute_later(
        self, function: Callable[..., Any], X: Any, *arguments: Any, row: np.ndarray, out: Any, refusal: str | None
    ) -> Any:
        """Return a dask array of a function's results, which are computed where the chunks of X are."""
        if out is not None:
            raise TypeError("The result for a dask array is a dask array: leave out=, and use its to_zarr or store.")
        example = function(row, *arguments)
        if not isinstance(example, np.ndarray):
            raise TypeError(
                "recognize lists states only for rows in the memory of this process. Give some rows of the dask "
                "array, such as X[:1000].compute(), or use transform."
            )
        X = as_dask_array(X, row.shape[1])
        X = X.rechunk({1: -1}) if len(X.chunks[1]) > 1 else X
        columns = {"chunks": (X.chunks[0], *((size,) for size in example.shape[1:]))}
        dropped = {"drop_axis": 1} if example.ndim == 1 else {}
        of_chunk = partial(tasks.of_chunk, function, refusal)
        return X.map_blocks(of_chunk, *arguments, dtype=example.dtype, meta=example[:0], **columns, **dropped)
