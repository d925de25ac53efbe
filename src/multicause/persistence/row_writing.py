"""Writing of per-row results block by block, so that they need not all fit in memory."""

from __future__ import annotations

import errno
import os
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from multicause.engines.array_sources import as_source
from multicause.engines.base import Data
from multicause.persistence.container import explained
from multicause.runtime.file_kinds import NPY, suffix_of
from multicause.runtime.interruption import on_quit

# Reasons why a file cannot be written. Errors with other numbers, or none, may come from reading rows.
EXPLAINED = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT, errno.EACCES, errno.EROFS)


def check_out(out: Any, X: Any) -> None:
    """Raise an error, before any computation, if results for X cannot be written to ``out``."""
    _check_target(out)
    target = out if isinstance(out, str | PathLike) else getattr(out, "filename", None)
    source = None if target is None else as_source(X)
    if source is not None and os.path.abspath(str(target)) in source.files:
        raise ValueError(f"out is {str(target)!r}, from which X is read, and would be overwritten. Name another file.")


def _check_target(out: Any) -> None:
    """Raise an error if ``out`` is neither an array that can be written nor the name of a npy file."""
    if isinstance(out, str | PathLike):
        path = Path(out)
        if suffix_of(path) != NPY:
            raise ValueError(f"out must be an array or the name of a file that ends in .npy; got {str(path)!r}.")
        if not path.parent.is_dir():
            raise FileNotFoundError(f"Cannot write to {str(path)!r}: the folder {str(path.parent)!r} does not exist.")
    elif not hasattr(out, "shape") or not hasattr(out, "dtype") or not hasattr(out, "__setitem__"):
        raise TypeError(f"out must be an array or the name of a file that ends in .npy; got {type(out).__name__}.")
    elif isinstance(out, np.ndarray) and not out.flags.writeable:
        raise ValueError("out is read-only. Open a memory map with mode 'r+' or 'w+'.")


def collect_or_write(data: Data, of_block: Callable[[Any], Any], out: Any) -> Any:
    """Return the results of a function for all blocks of rows, or write them to ``out`` if it is given."""
    if out is None:
        return data.collect(data.map(of_block))
    return write_rows(out, data.n_rows, data.results(of_block))


def write_rows(out: Any, n_rows: int, parts: Iterable[np.ndarray]) -> Any:
    """Write results of ``n_rows`` rows, which come in parts (n, ...), to an array or a file, and return it.

    A file is written under a temporary name and renamed when it is complete; it is returned as a memory map. An array
    must have the shape of the results. A memory map gets its disk space reserved before anything is written.
    """
    _check_target(out)
    parts = iter(parts)
    if not isinstance(out, str | PathLike):
        return _into_array(out, n_rows, parts)
    path = Path(out)
    first = next(parts)
    with _new_file(path) as file:
        header = {"descr": np.lib.format.dtype_to_descr(first.dtype), "fortran_order": False}
        np.lib.format.write_array_header_1_0(file, {**header, "shape": (n_rows, *first.shape[1:])})
        _reserve(file.fileno(), file.tell(), n_rows * first[0].nbytes)
        for part in chain([first], parts):
            file.write(np.ascontiguousarray(part).data)
    return np.load(path, mmap_mode="r")


def _into_array(out: Any, n_rows: int, parts: Iterator[np.ndarray]) -> Any:
    """Copy parts into an array."""
    start = 0
    for part in parts:
        if start == 0:
            _check_array(out, (n_rows, *part.shape[1:]), part.dtype)
            if isinstance(out, np.memmap) and out.filename is not None:
                _reserve_map(out)
        out[start : start + len(part)] = part
        start += len(part)
    return out


def _check_array(out: Any, shape: tuple[int, ...], dtype: np.dtype) -> None:
    """Raise ValueError if an array cannot hold the results."""
    if tuple(out.shape) != shape:
        raise ValueError(f"out must have the shape {shape} of the results; got {tuple(out.shape)}.")
    if not np.can_cast(dtype, out.dtype, "same_kind"):
        raise ValueError(f"out must hold {dtype}, or floating-point numbers of another precision; got {out.dtype}.")


def _reserve_map(out: np.memmap) -> None:
    """Reserve disk space for a memory map: writing a page to a full disk would kill the process."""
    handle = os.open(str(out.filename), os.O_RDWR)
    try:
        _reserve(handle, 0, int(out.offset) + out.nbytes)
    except OSError as error:
        raise explained(error, f"Cannot write to {out.filename}") from error
    finally:
        os.close(handle)


def _reserve(handle: int, start: int, n_bytes: int) -> None:
    """Reserve disk space, so that a full disk is noticed before results are computed."""
    if not hasattr(os, "posix_fallocate") or n_bytes == 0:
        return
    try:
        os.posix_fallocate(handle, start, n_bytes)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.EOPNOTSUPP, errno.ENOSYS):  # file systems that do not support it
            raise


@contextmanager
def _new_file(path: Path) -> Iterator[BinaryIO]:
    """Open a temporary file beside ``path``, which is renamed to ``path`` on success and removed otherwise."""
    temporary = path.with_name(f".saving-{uuid.uuid4().hex}-{path.name}")

    def remove() -> None:
        temporary.unlink(missing_ok=True)

    with on_quit(remove):
        try:
            with open(temporary, "xb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        except BaseException as error:
            with suppress(OSError):
                remove()
            if isinstance(error, OSError) and error.errno in EXPLAINED:
                raise explained(error, f"Cannot write to {path}") from error
            raise
