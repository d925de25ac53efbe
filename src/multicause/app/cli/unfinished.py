"""Resumable runs: the request and the checkpoints of a run, beside its future output folder.

A run that Ctrl-C has stopped is complete and keeps them inside its folder. Resuming it copies them beside it again.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from multicause.app.cli.file_names import SETTINGS, UNFINISHED
from multicause.app.cli.lock import check_not_running, held
from multicause.app.writing import new_folder, parents_of, remove_remains
from multicause.runtime.interruption import on_quit

SUFFIX, REQUEST = ".unfinished", "request.json"


@dataclass(frozen=True)
class Request:
    """Options of a fit as plain values, so that an interrupted run can be resumed."""

    paths: list[str]
    name: str
    parameters: dict[str, Any]
    extra: list[str]
    reading: dict[str, Any]
    memory: str
    with_report: bool
    engine: dict[str, Any] = field(default_factory=dict)  # engine options
    preparation: dict[str, bool | None] = field(default_factory=dict)  # steps that were asked for or forbidden
    curve: dict[str, Any] | None = None  # held-out scores, if the number of components was chosen by them


def unfinished(out: Path) -> Path:
    """Return the folder of checkpoints of the run with the output folder ``out``."""
    path = Path(os.path.abspath(out))
    return path.with_name(path.name + SUFFIX)


def is_stopped(out: Path) -> bool:
    """Return whether a folder holds a run that Ctrl-C has stopped and that can be resumed."""
    return (out / UNFINISHED / REQUEST).is_file()


def read_request(out: Path) -> Request:
    """Read the options of an interrupted or stopped run."""
    file = (out / UNFINISHED if is_stopped(out) and not unfinished(out).exists() else unfinished(out)) / REQUEST
    if not file.is_file():
        raise FileNotFoundError(f"There is nothing to resume: {_why_not(out, file)}.")
    try:
        return Request(**json.loads(file.read_text(encoding="utf-8")))
    except (ValueError, TypeError) as error:
        raise ValueError(f"{str(file)!r} is damaged: {error}. Start over with --force.") from error


def check_unfinished(out: Path, *, resume: bool, force: bool) -> None:
    """Raise an error if another run is active at ``out``, or was interrupted there and is not resumed."""
    folder = unfinished(out)
    check_not_running(folder)
    if not resume and folder.exists() and not force:
        raise FileExistsError(
            f"{str(folder)!r} holds the checkpoints of an interrupted run. Resume it with --resume {str(out)!r}, or "
            "start over with --force."
        )


@contextmanager
def checkpoints_of(out: Path, request: Request, *, resume: bool, force: bool) -> Iterator[Path]:
    """Create a folder for checkpoints during a run; it is removed at the end, or if it holds no checkpoint."""
    from multicause.persistence import newest_checkpoint

    folder = unfinished(out)

    def keep_or_remove() -> str | None:
        if newest_checkpoint(folder) is None:
            shutil.rmtree(folder, ignore_errors=True)
            return None
        return f"Checkpoints are kept; resume with: multicause fit --resume {str(out)!r}."

    check_unfinished(out, resume=resume, force=force)
    with parents_of(folder):
        if not resume:
            shutil.rmtree(folder, ignore_errors=True)
            with new_folder(folder) as new:
                (new / REQUEST).write_text(json.dumps(asdict(request)), encoding="utf-8")
        elif not folder.exists():
            with new_folder(folder) as new:
                shutil.copytree(out / UNFINISHED, new, dirs_exist_ok=True)
        with on_quit(keep_or_remove):
            try:
                with held(folder):
                    remove_remains(Path(os.path.abspath(out)))
                    yield folder
            except BaseException as error:
                kept = keep_or_remove()
                if kept is not None:
                    error.add_note(kept)
                raise
            shutil.rmtree(folder)


def keep_for_resuming(checkpoints: Path, run: Path) -> None:
    """Copy the files that are needed to resume a stopped run into its folder."""
    from multicause.persistence import newest_checkpoint

    newest = newest_checkpoint(checkpoints)
    if newest is not None:
        (run / UNFINISHED).mkdir()
        for file in (checkpoints / REQUEST, newest):
            shutil.copy2(file, run / UNFINISHED)


def _why_not(out: Path, file: Path) -> str:
    if not out.exists():
        return f"there is no {str(file)!r}"
    try:
        outcome = json.loads((out / SETTINGS).read_text(encoding="utf-8"))["outcome"]
    except (OSError, ValueError, TypeError, KeyError):
        return f"{str(out)!r} is not an interrupted run"
    longer = "; to learn for longer, fit again with more --iterations" if outcome == "max_iter" else ""
    return f"{str(out)!r} is finished, with outcome {outcome!r}{longer}"
