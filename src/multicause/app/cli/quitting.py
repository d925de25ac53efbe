"""Ctrl-C on the command line: clean up, print a message, and exit with status 130."""

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

INTERRUPTED = 130
NO_RESULT = "Interrupted; no result was written."
SHOW_CURSOR = b"\x1b[?25h"


class Quit:
    """Handler of Ctrl-C that ends the process without the usual shutdown of the interpreter.

    A KeyboardInterrupt does not work: modules that are being imported may swallow it or crash, and while JAX compiles
    in the background, the usual shutdown of the interpreter crashes.
    """

    def __init__(self, as_json: bool) -> None:
        self.lets_fits_stop = False  # whether the first Ctrl-C stops a fit early instead
        self._as_json = as_json

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Clean up and end the process."""
        try:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            text = " ".join([NO_RESULT, *clean_up()])
            say(f"Error: {text}", sys.__stderr__)  # below a progress bar, which moves other text above itself
            with suppress(OSError, RuntimeError, ValueError):  # the signal may have interrupted another write
                if self._as_json:
                    sys.stdout.write(json.dumps({"error": text, "exit_code": INTERRUPTED}) + "\n")
        finally:
            leave()


def leave() -> NoReturn:
    """End the process immediately, with the status of an interruption."""
    try:
        with suppress(OSError, RuntimeError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
        if os.name == "posix" and os.isatty(1):
            os.write(1, SHOW_CURSOR)  # progress bars hide it
    finally:
        os._exit(INTERRUPTED)


def install(as_json: bool) -> None:
    """Handle Ctrl-C in this process, unless other code does or it is ignored, as in background jobs of a shell."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, Quit(as_json))


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
