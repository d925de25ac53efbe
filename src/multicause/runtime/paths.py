"""Paths of data files. One dataset of an HDF5 file is written ``FILE.h5::name``."""

from __future__ import annotations

from pathlib import Path

HDF5 = (".h5", ".hdf5")


def file_of(path: Path) -> Path:
    """Return the file or folder of a path, without the name of a dataset."""
    return dataset_of(path)[0]


def dataset_of(path: Path) -> tuple[Path, str | None]:
    """Return the file or folder of a path, and the name of a dataset in it or None."""
    file, separator, name = str(path).partition("::")
    if not separator or Path(file).suffix.lower() not in HDF5:
        return path, None
    return Path(file), name
