"""Files that commands read and write: their names, and what is refused before any work. Imports nothing slow."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from multicause.runtime.paths import file_of

MODEL, HISTORY, SETTINGS, VERSIONS, REPORT, UNFINISHED = (
    "model.multicause",
    "history.csv",
    "settings.json",
    "versions.json",
    "report.html",
    "unfinished",
)
#: All that a run may hold; a folder with anything else in it is never replaced.
FILES = (MODEL, HISTORY, SETTINGS, VERSIONS, REPORT, UNFINISHED)
#: Endings of files that commands write.
TABLES = (".npy", ".npz", ".csv", ".parquet")
IMAGES = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp")
PAGES = (".html", ".htm")


def check_ending(path: Path, known: Sequence[str]) -> None:
    """Refuse a file's name before any work is done for it."""
    if path.suffix.lower() not in known:
        raise ValueError(f"{str(path)!r} must end in one of {', '.join(known)}.")
    if path.suffix.lower() == ".parquet":
        from multicause.datasets.tables import need

        need("pyarrow", "writing parquet files", "parquet")


def check_data(paths: Sequence[Path]) -> None:
    """Refuse files and folders that are not there."""
    for path in paths:
        if not file_of(path.expanduser()).exists():
            raise FileNotFoundError(f"There is no {str(file_of(path))!r}.")


def describe_paths(paths: Sequence[Path]) -> str:
    """The first path, and how many others there are."""
    others = len(paths) - 1
    return str(paths[0]) + (f" and {others} other{'s' if others > 1 else ''}" if others else "")
