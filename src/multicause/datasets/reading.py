"""Reading of a user's data: any file or folder that can be converted to rows, the same way each time."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from multicause.datasets import pictures, recordings, tables
from multicause.datasets.checks import check_dtype, positive, whole
from multicause.datasets.files import read_sound
from multicause.datasets.large_tables import LargeTable, open_table
from multicause.datasets.spectrograms import N_CHANNELS
from multicause.runtime.file_kinds import IMAGES, READABLE, SOUNDS, STORES, TABLES, suffix_of
from multicause.runtime.paths import file_of

DEFAULT_COUNT = 10_000
SOUND_ROWS = ("spectrogram", "waveform")


@dataclass(frozen=True)
class Reading:
    """Settings for converting files to rows. A model and later data need the same ones, so a fitted run stores them."""

    array: str | None = None  # name of an array in an npz file
    separator: str | None = None  # separator of a text file; this and the next four are detected if None
    header: bool | None = None
    decimal: str | None = None
    thousands: str | None = None  # "" for none
    encoding: str | None = None
    index: str | int | None = None  # name or number of the column that identifies rows, or "none"; None: detected
    drop: tuple[str, ...] = ()
    columns: tuple[str, ...] | None = None  # None: all numeric columns
    image_shape: tuple[int, int] | None = None  # image shape of the rows of a table
    patches: tuple[int, int] | None = None  # None: whole images
    count: int | None = None  # number of patches, or largest number of pieces of a recording
    scale: float = 10.0  # value of white
    sound: str = "spectrogram"
    frames: int = 9  # windows in a piece of the spectrogram
    length: int = 128  # samples in a piece of the waveform
    sample_rate: int = 8000
    channel: int | None = None
    level: float | None = None  # level of sound, determined from the first recordings
    dtype: str = "float64"
    seed: int = 0

    @classmethod
    def from_settings(cls, settings: dict[str, Any]) -> Reading:
        """Create the reading from its :meth:`settings`."""
        known = {field.name for field in fields(cls)}
        values: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in settings.items() if k in known}
        return cls(**values)

    def settings(self) -> dict[str, Any]:
        """Return all settings as plain values."""
        return asdict(self)


class UserData(NamedTuple):
    """Rows that were read, with a description."""

    rows: Any  # an array (n, D), or a Source if they exceed the memory budget
    kind: str  # table, images, patches, spectrogram, waveform
    image_shape: tuple[int, int] | None
    names: list[str] | None  # column names
    files: tuple[Path, ...]
    remarks: tuple[str, ...]
    reading: Reading  # settings, including those that were detected
    summary: str = ""  # description of the data in one line
    others: Callable[[], dict[str, np.ndarray]] = dict  # columns of a table that were left out, by name


def read_data(
    path: str | PathLike[str] | Sequence[str | PathLike[str]],
    reading: Reading = Reading(),
    *,
    memory_budget: int | str | None = None,
) -> UserData:
    """Read a table (npy, npz, csv, tsv, parquet, HDF5, zarr), an image, a wav file, or a folder of images or wav files.

    Text files may be compressed (``.csv.gz``). Settings of the format that are not given are detected; ``summary`` and
    ``remarks`` of the result describe them.

    Parameters
    ----------
    path : path-like, or sequence of them
        File or folder, or several of one kind, whose rows are concatenated.
    reading : Reading
        Settings: patches, spectrograms, columns to leave out and so on.
    memory_budget : int or str, optional
        Number of bytes, or text such as "2GiB". Rows of npy, parquet, HDF5 and zarr files that would take more memory
        are not loaded but opened, see :func:`open_rows`. By default all rows are loaded.
    """
    paths = [Path(one).expanduser() for one in ([path] if isinstance(path, str | PathLike) else path)]
    _check(reading)
    files, remarks = files_of(paths)
    kind = kind_of(files[0])
    if kind == "sound":
        data = _sound(files, reading)
    elif kind == "image" or reading.patches is not None:
        data = _pictures(files, reading)
    else:
        data = _tables(files, reading, memory_budget)
    if reading.count is not None and data.kind in ("table", "images"):
        unused = "The count is only for patches of images and pieces of sound; all rows are used."
        data = data._replace(remarks=(*data.remarks, unused))
    if not isinstance(data.rows, np.ndarray):
        return data._replace(remarks=(*remarks, *data.remarks))
    place = paths[0] if len(paths) == 1 else Path(os.path.commonpath([file.absolute() for file in files]))
    tables.check_values(data.rows, place, data.names, allow_missing=data.kind in ("table", "images"))
    data = data._replace(remarks=(*data.remarks, *tables.remark_on_missing(data.rows, data.names)))
    summary = data.summary or f"{data.rows.shape[0]} rows of {data.rows.shape[1]} values ({data.kind})"
    rows = data.rows.astype(reading.dtype, order="C")
    return data._replace(rows=rows, remarks=(*remarks, *data.remarks), summary=summary)


def kind_of(file: Path) -> str:
    """Return whether a file is a table, an image or a sound, by its suffix."""
    suffix = suffix_of(file_of(file))
    return "sound" if suffix in SOUNDS else "image" if suffix in IMAGES else "table"


def files_of(paths: Sequence[Path]) -> tuple[tuple[Path, ...], tuple[str, ...]]:
    """Return all files of some paths, which must be of one kind, and remarks on files of folders that are left out."""
    if not paths:
        raise ValueError("Name at least one file or folder; got none.")
    of_paths = [_files_of(path) for path in paths]
    files = tuple(file for some, _ in of_paths for file in some)
    for file in files:
        if kind_of(file) != kind_of(files[0]):
            raise ValueError(
                f"{str(files[0])!r} ({kind_of(files[0])}) and {str(file)!r} ({kind_of(file)}) are of different kinds; "
                "give paths of one kind."
            )
    return files, tuple(remark for _, remarks in of_paths for remark in remarks)


def _files_of(path: Path) -> tuple[tuple[Path, ...], tuple[str, ...]]:
    """Return the files of one path and a remark on those that are left out."""
    file = file_of(path)
    if not file.exists():
        raise FileNotFoundError(f"There is no {str(file)!r}.")
    if file.is_file() or suffix_of(file) in STORES:
        if suffix_of(file) not in READABLE:
            raise ValueError(f"{str(path)!r} has an unknown format. Known endings: {', '.join(READABLE)}.")
        return (path,), ()
    inside = sorted(p for p in path.rglob("*") if p.is_file() and not p.name.startswith("."))
    images = [p for p in inside if suffix_of(p) in IMAGES]
    sounds = [p for p in inside if suffix_of(p) in SOUNDS]
    if images and sounds:
        raise ValueError(f"{str(path)!r} holds both images and sounds; name a folder that holds one kind.")
    files = images or sounds
    if not files:
        kinds = [suffix_of(p) for p in inside if suffix_of(p) in (*TABLES, *STORES)]
        remedy = (
            f"Of a folder of tables, name the files: {path}/*{kinds[0]}."
            if kinds
            else f"Expected endings: {', '.join((*IMAGES, *SOUNDS))}."
        )
        raise ValueError(f"{str(path)!r} holds no images or sounds, but {len(inside)} other files. {remedy}")
    others = [p.name for p in inside if p not in set(files)]
    remark = f"Files of other kinds were left out: {len(others)}, such as {others[0]!r}." if others else ""
    return tuple(files), (remark,) if remark else ()


def _tables(files: Sequence[Path], reading: Reading, memory_budget: int | str | None) -> UserData:
    """Read tables with the same columns, one after the other."""
    budget = None
    if memory_budget is not None:
        from multicause.arrays import bytes_from

        budget = bytes_from(memory_budget)
    large = open_table(files, reading, budget)
    if large is not None:
        return _of_large_table(files, reading, large, budget)
    first = _table(files[0], reading)
    if len(files) == 1:
        return first
    # Later tables have the format of the first one, and the same columns.
    same = first.reading if first.names is None else replace(first.reading, drop=(), columns=tuple(first.names))
    rows, others = [first.rows], [first.others]
    for file in files[1:]:
        more = _table(file, same)
        if more.rows.shape[1] != first.rows.shape[1]:
            raise ValueError(
                f"Tables that are read together must have the same columns, but {str(files[0])!r} has "
                f"{first.rows.shape[1]} and {str(file)!r} has {more.rows.shape[1]}."
            )
        tables.check_values(more.rows, file, more.names, allow_missing=True)
        rows.append(more.rows)
        others.append(more.others)
    tables.check_values(first.rows, files[0], first.names, allow_missing=True)
    whole = np.concatenate(rows)
    summary = f"{len(whole)} rows of {len(files)} tables; the first: {first.summary}"
    return first._replace(rows=whole, files=tuple(files), summary=summary, others=partial(_all_others, others))


def _of_large_table(files: Sequence[Path], reading: Reading, table: LargeTable, budget: int | None) -> UserData:
    shape = reading.image_shape or table.image_shape
    _check_image_shape(shape, table.source.shape[1], files[0])
    kind = "table" if shape is None else "images"
    fits = budget is None or table.source.n_bytes <= budget
    rows, summary = (np.asarray(table.source), "") if fits else (table.source, table.summary)
    return UserData(rows, kind, shape, table.source.names, tuple(files), table.remarks, reading, summary)


def _all_others(others: Sequence[Callable[[], dict[str, np.ndarray]]]) -> dict[str, np.ndarray]:
    """Return the left-out columns that all of several tables have."""
    columns = [read() for read in others]
    common = [name for name in columns[0] if all(name in table for table in columns)]
    return {name: np.concatenate([table[name] for table in columns]) for name in common}


def _table(path: Path, reading: Reading) -> UserData:
    table = _read_table(path, reading)
    rows, reading = table.rows, replace(reading, **table.understood)
    shape = reading.image_shape
    if rows.ndim == 3 and shape is None:
        shape = (int(rows.shape[1]), int(rows.shape[2]))
        rows = rows.reshape(len(rows), -1)
    if rows.ndim != 2:
        raise ValueError(f"{str(path)!r} must have shape (rows, columns) or (rows, height, width); got {rows.shape}.")
    _check_image_shape(shape, rows.shape[1], path)
    kind, remarks = "table" if shape is None else "images", table.remarks
    return UserData(rows, kind, shape, table.names, (path,), remarks, reading, table.summary, table.others)


def _check_image_shape(shape: tuple[int, int] | None, n_columns: int, path: Path) -> None:
    if shape is not None and shape[0] * shape[1] != n_columns:
        raise ValueError(
            f"Images of {shape[0]}×{shape[1]} have {shape[0] * shape[1]} pixels, but {str(path)!r} has {n_columns} "
            "columns; set image_shape=... to another height and width."
        )


def _read_table(path: Path, reading: Reading) -> tables.Table:
    names = ("array", "separator", "header", "decimal", "thousands", "encoding", "index", "drop", "columns")
    settings: dict[str, Any] = {name: getattr(reading, name) for name in names}
    settings["index"] = None if reading.index is None else str(reading.index)
    return tables.read_table(path, **settings)


def _pictures(files: tuple[Path, ...], reading: Reading) -> UserData:
    if suffix_of(files[0]) in TABLES:  # an array with requested patches is one image, or several
        arrays = [_images_in(file, reading) for file in files]
        images = [image for some in arrays for image in some]
        files = tuple(file for file, some in zip(files, arrays, strict=True) for _ in some)
        coloured = 0
    else:
        grey = [pictures.read_grey(file) for file in files]
        images, coloured = [image for image, _ in grey], sum(colour for _, colour in grey)
    remarks = (f"Colours were averaged to grey in {coloured} of {len(files)} images.",) if coloured else ()
    if reading.patches is None:
        rows = pictures.whole_images(files, images, reading.scale)
        shape = (int(images[0].shape[0]), int(images[0].shape[1]))
        return UserData(rows, "images", shape, None, files, remarks, reading)
    count = DEFAULT_COUNT if reading.count is None else reading.count
    random = check_random_state(reading.seed)
    rows = pictures.patches_of(files, images, reading.patches, count, reading.scale, random)
    return UserData(rows, "patches", reading.patches, None, files, remarks, reading)


def _images_in(file: Path, reading: Reading) -> list[np.ndarray]:
    # A column of pixels that happens to count rows is not an index.
    rows = _read_table(file, replace(reading, index="none" if reading.index is None else reading.index)).rows
    tables.check_values(rows, file)
    return [*rows.astype(float)] if rows.ndim == 3 else [rows.astype(float)]


def _sound(files: tuple[Path, ...], reading: Reading) -> UserData:
    waves = [read_sound(file, reading.sample_rate, reading.channel) for file in files]
    shape: tuple[int, int] | None = None
    if reading.sound == "spectrogram":
        rows, level = recordings.spectrogram_rows(files, waves, reading.frames, reading.sample_rate, reading.level)
        shape = (N_CHANNELS, reading.frames)
    else:
        rows, level = recordings.waveform_rows(files, waves, reading.length, reading.level)
    n, count = len(rows), reading.count
    if count is not None and count < n:
        rows = rows[np.sort(check_random_state(reading.seed).choice(n, count, replace=False))]
    what = "The recording has" if len(files) == 1 else f"The {len(files)} recordings have"
    few = f"{what} {n} pieces, fewer than the {count} requested; all of them are used."
    remarks = (few,) if count is not None and n < count else ()
    return UserData(rows, reading.sound, shape, None, files, remarks, replace(reading, level=level))


def _check(reading: Reading) -> None:
    if reading.count is not None:
        whole(reading.count, "count", 1)
    positive(reading.scale, "scale")
    for name, least in (("frames", 1), ("length", 2), ("sample_rate", 1000)):
        whole(getattr(reading, name), name, least)
    if reading.sound not in SOUND_ROWS:
        raise ValueError(f"Unknown sound {reading.sound!r}. Known: {', '.join(SOUND_ROWS)}.")
    check_dtype(reading.dtype)
