"""Names of the columns of rows that are not in memory, which scikit-learn stores and compares."""

from __future__ import annotations

from typing import Any

import numpy as np


def with_names(rows: np.ndarray, X: Any) -> Any:
    """Return rows (n, D) as a data frame with the column names of X, or as they are if X has none.

    Sources of parquet files and data frames of Dask have names; pandas, which both need, is then installed.
    """
    names = getattr(X, "names", None)
    if names is None and hasattr(X, "columns"):
        names = list(X.columns)
    if names is None:
        return rows
    import pandas

    return pandas.DataFrame(rows, columns=names)
