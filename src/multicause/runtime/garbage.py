"""Python's garbage collection during a fit."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

# Number of new objects after which unreachable ones are looked for during a fit; Python's default is 700 or 2,000.
NEW_OBJECTS = 50_000


class _Fits:
    """The fits that are under way in this process, in all threads, and the setting to return to after the last one."""

    lock = Lock()
    number = 0
    before: tuple[int, int, int] | None = None


@contextmanager
def fewer_collections() -> Iterator[None]:
    """Look for unreachable objects less often during a fit.

    Tracing a program makes hundreds of thousands of objects that stay, and Python looks at all of them again and again:
    a tenth of the time of a first fit, and half of that of a short second one. Nothing changes if garbage collection is
    switched off or rarer already.
    """
    with _Fits.lock:
        if _Fits.number == 0:
            now = gc.get_threshold()
            if 0 < now[0] < NEW_OBJECTS:
                _Fits.before = now
                gc.set_threshold(NEW_OBJECTS, *now[1:])
        _Fits.number += 1
    try:
        yield
    finally:
        with _Fits.lock:
            _Fits.number -= 1
            if _Fits.number == 0 and _Fits.before is not None:
                # A setting that was made during the fit stays.
                if gc.get_threshold()[0] == NEW_OBJECTS:
                    gc.set_threshold(*_Fits.before)
                _Fits.before = None
