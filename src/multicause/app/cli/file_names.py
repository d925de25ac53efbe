"""Names of files that commands read and write, and checks before any work. Imports nothing slow."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from multicause.runtime.file_kinds import PARQUET, suffix_of
from multicause.runtime.paths import file_of

MODEL, PREPARATION, HISTORY, SETTINGS, VERSIONS, REPORT, UNFINISHED = (
    "model.multicause",
    "preparation.safetensors",
    "history.csv",
    "settings.json",
    "versions.json",
    "report.html",
    "unfinished",
)
#: All files that a run may hold; a folder with anything else in it is never replaced.
FILES = (MODEL, PREPARATION, HISTORY, SETTINGS, VERSIONS, REPORT, UNFINISHED)


def check_ending(path: Path, known: Sequence[str]) -> None:
    """Raise ValueError if the suffix of an output file is unknown."""
    if suffix_of(path) not in known:
        raise ValueError(f"{str(path)!r} must end in one of {', '.join(known)}.")
    if suffix_of(path) == PARQUET:
        from multicause.runtime.optional import need

        need("pyarrow", "writing parquet files", "parquet")


def check_data(paths: Sequence[Path]) -> None:
    """Raise FileNotFoundError if a file or folder does not exist."""
    for path in paths:
        if not file_of(path.expanduser()).exists():
            raise FileNotFoundError(f"There is no {str(file_of(path))!r}.")


def describe_paths(paths: Sequence[Path]) -> str:
    """Return the first path and the number of others."""
    others = len(paths) - 1
    return str(paths[0]) + (f" and {others} other{'s' if others > 1 else ''}" if others else "")
