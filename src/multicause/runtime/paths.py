"""Paths of data files. One dataset of an HDF5 file is written ``FILE.h5::name``."""

from __future__ import annotations

from pathlib import Path

from multicause.runtime.file_kinds import HDF5, suffix_of


def file_of(path: Path) -> Path:
    """Return the file or folder of a path, without the name of a dataset."""
    return dataset_of(path)[0]


def dataset_of(path: Path) -> tuple[Path, str | None]:
    """Return the file or folder of a path, and the name of a dataset in it or None."""
    file, separator, name = str(path).partition("::")
    if not separator or suffix_of(Path(file)) not in HDF5:
        return path, None
    return Path(file), name
