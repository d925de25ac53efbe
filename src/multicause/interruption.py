"""Ctrl-C during a fit: the first one ends learning after the present iteration, the second one at once."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Interruption:
    """Whether somebody has pressed Ctrl-C; the handler of that signal."""

    def __init__(self) -> None:
        self.requested = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Take note of the first, and raise at the second."""
        if self.requested:
            raise KeyboardInterrupt
        self.requested = True


@contextmanager
def interruptible() -> Iterator[Interruption]:
    """Learning inside the block is asked to stop at the first Ctrl-C.

    A fit inside another, as of a model that others start from, shares its interruption. Handlers that somebody else has
    installed stay, and threads other than the main one get no signals.
    """
    interruption, present = Interruption(), signal.getsignal(signal.SIGINT)
    if isinstance(present, Interruption):
        yield present
    elif present is not signal.default_int_handler or threading.current_thread() is not threading.main_thread():
        yield interruption
    else:
        signal.signal(signal.SIGINT, interruption)
        try:
            yield interruption
        finally:
            signal.signal(signal.SIGINT, present)
