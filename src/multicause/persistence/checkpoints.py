"""Checkpoints: a model during learning together with the resumable state of its fit, in one file.

A checkpoint belongs to one fit: the same class, settings, data and weights, whose digest is part of its name. Several
fits, as in a grid search, can therefore share a folder.
"""

from __future__ import annotations

import hashlib
import json
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from multicause.engines.base import Data
from multicause.persistence import container
from multicause.persistence.container import ModelFileError
from multicause.persistence.encoding import decode, encode, name_of
from multicause.persistence.journal import LoopRecord
from multicause.persistence.models import Savable, save, settings_of
from multicause.runtime.user_warnings import warn_user
from multicause.version import __version__

SUFFIX = ".checkpoint"
# Settings that change what a fit prints, or where it runs, but not what it learns.
NOT_IDENTIFYING = ("verbose", "engine")


class Identity(NamedTuple):
    """Class, settings and data that identify a fit; the strings are digests."""

    estimator: str
    settings: dict[str, str]  # digest of each setting
    data: str

    @property
    def short(self) -> str:
        """Return a short name for the fit."""
        return hashlib.sha256(json.dumps(self).encode()).hexdigest()[:12]


class Resumption(NamedTuple):
    """State from which a fit resumes."""

    identity: dict[str, Any]
    record: LoopRecord
    history: dict[str, Any]  # bounds and temperatures that the fit has reported
    callback_states: tuple[Any, ...] = ()  # names and saved states of its callbacks


def identity_of(model: Savable, *data: np.ndarray | Data | None) -> Identity:
    """Compute the identity of a fit of a model to some arrays: rows, weights, and other data it learns from."""
    settings = {}
    for name, value in settings_of(model).items():
        arrays: dict[str, np.ndarray] = {}
        text = json.dumps(encode(value, arrays, name), sort_keys=True)
        settings[name] = _digest(text.encode(), *(arrays[key] for key in sorted(arrays)))
    kept = {name: settings[name] for name in sorted(settings) if name not in NOT_IDENTIFYING}
    return Identity(name_of(type(model)), kept, _digest(b"data", *data))


def write_checkpoint(model: Savable, folder: Path, number: int, max_files: int, resumption: Resumption) -> Path:
    """Write the checkpoint of an iteration, and remove all but the newest ``max_files`` checkpoints of the fit."""
    stem = f"{type(model).__name__}-{Identity(**resumption.identity).short}"
    path = folder / f"{stem}-{number:07d}{SUFFIX}"
    save(model, path, resumption)
    for old in _checkpoints(folder, stem)[max_files:]:
        old.unlink(missing_ok=True)
    # A process that was killed during writing has left a temporary file.
    for left in folder.glob(f".saving-*-{stem}-*"):
        left.unlink(missing_ok=True)
    return path


def newest_checkpoint(folder: str | PathLike[str]) -> Path | None:
    """Return the newest checkpoint in a folder, or None if there is none.

    ``model.fit(X, resume=newest_checkpoint("run"))`` starts from the beginning if the folder is empty, and resumes
    otherwise.
    """
    files = _checkpoints(Path(folder))
    return files[0] if files else None


def read_checkpoint(resume: str | PathLike[str], identity: Identity) -> Resumption:
    """Read a checkpoint file, or the newest one in a folder, and check that it belongs to this fit."""
    path = Path(resume)
    if not path.is_dir():
        return _understood(path, *container.read(path), identity)
    files = _checkpoints(path)
    if not files:
        raise FileNotFoundError(f"There is no checkpoint in {path} to resume from. Leave out resume to start over.")
    of_fit = [file for file in files if f"-{identity.short}-" in file.name]
    # A checkpoint of another fit is read to report the differences.
    for file in of_fit[:-1]:
        try:
            contents = container.read(file)
        except ModelFileError as error:
            warn_user(f"{error} Using the previous checkpoint instead.")
        else:
            return _understood(file, *contents, identity)
    oldest = of_fit[-1] if of_fit else files[0]
    return _understood(oldest, *container.read(oldest), identity)


def _checkpoints(folder: Path, stem: str = "") -> list[Path]:
    """Return all checkpoints, or those of one fit, newest first by time, because a new fit counts from zero again."""
    whole = [file for file in folder.glob(f"{stem}*{SUFFIX}") if not file.name.startswith(".")]
    return sorted(whole, key=lambda file: (file.stat().st_mtime_ns, file.name), reverse=True)


def _understood(path: Path, header: dict[str, Any], arrays: dict[str, np.ndarray], identity: Identity) -> Resumption:
    """Decode a checkpoint and check that it belongs to this fit and version."""
    if "checkpoint" not in header:
        raise ModelFileError(f"{path} is a fitted model, not a checkpoint. Read it with multicause.load.")
    if header.get("version") != __version__:
        raise ModelFileError(
            f"{path} was written by multicause {header.get('version')}, but this is {__version__}, which may learn "
            "differently. Resume with that version, or read the model so far with multicause.load."
        )
    try:
        resumption = decode(header["checkpoint"], arrays, {})
        theirs = Identity(**resumption.identity)
    except Exception as error:  # any failure on a header with a valid checksum means an invalid file
        raise ModelFileError(f"{path} is not a valid checkpoint: {container.one_line(error)}.") from error
    _check_same(path, theirs, identity)
    return resumption


def _check_same(path: Path, theirs: Identity, ours: Identity) -> None:
    """Raise ValueError if two identities differ."""
    if theirs.estimator != ours.estimator:
        kinds = [identity.estimator.partition(":")[2] for identity in (theirs, ours)]
        raise ValueError(f"{path} is a checkpoint of {kinds[0]}, not of {kinds[1]}. Pass one of the same model.")
    names = sorted({*theirs.settings, *ours.settings})
    changed = [name for name in names if theirs.settings.get(name) != ours.settings.get(name)]
    if changed:
        raise ValueError(
            f"{path} is a checkpoint of a fit with other settings: {', '.join(changed)} differ. Fit with the settings "
            "of the interrupted run (multicause.load of the checkpoint shows them), or start over without resume."
        )
    if theirs.data != ours.data:
        raise ValueError(
            f"{path} is a checkpoint of a fit to other data: X, its dtype or the weights differ. Fit the data of the "
            "interrupted run, or start over without resume."
        )


def _digest(*pieces: bytes | np.ndarray | Data | None) -> str:
    """Compute the SHA-256 digest of bytes, arrays and data."""
    digest = hashlib.sha256()
    for piece in pieces:
        if isinstance(piece, np.ndarray):
            digest.update(f"{piece.dtype.str}{piece.shape}".encode())
            digest.update(np.ascontiguousarray(piece).data if piece.size else b"")
        elif isinstance(piece, Data):
            digest.update(piece.fingerprint())
        else:
            digest.update(b"none" if piece is None else piece)
    return digest.hexdigest()
