"""Animation of the components during learning."""

from __future__ import annotations

import io
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from multicause.persistence.container import write_whole
from multicause.plotting.components import ComponentsDisplay
from multicause.plotting.fields import move_field, pyplot, shared_limits
from multicause.runtime.file_kinds import GIF, suffix_of

# Milliseconds for which the last frame is shown.
LAST = 2000


def animate_fields(
    recorder: Any,
    path: str | PathLike[str],
    *,
    image_shape: Sequence[int] | None = None,
    columns: int = 10,
    milliseconds: int = 100,
    most: int = 100,
    dpi: int = 80,
    cmap: str | None = None,
    origin: str = "upper",
) -> Path:
    """Write a GIF animation of the components during learning; return its path.

    Parameters
    ----------
    recorder : multicause.callbacks.FieldRecorder
        A callback that has followed a fit.
    path : path-like
        File to write, which ends in ``.gif``; an existing file is replaced.
    image_shape : (int, int), optional
        Height and width of a field; without it fields are drawn as lines.
    columns : int, default=10
        Number of fields in a row of the grid.
    milliseconds : int, default=100
        Duration of a frame. The last one is shown for two seconds.
    most : int, default=100
        Largest number of frames; if there are more, evenly spaced ones are chosen.
    dpi : int, default=80
        Resolution in pixels per inch; a field is 1.1 inches wide.
    cmap, origin
        As for :class:`ComponentsDisplay`.
    """
    path = Path(path)
    if suffix_of(path) != GIF:
        raise ValueError(f"An animation is written as .gif; got {path.name!r}.")
    fields, iterations = getattr(recorder, "fields", None), getattr(recorder, "iterations", None)
    if not isinstance(fields, list) or not isinstance(iterations, list):
        raise TypeError(f"recorder must be a multicause.callbacks.FieldRecorder; got {recorder!r}.")
    if not fields:
        raise ValueError(
            "The recorder has no fields yet: give it to a model with set_callbacks(recorder) before fit, and let it "
            "record more often (every=1) if the fit was short."
        )
    for name, value in (("milliseconds", milliseconds), ("most", most), ("dpi", dpi)):
        if value < 1:
            raise ValueError(f"{name} must be a positive number; got {value!r}.")
    plt = pyplot()
    chosen = np.unique(np.linspace(0, len(fields) - 1, min(most, len(fields))).round().astype(int))
    recorded = [np.asarray(fields[number]) for number in chosen]
    display = ComponentsDisplay(recorded[0], image_shape=image_shape)
    display.plot(columns=columns, scale=shared_limits(*recorded), cmap=cmap, origin=origin)
    try:
        frames = []
        for number, components in zip(chosen, recorded, strict=True):
            for artist, values in zip(display.artists_, components, strict=True):
                move_field(artist, values, image_shape)
            display.figure_.suptitle(f"iteration {iterations[number]}", fontsize=9)
            frames.append(_drawn(display.figure_, dpi))
    finally:
        plt.close(display.figure_)
    content = io.BytesIO()
    frames[0].save(
        content,
        format="GIF",
        save_all=True,
        append_images=frames[1:],
        duration=[milliseconds] * (len(frames) - 1) + [LAST],
        loop=0,
    )
    write_whole(path, content.getvalue())
    return path


def _drawn(figure: Any, dpi: int) -> Any:
    """Render the figure as a Pillow image; matplotlib itself depends on Pillow."""
    from PIL import Image

    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=dpi)
    buffer.seek(0)
    return Image.open(buffer).convert("RGB")
