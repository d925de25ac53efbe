"""Pictures and recordings to restore, from files and back into files of the same kind."""

from __future__ import annotations

import io
import struct
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from multicause.datasets.pictures import COLOURS, read_pixels
from multicause.persistence.container import write_whole
from multicause.runtime.file_kinds import NPY, OPAQUE_IMAGES, PNG, TIFS, suffix_of

SIXTEEN_BITS = 2**16 - 1
# Restored pixels may be brighter than white by this share of it, as edges of white areas are.
OVERSHOOT = 0.1
# Pillow's default quality would change pixels as weak noise does: noisy pixels by 8.8 grey values instead of 2.0.
JPEG_OPTIONS = {"quality": 95, "subsampling": 0}
# Tag of EXIF that says how the pixels of a photograph must be turned to be upright.
ORIENTATION = 0x0112
# Names of Pillow for grey, palette and RGB images, with or without transparency; CMYK and Lab are not supported.
MODES = ("1", "L", "LA", "La", "I", "I;16", "I;16B", "I;16L", "I;16N", "F", "P", "PA", "RGB", "RGBA", "RGBX", "RGBa")


class StoredPicture(NamedTuple):
    """Pixels of a file, and their transparency."""

    pixels: np.ndarray  # (height, width) or (height, width, 3), as stored
    alpha: np.ndarray | None  # (height, width) transparency as stored, if there is one that differs from opaque


def read_picture(path: Path) -> StoredPicture:
    """Read one image, grey or coloured, and turn it upright; a transparency is kept apart."""
    pixels = read_pixels(path)
    if suffix_of(path) != NPY:
        pixels = _upright(pixels, _orientation_of_one_image(path))
    if pixels.ndim == 4 or (pixels.ndim == 3 and pixels.shape[2] > COLOURS + 1):
        raise ValueError(
            f"{str(path)!r} is an animation or a stack of images, of shape {pixels.shape}; expected one image."
        )
    alpha = None
    if pixels.ndim == 3 and pixels.shape[2] in (2, COLOURS + 1) and suffix_of(path) != NPY:
        alpha = pixels[..., -1] if (pixels[..., -1] != _opaque(pixels)).any() else None
        pixels = pixels[..., :-1]
    if pixels.ndim == 3 and pixels.shape[2] == 1:
        pixels = pixels[..., 0]
    return StoredPicture(pixels, alpha)


def filled_in(stored: StoredPicture) -> StoredPicture:
    """Return a picture whose completely transparent pixels, which are filled in, have become opaque."""
    if stored.alpha is None:
        return stored
    opaque = _opaque(stored.alpha)
    alpha = np.where(stored.alpha == 0, opaque, stored.alpha).astype(stored.alpha.dtype)
    return stored._replace(alpha=None if (alpha == opaque).all() else alpha)


def write_picture(path: Path, values: np.ndarray, like: StoredPicture) -> None:
    """Write restored values in the units of the file they came from, clipped to the limits of the file format.

    A ``.npy`` file gets the numbers as they are, and so does a tif file if the image was a grey one of floats. Grey
    images of 16 bits stay so in png and tif files, others are written with 8 bits. The value of white follows from the
    type of whole numbers of 8 or 16 bits, and else from the largest pixel, before or after: one, 255 or 65,535.
    """
    buffer = io.BytesIO()
    if suffix_of(path) == NPY:
        np.save(buffer, values, allow_pickle=False)
        write_whole(path, buffer.getvalue())
        return
    from PIL import Image

    image: Any
    if _keeps_floats(path, like):
        Image.fromarray(values.astype(np.float32)).save(buffer, format="tiff")
        write_whole(path, buffer.getvalue())
        return
    white = white_of(like.pixels, values)
    shares = np.clip(values / white, 0, 1)
    if white == SIXTEEN_BITS and values.ndim == 2 and like.alpha is None and suffix_of(path) in (PNG, *TIFS):
        image = Image.fromarray(np.rint(SIXTEEN_BITS * shares).astype(np.uint16))
    else:
        image = Image.fromarray(np.rint(255 * shares).astype(np.uint8))
        if like.alpha is not None and suffix_of(path) not in OPAQUE_IMAGES:
            image.putalpha(Image.fromarray(np.rint(255 * (like.alpha / _opaque(like.alpha))).astype(np.uint8)))
    kind = Image.registered_extensions()[suffix_of(path)]
    image.save(buffer, format=kind, **(JPEG_OPTIONS if kind == "JPEG" else {}))
    write_whole(path, buffer.getvalue())


def check_can_be_written(path: Path, stored: StoredPicture, missing: np.ndarray | None) -> None:
    """Raise ValueError before a long restoration if its result could not be written into such a file."""
    if suffix_of(path) == NPY or _keeps_floats(path, stored):
        return
    known = stored.pixels if missing is None else np.where(missing, np.nan, stored.pixels)
    # The restored image has less noise, so that some pixels may be larger.
    white_of(known, np.nanquantile(known, [0.99]) if np.isfinite(known).any() else None)


def _keeps_floats(path: Path, stored: StoredPicture) -> bool:
    """Return whether a file of that kind can hold the floats of an image as they are."""
    pixels = stored.pixels
    return suffix_of(path) in TIFS and pixels.dtype.kind == "f" and pixels.ndim == 2 and stored.alpha is None


def white_of(pixels: np.ndarray, values: np.ndarray | None = None) -> float:
    """Return the value of a white pixel: by type, or for other types the least of 1, 255 and 65,535 that is enough.

    It is enough for the pixels or, if that is less, for restored ``values``, which have no noise.
    """
    if pixels.dtype in (np.uint8, np.uint16):
        return float(np.iinfo(pixels.dtype).max)
    if pixels.dtype == bool:
        return 1.0
    largest = min(float(np.nanmax(each, initial=0)) for each in (pixels, values) if each is not None)
    for white in (1.0, 255.0, float(SIXTEEN_BITS)):
        if largest <= (1 + OVERSHOOT) * white:
            return white
    raise ValueError(
        f"Pixels have values up to {largest:g}, which no image file can hold in these units. Write a .npy file, or "
        "scale the pixels to values of at most 65,535."
    )


def read_recording(path: Path) -> tuple[int, np.ndarray]:
    """Return the sample rate and samples (n,) or (n, channels) of a wav file, as stored."""
    from scipy.io import wavfile

    try:
        rate, samples = wavfile.read(path)
    except (ValueError, EOFError, struct.error) as error:
        raise ValueError(f"{str(path)!r} cannot be read as a wav file: {error}") from error
    return int(rate), samples


def write_recording(path: Path, rate: int, samples: np.ndarray, dtype: np.dtype[Any]) -> None:
    """Write samples as a wav file of the given type, cut off at its limits."""
    from scipy.io import wavfile

    if dtype.kind in "ui":
        limits = np.iinfo(dtype)
        samples = np.clip(np.rint(samples), limits.min, limits.max)
    buffer = io.BytesIO()
    wavfile.write(buffer, rate, samples.astype(dtype))
    write_whole(path, buffer.getvalue())


def _orientation_of_one_image(path: Path) -> int:
    """Return the orientation by EXIF, 1 for upright pixels.

    Raise ValueError for several frames, which readers may take for colours, and for colours of printing.
    """
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(path) as image:
            n_frames, mode = getattr(image, "n_frames", 1), image.mode
            orientation = image.getexif().get(ORIENTATION, 1)
    except UnidentifiedImageError:  # a format that only scikit-image reads
        return 1
    if n_frames > 1:
        raise ValueError(f"{str(path)!r} is an animation or a stack of {n_frames} images; expected one image.")
    if mode not in MODES:
        raise ValueError(f"{str(path)!r} has pixels of the kind {mode}; convert it to RGB or grey first.")
    return int(orientation)


def _upright(pixels: np.ndarray, orientation: int) -> np.ndarray:
    """Return pixels (height, width, ...) turned as an orientation of EXIF, from 1 to 8, says."""
    if orientation in (5, 6, 7, 8):
        pixels = np.swapaxes(pixels, 0, 1)
    if orientation in (3, 4, 7, 8):
        pixels = pixels[::-1]
    return pixels[:, ::-1] if orientation in (2, 3, 6, 7) else pixels


def _opaque(alpha: np.ndarray) -> float:
    return float(np.iinfo(alpha.dtype).max) if alpha.dtype.kind in "ui" else 1.0
