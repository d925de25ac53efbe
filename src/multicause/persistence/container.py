"""The file: a safetensors file whose metadata holds a header in JSON and the SHA-256 of the whole file.

safetensors (a table of contents in JSON, then plain arrays) has no code and no compression in it, so that a file can
neither run anything nor grow when it is read, and other programs can look at the arrays. It has no checksum and no
version; both are added here. skops also avoids pickle, but names Python types of any package in its files, which a user
then has to audit; here a file may only name classes of this package.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import uuid
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy

from multicause.runtime.interruption import on_quit

FORMAT = 1
#: Every file begins with the length of the table of contents and these words in it.
OPENING = re.compile(
    rb'.{8}\{"__metadata__":\{"multicause":"format (?P<format>\d{1,9}) sha256 (?P<digest>[0-9a-f]{64}) ', re.DOTALL
)
LENGTH = 8  # bytes of the length of the table of contents
NO_DIGEST = b"0" * 64
#: What files of other kinds begin with.
OTHERS = {
    b"\x80": "is a pickle, which could run any code",
    b"PK": "is a zip archive, such as NumPy's .npz",
    b"\x93NUMPY": "is an array of NumPy",
}


class ModelFileError(ValueError):
    """A file that is no model of this library, or not a whole one."""


def write(path: str | PathLike[str], header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Write one file. It appears whole or not at all; one of that name is replaced."""
    # safetensors reads the memory of an array as it lies there, so it must lie in C order and the machine's bytes.
    tidy = {name: np.asarray(array, dtype=array.dtype.newbyteorder("="), order="C") for name, array in arrays.items()}
    text = f"format {FORMAT} sha256 {NO_DIGEST.decode()} {json.dumps(header)}"
    content = safetensors.numpy.save(tidy, {"multicause": text})
    found = OPENING.match(content)
    if found is None:
        raise RuntimeError("This version of safetensors orders its table of contents in a way that is not expected.")
    start, end = found.span("digest")
    write_whole(Path(path), content[:start] + hashlib.sha256(content).hexdigest().encode() + content[end:])


def read(path: str | PathLike[str]) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Header and arrays of a file that :func:`write` has written."""
    content = _read_whole(path)
    found = OPENING.match(content)
    if found is None:
        raise ModelFileError(f"{path} {_what_else(content)}. Expected a file made by save() or a checkpoint.")
    if int(found["format"]) > FORMAT:
        raise ModelFileError(
            f"{path} has format {int(found['format'])}, and this version of multicause reads formats up to {FORMAT}. "
            "Update multicause, or save the model with an older version."
        )
    start, end = found.span("digest")
    if hashlib.sha256(content[:start] + NO_DIGEST + content[end:]).hexdigest().encode() != found["digest"]:
        raise ModelFileError(f"{path} {_damage(content)}. Restore it from a copy, or save the model again.")
    # The checksum is right; what follows fails only for a file that was made to deceive.
    try:
        contents = json.loads(content[LENGTH : LENGTH + _length(content)])
        text = contents["__metadata__"]["multicause"]
        header = json.loads(text[found.end() - found.start("format") + len("format ") :])
        arrays = {name: np.array(array) for name, array in safetensors.numpy.load(content).items()}
    except Exception as error:  # any error here has one meaning
        raise ModelFileError(f"{path} is not a valid model file: {one_line(error)}.") from error
    if not isinstance(header, dict):
        raise ModelFileError(f"{path} is not a valid model file: its header is a {type(header).__name__}.")
    return header, arrays


def _length(content: bytes) -> int:
    return int.from_bytes(content[:LENGTH], "little")


def _what_else(content: bytes) -> str:
    if not content:
        return "is empty"
    for beginning, description in OTHERS.items():
        if content.startswith(beginning):
            return description
    return "is not a model file of multicause, or its first bytes are damaged"


def _damage(content: bytes) -> str:
    """Whether bytes are missing, as far as the table of contents still says."""
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
    """The first line of an error's text, without a full stop."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")


def _read_whole(path: str | PathLike[str]) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise explained(error, f"Cannot read {path}") from error


def write_whole(path: Path, content: bytes) -> None:
    """Write beside the target and move into place, so that a crash leaves the old file or the new one."""
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
    """Make sure that the new name survives a loss of power too, where the system can do that."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def explained(error: OSError, what: str) -> OSError:
    """The same kind of error in a sentence that says what to do."""
    reasons = {
        errno.ENOENT: "there is no such file",
        errno.EISDIR: "it is a folder; give the name of a file",
        errno.ENOTDIR: "a part of the path is a file, not a folder",
        errno.EACCES: "there is no permission; change the rights of the file or folder, or take another one",
        errno.EPERM: "there is no permission; change the rights of the file or folder, or take another one",
        errno.EROFS: "the file system can only be read; take another folder",
        errno.ENOSPC: "there is no space left on the device; free some, or take another folder",
        errno.EDQUOT: "the disk quota is used up; free some space, or take another folder",
    }
    number = error.errno if error.errno is not None else -1
    explained = type(error)(f"{what}: {reasons.get(number, one_line(error))}.")
    explained.errno = error.errno
    return explained
