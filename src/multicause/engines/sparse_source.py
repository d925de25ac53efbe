"""Source of rows of a sparse matrix, such as a table of word counts, of which some are made dense at a time."""

from __future__ import annotations

from typing import Any

import numpy as np

from multicause.engines.source import Source


class SparseSource(Source):
    """Sparse matrix or array of scipy, kept in compressed rows (CSR); entries that are not stored are zero."""

    def __init__(self, matrix: Any) -> None:
        super().__init__("the sparse matrix", matrix.shape, matrix.dtype)
        self._matrix = matrix.tocsr()

    def _read(self, start: int, stop: int) -> np.ndarray:
        return self._matrix[start:stop].toarray()
