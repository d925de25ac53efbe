"""Atomic writing of folders, like that of files by ``persistence.container.write_whole``."""

from __future__ import annotations

import os
import re
import shutil
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from multicause.runtime.interruption import on_quit


def check_free(path: Path, force: bool) -> None:
    """Raise FileExistsError if a path exists, unless ``force``."""
    if path.exists() and not force:
        raise FileExistsError(f"{str(path)!r} already exists. Choose a new name, or overwrite it with --force.")


def check_replaceable(path: Path, force: bool, files: Sequence[str]) -> None:
    """Raise FileExistsError if a folder exists, unless ``force`` and it holds only the files to be written."""
    check_free(path, force)
    others = sorted(p.name for p in path.iterdir() if p.name not in files) if path.is_dir() else []
    if others or path.is_file():
        what = f"holds other things, such as {others[0]!r}" if others else "is a file"
        raise FileExistsError(f"{str(path)!r} {what}, so it is not replaced, even with --force. Choose a new name.")


def check_file(path: Path, force: bool) -> None:
    """Check, before any work, that a file of this name can be written."""
    check_free(path, force)
    if not path.parent.is_dir():
        raise FileNotFoundError(f"Cannot save to {path}: the folder {path.parent} does not exist.")


def check_place(path: Path, force: bool, files: Sequence[str] = ()) -> None:
    """Check, before any work, that a folder of this name can be created."""
    path = Path(os.path.abspath(path))
    check_replaceable(path, force, files)
    with parents_of(path):
        temporary = _beside(path)
        temporary.mkdir()
        with suppress(FileNotFoundError):  # removed by a run of the same name, as remains of a killed process
            temporary.rmdir()


@contextmanager
def parents_of(path: Path) -> Iterator[None]:
    """Create the folders above a path for the block; those that are empty at its end are removed again."""
    missing = [folder for folder in path.parents if not folder.exists()]

    def remove() -> None:
        for folder in missing:
            with suppress(OSError):
                folder.rmdir()

    with on_quit(remove):
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            yield
        finally:
            remove()


@contextmanager
def new_folder(path: Path, *, force: bool = False, files: Sequence[str] = ()) -> Iterator[Path]:
    """Create a temporary folder beside ``path``, which is renamed to ``path`` when the block succeeds.

    If the block fails, nothing remains. With ``force``, a folder that holds only ``files`` is replaced; the old one
    exists until the new one is complete.
    """
    path = Path(os.path.abspath(path))
    check_replaceable(path, force, files)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = _beside(path)

    def remove() -> None:
        shutil.rmtree(temporary, ignore_errors=True)

    with on_quit(remove):
        try:
            temporary.mkdir()
            yield temporary
            check_replaceable(path, force, files)
            if path.exists():
                _exchange(temporary, path)
            else:
                os.rename(temporary, path)
        except BaseException:
            remove()
            raise


def remove_remains(path: Path) -> None:
    """Remove temporary folders of :func:`new_folder` that a killed process has left beside ``path``.

    No other process may be writing ``path``.
    """
    temporary = re.compile(rf"\.{re.escape(path.name)}-[0-9a-f]{{32}}")
    for folder in path.parent.iterdir():
        if temporary.fullmatch(folder.name):
            shutil.rmtree(folder, ignore_errors=True)


def _exchange(new: Path, path: Path) -> None:
    """Replace an old folder by a new one; the old one is restored if that fails."""
    old = _beside(path)

    def leave_one() -> None:
        if path.exists():
            shutil.rmtree(old, ignore_errors=True)
        else:
            os.rename(old, path)

    with on_quit(leave_one):
        try:
            os.rename(path, old)
            os.rename(new, path)
        finally:
            leave_one()


def _beside(path: Path) -> Path:
    return path.with_name(f".{path.name}-{uuid.uuid4().hex}")
