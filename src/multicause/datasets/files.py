"""Readers of sound and image files.

A relative path that does not exist is also looked for in the folder given by the environment variable MULTICAUSE_DATA.
Nothing is downloaded.
"""

from __future__ import annotations

import os
from os import PathLike
from pathlib import Path

import numpy as np

from multicause.runtime.file_kinds import GIF, IML, NPY, NPZ, SOUNDS, suffix_of
from multicause.runtime.optional import need

# Files of the van Hateren database: raw big-endian 16-bit pixels without a header.
IML_SHAPE = (1024, 1536)
# Zero level of unsigned 8-bit sound, whose samples are 0..255.
MIDDLE_OF_8_BITS = 128


def data_folder() -> Path | None:
    """Return the folder that the environment variable MULTICAUSE_DATA names, or None if it is not set."""
    root = os.environ.get("MULTICAUSE_DATA")
    return Path(root) if root else None


def stored(name: str) -> Path | None:
    """Return a file or folder below that of MULTICAUSE_DATA, or None if it does not exist."""
    root = data_folder()
    path = None if root is None else root / name
    return path if path is not None and path.exists() else None


def sound_files(path: str | PathLike[str]) -> list[Path]:
    """Return the sorted wav files of a folder and its subfolders, or those that match a pattern like "s/male_*.wav"."""
    path = Path(path).expanduser()
    pattern = any(sign in path.name for sign in "*?[") and not path.exists()
    folder = _find(path.parent if pattern else path)
    if folder.is_file():
        return [folder]
    candidates = folder.glob(path.name) if pattern else folder.rglob("*")
    files = sorted(file for file in candidates if suffix_of(file) in SOUNDS)
    if not files:
        raise ValueError(f"No wav file in {str(path)!r}. Expected a folder of wav files, one for each sound.")
    return files


def read_sound(path: str | PathLike[str], sample_rate: int, channel: int | None = None) -> np.ndarray:
    """Read a wav file at ``sample_rate`` Hz: its only channel, or the one with the index ``channel``.

    Samples that are whole numbers are divided by the largest of their type, so that files of all types are alike.
    """
    from scipy.io import wavfile
    from scipy.signal import resample_poly

    path = _find(Path(path).expanduser())
    try:
        rate, samples = wavfile.read(path)
    except (ValueError, EOFError) as error:
        raise ValueError(f"{str(path)!r} cannot be read as a wav file: {error}") from error
    n_channels = 1 if samples.ndim == 1 else samples.shape[1]
    if channel is None and n_channels > 1:
        raise ValueError(
            f"{str(path)!r} has {n_channels} channels; expected one. Average them, for example with "
            "scipy.io.wavfile, or choose one: channel=0 is the first."
        )
    if channel is not None and not 0 <= channel < n_channels:
        raise ValueError(f"{str(path)!r} has {n_channels} channels, counted from 0; there is no channel {channel}.")
    if samples.ndim > 1:
        samples = samples[:, channel or 0]
    if samples.size == 0:
        raise ValueError(f"{str(path)!r} has no samples.")
    wave = (samples.astype(float) - middle_of(samples.dtype)) / full_scale(samples.dtype)
    return wave if rate == sample_rate else resample_poly(wave, sample_rate, rate)


def middle_of(dtype: np.dtype) -> int:
    """Return the zero level of samples of this type."""
    return MIDDLE_OF_8_BITS if dtype == np.uint8 else 0


def full_scale(dtype: np.dtype) -> float:
    """Return the largest distance from zero of samples of this type: one for numbers that are not whole."""
    return float(np.iinfo(dtype).max - middle_of(dtype) + 1) if dtype.kind in "ui" else 1.0


def read_image(path: str | PathLike[str]) -> np.ndarray:
    """Read the pixels of an image: npy, npz with one array, iml (van Hateren database), or what scikit-image reads."""
    path = _find(Path(path).expanduser())
    kind = suffix_of(path)
    if kind == NPY:
        return np.load(path)
    if kind == NPZ:
        with np.load(path) as arrays:
            if len(arrays.files) != 1:
                raise ValueError(
                    f"{str(path)!r} holds {len(arrays.files)} arrays ({', '.join(arrays.files)}); expected one. "
                    "Load it with numpy.load and pass the array."
                )
            return arrays[arrays.files[0]]
    if kind == IML:
        pixels = np.fromfile(path, dtype=">u2")
        if pixels.size != np.prod(IML_SHAPE):
            raise ValueError(
                f"{str(path)!r} has {pixels.size} pixels; an image of the van Hateren database has {IML_SHAPE[0]} × "
                f"{IML_SHAPE[1]} pixels of two bytes."
            )
        return pixels.reshape(IML_SHAPE).astype(np.uint16)
    _need_scikit_image(f"reading {kind or 'this'} files")
    from skimage.io import imread

    pixels = np.asarray(imread(path))
    # A gif is read as a series of frames; a single image has one frame.
    return pixels[0] if kind == GIF and pixels.ndim == 4 and len(pixels) == 1 else pixels


def grass() -> np.ndarray:
    """Return scikit-image's photograph of grass, (512, 512)."""
    _need_scikit_image("the default image, its photograph of grass,")
    from skimage.data import grass

    return np.asarray(grass())


def _find(path: Path) -> Path:
    if path.exists():
        return path
    elsewhere = None if path.is_absolute() else stored(str(path))
    if elsewhere is None:
        also = "" if path.is_absolute() else f", nor below MULTICAUSE_DATA ({data_folder() or 'not set'})"
        raise FileNotFoundError(f"There is no {str(path)!r}{also}.")
    return elsewhere


def _need_scikit_image(purpose: str) -> None:
    need("skimage", purpose, "images", name="scikit-image", instead="pass the image as an array")
