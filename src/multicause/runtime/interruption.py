"""Ctrl-C during a fit: the first one stops learning after the current iteration, the second one aborts the fit."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

STOPPING = "Stopping after this iteration; press Ctrl-C again to quit without results"
# Seconds between attempts to interrupt a compilation.
RETRY = 0.05


class Interruption:
    """Signal handler of Ctrl-C during a fit, which records the request to stop.

    The second Ctrl-C is passed to ``before``, the handler that was installed before the fit.
    """

    def __init__(self, before: Any = signal.default_int_handler) -> None:
        self.requested = False
        self._before = before
        self.quits = False  # whether the second Ctrl-C has raised its exception
        self._waits = False  # whether the second Ctrl-C has to wait for a compilation
        self._ended = threading.Event()

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Request a stop at the first Ctrl-C, and abort the fit at the second."""
        if self._ended.is_set():
            return
        if not self.requested:
            self.requested = True
            say(STOPPING)
        elif self._before is signal.default_int_handler and _is_compiling(frame):
            # XLA compiles in a separate thread. If the main thread stopped waiting for it, the interpreter could
            # destroy the compiler at exit while it still works, and the process would crash.
            if not self._waits:
                self._waits = True
                threading.Thread(target=self._retry, daemon=True).start()
        else:
            self._ended.set()
            self.quits = True
            self._before(number, frame)

    def end(self) -> None:
        """Restore the previous handler; a second Ctrl-C that waited for a compilation takes effect here."""
        waited = self._waits and not self._ended.is_set()
        self._ended.set()
        signal.signal(signal.SIGINT, self._before)
        if waited:
            raise KeyboardInterrupt

    def _retry(self) -> None:
        """Repeat the interruption until it takes effect."""
        while not self._ended.wait(RETRY):
            _interrupt_main_thread()


@contextmanager
def interruptible() -> Iterator[Interruption]:
    """Let the first Ctrl-C inside the block request a stop of learning.

    Nested fits share one interruption. Handlers that other code has installed stay, unless they have a true attribute
    ``lets_fits_stop``. Threads other than the main one get no signals.
    """
    present = signal.getsignal(signal.SIGINT)
    gives_way = present is signal.default_int_handler or getattr(present, "lets_fits_stop", False)
    if isinstance(present, Interruption):
        yield present
    elif not gives_way or threading.current_thread() is not threading.main_thread():
        yield Interruption()
    else:
        interruption = Interruption(present)
        signal.signal(signal.SIGINT, interruption)
        try:
            yield interruption
        finally:
            interruption.end()
        if interruption.quits:
            # The exception was lost, for example in a destructor, which cannot propagate it.
            raise KeyboardInterrupt


def say(text: str, stream: Any = None) -> None:
    """Write a line to standard error immediately; safe in a signal handler that interrupts another write."""
    stream = sys.stderr if stream is None else stream
    try:
        stream.write(f"\n{text}\n" if stream.isatty() else f"{text}\n")  # terminals print ^C without a line break
        stream.flush()
    except (AttributeError, OSError, RuntimeError, ValueError):
        with suppress(OSError):
            os.write(2, f"{text}\n".encode())


def _is_compiling(frame: FrameType | None) -> bool:
    """Return whether a frame is inside JAX's compiler."""
    while frame is not None:
        if frame.f_globals.get("__name__") == "jax._src.compiler":
            return True
        frame = frame.f_back
    return False


def _interrupt_main_thread() -> None:
    """Send SIGINT to the main thread."""
    if hasattr(signal, "pthread_kill"):
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
    else:
        signal.raise_signal(signal.SIGINT)


# ---------------------------------------------------------------------------------------------- ending a process

_CLEANUPS: list[Callable[[], str | None]] = []


@contextmanager
def on_quit(cleanup: Callable[[], str | None]) -> Iterator[None]:
    """Register a cleanup function that :func:`clean_up` calls if the process is ended inside the block, as by Ctrl-C.

    ``cleanup`` may return a sentence for the user. It can be called at any point of the block.
    """
    _CLEANUPS.append(cleanup)
    try:
        yield
    finally:
        _CLEANUPS.remove(cleanup)


def clean_up() -> list[str]:
    """Call the cleanup functions of the active :func:`on_quit` blocks, innermost first; return their messages."""
    messages = []
    for cleanup in reversed(_CLEANUPS):
        with suppress(OSError):
            messages.append(cleanup())
    return [text for text in messages if text]
