"""Ctrl-C during a fit: the first one ends learning after the present iteration, the second one ends the fit at once."""

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
# Seconds after which an interruption of a compilation is tried again.
RETRY = 0.05


class Interruption:
    """Whether somebody has pressed Ctrl-C during a fit; the handler of that signal while the fit runs.

    The second Ctrl-C goes to ``before``, the handler that was there before the fit.
    """

    def __init__(self, before: Any = signal.default_int_handler) -> None:
        self.requested = False
        self._before = before
        self.quits = False  # whether the second Ctrl-C has raised its exception
        self._waits = False  # whether the second Ctrl-C has to wait for a compilation
        self._ended = threading.Event()

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Ask for a stop at the first Ctrl-C, and end the fit at the second."""
        if self._ended.is_set():
            return
        if not self.requested:
            self.requested = True
            say(STOPPING)
        elif self._before is signal.default_int_handler and _is_compiling(frame):
            # XLA compiles in a thread of its own. If the main thread stopped waiting for it, the interpreter could
            # remove the compiler at its end while it still works, and the process would crash.
            if not self._waits:
                self._waits = True
                threading.Thread(target=self._retry, daemon=True).start()
        else:
            self._ended.set()
            self.quits = True
            self._before(number, frame)

    def end(self) -> None:
        """Restore the handler before the fit; a second Ctrl-C that still waits for a compilation takes effect here."""
        waited = self._waits and not self._ended.is_set()
        self._ended.set()
        signal.signal(signal.SIGINT, self._before)
        if waited:
            raise KeyboardInterrupt

    def _retry(self) -> None:
        while not self._ended.wait(RETRY):
            _interrupt_main_thread()


@contextmanager
def interruptible() -> Iterator[Interruption]:
    """Learning inside the block is asked to stop at the first Ctrl-C.

    A fit inside another, as of a model that others start from, shares its interruption. Handlers that somebody else has
    installed stay, unless they have a true attribute ``lets_fits_stop``. Threads other than the main one get no
    signals.
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
            # The exception was lost on its way, as in a destructor, which cannot pass it on.
            raise KeyboardInterrupt


def say(text: str, stream: Any = None) -> None:
    """Write a line to standard error at once, also from a signal handler, which may interrupt another write."""
    stream = sys.stderr if stream is None else stream
    try:
        stream.write(f"\n{text}\n" if stream.isatty() else f"{text}\n")  # terminals show ^C
        stream.flush()
    except (AttributeError, OSError, RuntimeError, ValueError):
        with suppress(OSError):
            os.write(2, f"{text}\n".encode())


def _is_compiling(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_globals.get("__name__") == "jax._src.compiler":
            return True
        frame = frame.f_back
    return False


def _interrupt_main_thread() -> None:
    if hasattr(signal, "pthread_kill"):
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
    else:
        signal.raise_signal(signal.SIGINT)


# ---------------------------------------------------------------------------------------------- ending a process

_CLEANUPS: list[Callable[[], str | None]] = []


@contextmanager
def on_quit(cleanup: Callable[[], str | None]) -> Iterator[None]:
    """Have something done if the process is ended by :func:`clean_up` inside the block, as by Ctrl-C.

    ``cleanup`` may return a sentence for the user. It can be called at any point of the block.
    """
    _CLEANUPS.append(cleanup)
    try:
        yield
    finally:
        _CLEANUPS.remove(cleanup)


def clean_up() -> list[str]:
    """Do what the running blocks of :func:`on_quit` ask for, innermost first; return what they have to say."""
    said = []
    for cleanup in reversed(_CLEANUPS):
        with suppress(OSError):
            said.append(cleanup())
    return [text for text in said if text]
