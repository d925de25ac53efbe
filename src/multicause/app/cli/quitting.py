"""Ctrl-C and other signals that end the command line: clean up, print a message, and exit with status 128 + signal."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, NoReturn

from multicause.runtime.interruption import clean_up, say

#: Exit status after Ctrl-C; shells add 128 to the number of a signal.
INTERRUPTED = 130
#: Other signals that end the process: those of kill and batch systems, and of a terminal that is closed.
ENDING = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
NO_RESULT = "Interrupted; no result was written."
SHOW_CURSOR = b"\x1b[?25h"


class Quit:
    """Handler of Ctrl-C and other signals that ends the process without the usual shutdown of the interpreter.

    A KeyboardInterrupt does not work: modules that are being imported may swallow it or crash, and while JAX compiles
    in the background, the usual shutdown of the interpreter crashes.
    """

    def __init__(self, as_json: bool) -> None:
        self.lets_fits_stop = False  # whether the first Ctrl-C stops a fit early instead
        self._as_json = as_json

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Clean up and end the process."""
        code = 128 + number
        try:
            for own in (signal.SIGINT, *ENDING):
                signal.signal(own, signal.SIG_IGN)
            text = " ".join([NO_RESULT, *clean_up()])
            say(f"Error: {text}", sys.__stderr__)  # below a progress bar, which moves other text above itself
            with suppress(OSError, RuntimeError, ValueError):  # the signal may have interrupted another write
                if self._as_json:
                    sys.stdout.write(json.dumps({"error": text, "exit_code": code}) + "\n")
        finally:
            leave(code)


def leave(code: int = INTERRUPTED) -> NoReturn:
    """End the process immediately, by default with the status of Ctrl-C."""
    try:
        with suppress(OSError, RuntimeError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
        if os.name == "posix" and os.isatty(1):
            os.write(1, SHOW_CURSOR)  # progress bars hide it
    finally:
        os._exit(code)


def install(as_json: bool) -> None:
    """Handle signals that end this process, unless other code does or they are ignored, as in background jobs."""
    for number in (signal.SIGINT, *ENDING):
        if signal.getsignal(number) in (signal.default_int_handler, signal.SIG_DFL):
            signal.signal(number, Quit(as_json))


@contextmanager
def interrupted_by_exception() -> Iterator[None]:
    """Let Ctrl-C raise KeyboardInterrupt inside the block, as joblib needs to end its processes."""
    handler: Any = signal.getsignal(signal.SIGINT)
    if not isinstance(handler, Quit):
        yield
        return
    signal.signal(signal.SIGINT, _interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


@contextmanager
def fits_may_stop() -> Iterator[None]:
    """Let the first Ctrl-C during a fit inside the block stop learning early, with a result."""
    handler: Any = signal.getsignal(signal.SIGINT)
    if not isinstance(handler, Quit):
        yield
        return
    handler.lets_fits_stop = True
    try:
        yield
    finally:
        handler.lets_fits_stop = False
