"""Memory sizes as users write them, and whether an array can exist."""

import re
from typing import Any

import numpy as np

_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}


def bytes_from(size: str | int) -> int:
    """Return the number of bytes of a memory size such as ``"512MiB"``, ``"2 GB"`` or an integer."""
    if isinstance(size, int | np.integer) and not isinstance(size, bool) and size > 0:
        return int(size)
    match = re.fullmatch(r"\s*(\d+\.?\d*|\.\d+)\s*([A-Za-z]*)\s*", size) if isinstance(size, str) else None
    if match is None or match[2].upper() not in _UNITS or float(match[1]) <= 0:
        raise ValueError(
            f"A memory size must be a positive number of bytes or text such as '512MiB' or '2GB'; got {size!r}."
        )
    return int(float(match[1]) * _UNITS[match[2].upper()])


def check_room(n_rows: int, n_values: int, dtype: Any) -> None:
    """Raise MemoryError for arrays larger than the address space; XLA would end the process instead."""
    try:
        np.empty((n_rows, n_values), dtype=dtype)
    except (MemoryError, ValueError, OverflowError) as error:
        size = n_rows * n_values * np.dtype(dtype).itemsize / 2**30
        raise MemoryError(
            f"{n_rows:,} rows of {n_values} values need {size:,.0f} GiB. Request fewer rows at once."
        ) from error
