"""Lock of a folder that a process holds as long as it lives, to tell running from dead runs."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

NAME = "lock"

if sys.platform == "win32":
    import msvcrt

    # Locked bytes cannot be read on Windows, so the lock lies behind the text.
    _PLACE = 1 << 20

    def _lock(file: IO[str]) -> None:
        file.seek(_PLACE)
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)

else:
    import fcntl

    def _lock(file: IO[str]) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def check_not_running(folder: Path) -> None:
    """Raise an error if a live process holds a folder."""
    try:
        with (folder / NAME).open("r+", encoding="utf-8") as file:
            _acquire(file, folder)
    except FileNotFoundError:
        return


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Hold a folder during the block; the system releases it if the process dies."""
    with (folder / NAME).open("a+", encoding="utf-8") as file:
        _acquire(file, folder)
        file.truncate(0)
        file.write(f"process {os.getpid()} on {socket.gethostname()}")
        file.flush()
        yield


def _acquire(file: IO[str], folder: Path) -> None:
    try:
        _lock(file)
    except (BlockingIOError, PermissionError):
        file.seek(0)
        holder = file.read().strip() or "another process"
        raise FileExistsError(
            f"{str(folder)!r} belongs to a run that is still active ({holder}). Wait until it ends, or choose another "
            "name with --out."
        ) from None
    except OSError:  # a file system without locks
        return
