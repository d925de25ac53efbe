"""Base class of tables outside memory, of which rows are read in parts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from multicause.engines.missing import check_finite


class Source(ABC):
    """Base class of tables of numbers (N, D) outside memory, whose rows can be read."""

    #: Column names, if there are any.
    names: list[str] | None = None
    #: Absolute paths of the files that rows are read from, as far as they are known.
    files: tuple[str, ...] = ()
    #: Why no value may be missing, for models that cannot learn without it; None allows NaN.
    refusal: str | None = None
    #: Whether all values have been checked, so that later passes need not check them again.
    checked = False

    def __init__(self, name: str, shape: tuple[int, ...], dtype: Any) -> None:
        if len(shape) != 2:
            raise ValueError(
                f"{name} must have two dimensions, rows and features; got the shape {tuple(shape)}. Reshape it, for "
                "example to one row per image."
            )
        if np.dtype(dtype).kind not in "biuf":
            raise ValueError(f"{name} must hold real numbers; got dtype {dtype}.")
        self.name, self.shape = name, (int(shape[0]), int(shape[1]))
        #: Type of the rows that are returned: float32 is kept, all others become float64.
        self.dtype = np.dtype(np.float32 if dtype == np.float32 else np.float64)

    def check_from_now(self, refusal: str | None) -> None:
        """Check values that are read; ``refusal`` says why none may be missing, None allows NaN."""
        self.refusal, self.checked = refusal, False

    def trust(self) -> None:
        """Leave values that are read unchecked from now on, after one pass over all rows has checked them."""
        self.checked = True

    def use_dtype(self, dtype: np.dtype) -> None:
        """Convert rows to this dtype from now on."""
        self.dtype = dtype

    @property
    def n_bytes(self) -> int:
        """Return the memory of all rows."""
        return self.shape[0] * self.shape[1] * self.dtype.itemsize

    @property
    def bytes_at_once(self) -> int:
        """Return the memory of the largest piece that must be read as a whole; zero if any rows can be read."""
        return 0

    def __len__(self) -> int:
        return self.shape[0]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """Load all rows, for models that need them in memory."""
        rows = self.read(0, self.shape[0])
        return rows if dtype is None else rows.astype(dtype, copy=False)

    def read(self, start: int, stop: int) -> np.ndarray:
        """Return the rows from ``start`` to ``stop`` as floating-point numbers, NaN where a value is missing."""
        stop = min(stop, self.shape[0])
        try:
            rows = np.ascontiguousarray(self._read(start, stop), dtype=self.dtype)
        except (OSError, KeyError, ValueError, RuntimeError) as error:
            raise OSError(f"Rows {start:,} to {stop - 1:,} of {self.name} cannot be read: {error}") from error
        if rows.shape != (stop - start, self.shape[1]):
            raise OSError(
                f"Rows {start:,} to {stop - 1:,} of {self.name} cannot be read: it has become smaller since it was "
                "opened. Do not write to a file while it is in use."
            )
        if not self.checked:
            check_finite(rows, start, f" of {self.name}", self.names, self.refusal)
        return rows

    @abstractmethod
    def _read(self, start: int, stop: int) -> np.ndarray:
        """Return some rows as they are stored."""
