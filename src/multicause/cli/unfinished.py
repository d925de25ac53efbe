"""Runs that go on: what was asked for and the checkpoints lie beside the folder that a run will be written to."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from multicause.interruption import on_quit
from multicause.persistence import newest_checkpoint
from multicause.writing import new_folder, parents_of

SUFFIX, REQUEST = ".unfinished", "request.json"


@dataclass(frozen=True)
class Request:
    """What a fit was asked for: plain values, so that an interrupted one can go on."""

    path: str
    name: str
    parameters: dict[str, Any]
    extra: list[str]
    reading: dict[str, Any]
    memory: str
    with_report: bool


def unfinished(out: Path) -> Path:
    """The folder of checkpoints of the run that is to become ``out``."""
    path = Path(os.path.abspath(out))
    return path.with_name(path.name + SUFFIX)


def read_request(out: Path) -> Request:
    """What an interrupted run was asked for."""
    folder = unfinished(out)
    if not (folder / REQUEST).is_file():
        there = f"{str(out)!r} is finished" if out.exists() else f"there is no {str(folder / REQUEST)!r}"
        raise FileNotFoundError(f"There is nothing to resume: {there}.")
    try:
        return Request(**json.loads((folder / REQUEST).read_text(encoding="utf-8")))
    except (ValueError, TypeError) as error:
        raise ValueError(f"{str(folder / REQUEST)!r} is damaged: {error}. Begin anew with --force.") from error


@contextmanager
def checkpoints_of(out: Path, request: Request, *, resume: bool, force: bool) -> Iterator[Path]:
    """A folder for checkpoints while a run learns. It is removed at the end, or if there is nothing to go on from."""
    folder = unfinished(out)
    if not resume and folder.exists() and not force:
        raise FileExistsError(
            f"{str(folder)!r} holds the checkpoints of an interrupted run. Go on with --resume {str(out)!r}, or begin "
            "anew with --force."
        )
    with parents_of(folder):
        if not resume:
            shutil.rmtree(folder, ignore_errors=True)
            with new_folder(folder) as new:
                (new / REQUEST).write_text(json.dumps(asdict(request)), encoding="utf-8")

        def keep_or_remove() -> str | None:
            if newest_checkpoint(folder) is None:
                shutil.rmtree(folder, ignore_errors=True)
                return None
            return f"Checkpoints are kept; go on with: multicause fit --resume {str(out)!r}."

        with on_quit(keep_or_remove):
            try:
                yield folder
            except BaseException as error:
                kept = keep_or_remove()
                if kept is not None:
                    error.add_note(kept)
                raise
            shutil.rmtree(folder)
