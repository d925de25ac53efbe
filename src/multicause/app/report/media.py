"""Whole images and sounds before and after reconstruction, as data URLs for the report."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from multicause.datasets.files import read_sound
from multicause.datasets.overlap import reconstruct_image
from multicause.datasets.pictures import read_grey
from multicause.datasets.reading import Reading
from multicause.datasets.sound_overlap import reconstruct_sound
from multicause.datasets.spectrograms import LOWEST, WINDOW, length_of
from multicause.runtime.file_kinds import IMAGES, suffix_of

# Images and recordings that are shown, pixels of a side of an image, and seconds of a recording.
MOST_IMAGES, MOST_SOUNDS, SIDE, SECONDS = 3, 2, 384, 6


def axes_of(kind: str, reading: Reading) -> str | None:
    """Return what the axes of a row's picture are, with units."""
    if kind == "spectrogram":
        milliseconds = 1000 * WINDOW / reading.sample_rate
        return (
            f"Upwards: frequency from {LOWEST:.0f} to {reading.sample_rate / 2:.0f} Hz, logarithmic. To the right: "
            f"time, {reading.frames} windows of {milliseconds:.0f} ms that overlap by half."
        )
    if kind == "waveform":
        return f"To the right: time, {1000 * reading.length / reading.sample_rate:.3g} ms in {reading.length} samples."
    return f"Pixels of a patch; each image fills 0 to {reading.scale:g}." if kind == "patches" else None


def media_of(model: Any, kind: str, files: Sequence[Path], reading: Reading) -> dict[str, Any] | None:
    """Return images or recordings before and after, or None for data that are neither or cannot be reconstructed."""
    if not hasattr(model, "reconstruct") or kind not in ("patches", "spectrogram", "waveform"):
        return None
    items: list[dict[str, Any]] = []
    if kind == "patches":
        for file in list(dict.fromkeys(files))[:MOST_IMAGES]:
            items += _image(model, file, reading)
        hint = (
            f"Images (at most {SIDE}×{SIDE} pixels from their middle), and what the model makes of them: the mean of "
            "overlapping reconstructed patches."
        )
    else:
        for file in list(files)[:MOST_SOUNDS]:
            items += _sound(model, file, reading)
        hint = f"The first {SECONDS} seconds of recordings, and what the model makes of them, with the same phases."
    return {"hint": hint, "items": items} if items else None


def _image(model: Any, file: Path, reading: Reading) -> list[dict[str, Any]]:
    if suffix_of(file) not in IMAGES or reading.patches is None:
        return []
    whole = read_grey(file)[0]
    top, left = (max(0, (side - SIDE) // 2) for side in whole.shape)
    image = whole[top : top + SIDE, left : left + SIDE]
    low, high = float(image.min()), float(image.max())
    if min(image.shape) < max(reading.patches) or not high > low:
        return []
    step = max(1, min(reading.patches) // 2)
    after = reconstruct_image(model, image, reading.patches, scale=reading.scale, step=step, dtype=reading.dtype)
    mean_square = float(((after - image) ** 2).mean())
    ratio = 20 * np.log10((high - low) / np.sqrt(mean_square)) if mean_square > 0 else np.inf
    return [
        {
            "kind": "image",
            "name": file.name,
            "before": _jpeg((image - low) / (high - low)),
            "after": _jpeg((after - low) / (high - low)),
            "note": f"PSNR {ratio:.1f} dB",
        }
    ]


def _sound(model: Any, file: Path, reading: Reading) -> list[dict[str, Any]]:
    rate = reading.sample_rate
    wave = read_sound(file, rate, reading.channel)[: SECONDS * rate]
    if len(wave) < (length_of(reading.frames) if reading.sound == "spectrogram" else reading.length):
        return []
    after = reconstruct_sound(model, wave, rate, reading)
    loudest = max(np.abs(wave).max(), np.abs(after).max(), np.finfo(float).tiny)
    error = float(((after - wave) ** 2).sum())
    ratio = f"{10 * np.log10(float((wave**2).sum()) / error):.1f} dB" if error > 0 else "infinite"
    return [
        {
            "kind": "audio",
            "name": file.name,
            "before": _wav(wave / loudest, rate),
            "after": _wav(after / loudest, rate),
            "note": f"signal-to-noise ratio {ratio}, the difference taken as noise",
        }
    ]


def _jpeg(shares: np.ndarray) -> str:
    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray(np.rint(255 * np.clip(shares, 0, 1)).astype(np.uint8)).save(buffer, format="jpeg", quality=90)
    return "data:image/jpeg;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")


def _wav(wave: np.ndarray, rate: int) -> str:
    from scipy.io import wavfile

    buffer = io.BytesIO()
    wavfile.write(buffer, rate, np.rint(32_000 * wave).astype(np.int16))
    return "data:audio/wav;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")
