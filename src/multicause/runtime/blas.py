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

    Programs call LAPACK for the factorizations of M-steps. Its threads stay active for a while after each call,
    and compete for cores with the threads that compute blocks of rows: on two cores, iterations of a linear model
    with 100 causes took a quarter longer.
    """
    with _libraries().limit(limits=1):
        yield


@lru_cache(maxsize=1)
def _libraries() -> Any:
    """Return the BLAS libraries of this process. To find them takes 10 ms."""
    import scipy.linalg  # noqa: F401  (JAX calls the LAPACK library of SciPy, which must be loaded to be found)

    return ThreadpoolController().select(user_api="blas")
