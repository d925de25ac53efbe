"""Settings of the memory allocator in Dask worker processes."""

from __future__ import annotations

import ctypes
import os
from functools import cache

# Setting of Dask in the environment of the workers that it starts: freed memory is returned to the system at once.
OF_DASK = ("MALLOC_TRIM_THRESHOLD_", "65536")
# Codes of settings of C's mallopt, with values near those that it would find by itself.
TRIM_THRESHOLD, MMAP_THRESHOLD = (-1, 2**28), (-3, 2**25)


@cache
def reuse_freed_memory() -> None:
    """Let this process keep up to 256 MiB of freed memory, if Dask has configured it to keep none.

    Every block needs temporary arrays of some MiB. If their pages came from the system each time, an iteration would
    take twice as long. Another value that a user has set is not changed.
    """
    if os.environ.get(OF_DASK[0]) != OF_DASK[1]:
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if os.name == "posix" else None
    if mallopt is not None:
        for setting in (TRIM_THRESHOLD, MMAP_THRESHOLD):
            mallopt(*setting)
