"""Writing of arrays and images; the suffix of a file selects the format."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from multicause.persistence.container import write_whole
from multicause.runtime.file_kinds import ARRAYS, CSV, NPY, NPZ, suffix_of
from multicause.runtime.optional import need


def write_table(
    path: Path,
    rows: np.ndarray,
    names: Sequence[str] | None = None,
    others: dict[str, np.ndarray] | None = None,
) -> list[str]:
    """Write rows as npy, npz, csv or parquet; return the names of other columns that could not be written.

    csv and parquet files have column names, and begin with the columns ``others``. One of them with the name of a
    column of the rows becomes "NAME (data)".
    """
    kind, buffer = suffix_of(path), io.BytesIO()
    others = others or {}
    if kind == NPY:
        np.save(buffer, rows, allow_pickle=False)
    elif kind == NPZ:
        np.savez_compressed(buffer, allow_pickle=False, rows=rows)
    else:
        pandas = need("pandas", f"writing {kind} files", "app")
        frame = pandas.DataFrame(rows, columns=list(names) if names is not None else _numbered(rows.shape[1]))
        carried = {f"{name} (data)" if name in frame.columns else name: values for name, values in others.items()}
        if carried:
            frame = pandas.concat([pandas.DataFrame(carried), frame], axis=1)
        if kind == CSV:
            buffer.write(frame.to_csv(index=False).encode("utf-8"))
        else:
            frame.to_parquet(buffer, engine="pyarrow")
    write_whole(path, buffer.getvalue())
    return list(others) if kind in ARRAYS else []


def write_image(path: Path, grey: np.ndarray) -> None:
    """Write a grey image with black at zero and white at one; values beyond are clipped."""
    from PIL import Image

    buffer = io.BytesIO()
    levels = np.rint(255 * np.clip(grey, 0, 1)).astype(np.uint8)
    Image.fromarray(levels).save(buffer, format=Image.registered_extensions()[suffix_of(path)])
    write_whole(path, buffer.getvalue())


def write_mosaic(path: Path, rows: np.ndarray, image_shape: tuple[int, int], title: str) -> None:
    """Write a mosaic of rows as images."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    from multicause.plotting import draw_images

    lines = -(-len(rows) // 10)
    figure, axes = plt.subplots(figsize=(7, 0.4 + 0.7 * lines), layout="constrained")
    draw_images(axes, rows, image_shape, title=title)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=130)
    plt.close(figure)
    write_whole(path, buffer.getvalue())


def component_names(model: Any) -> list[str]:
    """Return the names of a model's components, as in scikit-learn."""
    return [str(name) for name in model.get_feature_names_out()]


def sortable(names: Sequence[str]) -> list[str]:
    """Return names that end in their number from 0 with as many digits as the last one has, for names of files."""
    width = len(str(len(names) - 1))
    return [f"{name.removesuffix(str(number))}{number:0{width}d}" for number, name in enumerate(names)]


def _numbered(n: int) -> list[str]:
    return [f"feature{number}" for number in range(n)]
