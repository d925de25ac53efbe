"""Model file format: a safetensors file whose metadata holds a JSON header and the SHA-256 of header and arrays.

A safetensors file (a table of contents in JSON, then plain arrays) contains neither code nor compressed data, so that
reading it can neither run anything nor exhaust memory, and other programs can read the arrays. It has no checksum and
no version; both are added here. skops also avoids pickle, but names Python types of any package in its files, which a
user then has to audit; here a file may only name classes of this package.

The metadata have one entry, ``"multicause": "format 2 sha256 <digest> <header>"``, because safetensors writes several
entries in random order, and equal models should have equal files.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import uuid
from contextlib import suppress
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import safetensors.numpy

from multicause.runtime.interruption import on_quit

FORMAT = 2
ENTRY = "multicause"  # name of the entry in the metadata
OPENING = b'{"__metadata__":{"multicause":"format '  # first bytes of the table of contents, if it is not damaged
LENGTH = 8  # number of bytes that hold the length of the table of contents
NO_DIGEST = b"0" * 64  # stands for the digest in the bytes over which that of format 1 was computed
#: First bytes of files of other kinds.
OTHERS = {
    b"\x80": "is a pickle, which could run any code",
    b"PK": "is a zip archive, such as NumPy's .npz",
    b"\x93NUMPY": "is an array of NumPy",
}


class ModelFileError(ValueError):
    """File that is not a model of this library, or is incomplete or damaged."""


class Entry(NamedTuple):
    """Entry in the metadata of a model file."""

    format: int
    digest: str
    text: str  # header in JSON

    def __str__(self) -> str:
        return f"format {self.format} sha256 {self.digest} {self.text}"


def write(path: str | PathLike[str], header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Write one file atomically: it appears completely or not at all; an existing file is replaced."""
    # safetensors copies the memory of an array unchanged, so it must be in C order and native byte order.
    tidy = {name: np.asarray(array, dtype=array.dtype.newbyteorder("="), order="C") for name, array in arrays.items()}
    text = json.dumps(header)
    entry = Entry(FORMAT, _digest(text, tidy), text)
    write_whole(Path(path), safetensors.numpy.save(tidy, {ENTRY: str(entry)}))


def read(path: str | PathLike[str]) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Read the header and arrays of a file that :func:`write` wrote."""
    content = _read_whole(path)
    entry, arrays = _entry_and_arrays(path)
    if entry is None and OPENING not in content[: LENGTH + len(OPENING)]:
        raise ModelFileError(f"{path} {_what_else(content)}. Expected a file made by save() or a checkpoint.")
    if entry is not None and entry.format > FORMAT:
        raise ModelFileError(
            f"{path} has format {entry.format}, and this version of multicause reads formats up to {FORMAT}. "
            "Update multicause, or save the model with an older version."
        )
    if entry is None or arrays is None or entry.digest != _digest_for(entry, arrays, content):
        raise ModelFileError(f"{path} {_damage(content)}. Restore it from a copy, or save the model again.")
    header = json.loads(entry.text)
    if not isinstance(header, dict):
        raise ModelFileError(f"{path} is not a valid model file: its header is a {type(header).__name__}.")
    return header, arrays


def _entry_and_arrays(path: str | PathLike[str]) -> tuple[Entry | None, dict[str, np.ndarray] | None]:
    """Return the entry in the metadata and the arrays of a file; None for what cannot be read."""
    entry, arrays = None, None
    # Any error means that the file is of another kind, or that bytes are missing or have changed.
    with suppress(Exception), safetensors.safe_open(path, framework="numpy") as file:
        entry = _entry_of(file.metadata() or {})
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (it is no mapping)
    return entry, arrays


def _entry_of(metadata: dict[str, str]) -> Entry | None:
    """Return the entry of a model file in the metadata of a safetensors file; None if there is none."""
    match metadata.get(ENTRY, "").split(" ", 4):
        case ["format", number, "sha256", digest, text]:
            return Entry(int(number), digest, text)
    return None


def _digest(text: str, arrays: dict[str, np.ndarray]) -> str:
    """Return the SHA-256 of a header and of the names, dtypes, shapes and values of all arrays."""
    digest = hashlib.sha256(text.encode())
    for name, array in sorted(arrays.items()):
        digest.update(f"\n{name} {array.dtype.str} {array.shape}\n".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def _digest_for(entry: Entry, arrays: dict[str, np.ndarray], content: bytes) -> str:
    """Return the digest that the entry of an intact file has.

    In format 1 it is that of all bytes of the file, with zeros in place of the digest.
    """
    if entry.format > 1:
        return _digest(entry.text, arrays)
    return hashlib.sha256(content.replace(entry.digest.encode(), NO_DIGEST, 1)).hexdigest()


def _length(content: bytes) -> int:
    """Return the length of the table of contents."""
    return int.from_bytes(content[:LENGTH], "little")


def _what_else(content: bytes) -> str:
    """Describe a file that is not a model file."""
    if not content:
        return "is empty"
    for beginning, description in OTHERS.items():
        if content.startswith(beginning):
            return description
    return "is not a model file of multicause, or its first bytes are damaged"


def _damage(content: bytes) -> str:
    """Describe how a file is damaged: bytes are missing, according to the table of contents, or changed."""
    expected = LENGTH + _length(content)
    if expected <= len(content):
        try:
            entries = json.loads(content[LENGTH:expected])
            expected += max(
                [int(entry["data_offsets"][1]) for name, entry in entries.items() if name[:2] != "__"] + [0]
            )
        except (ValueError, KeyError, TypeError, AttributeError, IndexError):
            expected = 0
    if expected > len(content):
        return f"is truncated or damaged: it should have {expected:,} bytes and has {len(content):,}"
    return "is damaged: its contents do not match its checksum"


def one_line(error: BaseException) -> str:
    """Return the first line of an error's message, without a full stop."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")


def _read_whole(path: str | PathLike[str]) -> bytes:
    """Read a file, with explained errors."""
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise explained(error, f"Cannot read {path}") from error


def write_whole(path: Path, content: bytes) -> None:
    """Write a temporary file and rename it, so that a crash leaves either the old file or the new one."""
    if not path.parent.is_dir():
        raise FileNotFoundError(f"Cannot save to {path}: the folder {path.parent} does not exist.")
    temporary = path.with_name(f".saving-{uuid.uuid4().hex}-{path.name}")

    def remove() -> None:
        temporary.unlink(missing_ok=True)

    try:
        with on_quit(remove):
            with open(temporary, "xb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        _sync_folder(path.parent)
    except BaseException as error:
        remove()
        if isinstance(error, OSError):
            raise explained(error, f"Cannot save to {path}") from error
        raise


def _sync_folder(folder: Path) -> None:
    """Flush the folder, so that the new name survives a loss of power, where the system supports it."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def explained(error: OSError, what: str) -> OSError:
    """Return an error of the same type whose message explains the reason and what to do."""
    reasons = {
        errno.ENOENT: "there is no such file",
        errno.EISDIR: "it is a folder; give the name of a file",
        errno.ENOTDIR: "a part of the path is a file, not a folder",
        errno.EACCES: "permission denied; change the permissions of the file or folder, or use another one",
        errno.EPERM: "permission denied; change the permissions of the file or folder, or use another one",
        errno.EROFS: "the file system is read-only; use another folder",
        errno.ENOSPC: "there is no space left on the device; free some space, or use another folder",
        errno.EFBIG: "the file would be larger than this process or the file system allows; see `ulimit -f`, or use "
        "another folder",
        errno.EDQUOT: "the disk quota is exceeded; free some space, or use another folder",
    }
    number = error.errno if error.errno is not None else -1
    clearer = type(error)(f"{what}: {reasons.get(number, one_line(error))}.")
    clearer.errno = error.errno
    return clearer
