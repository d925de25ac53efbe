"""Number of threads of BLAS and LAPACK while compiled programs use all cores."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from threadpoolctl import ThreadpoolController


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Let BLAS and LAPACK use one thread inside the block, in the whole process.

    Programs call LAPACK for the factorizations of M-steps. Its threads go on looking for work for a while after each
    call, and take cores away from the threads that compute blocks of rows: on two cores, iterations of a linear model
    with 100 causes took a quarter longer.
    """
    with _libraries().limit(limits=1):
        yield


@lru_cache(maxsize=1)
def _libraries() -> Any:
    """Return the BLAS libraries of this process. To find them takes 10 ms."""
    import scipy.linalg  # noqa: F401  (JAX calls the LAPACK library of SciPy, which must be loaded to be found)

    return ThreadpoolController().select(user_api="blas")
