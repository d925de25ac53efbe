"""Mosaic of rows as images in matplotlib axes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from multicause.plotting.fields import check_rows

GAP = "steelblue"


def draw_images(axes: Any, rows: ArrayLike, image_shape: tuple[int, int], *, columns: int = 10, title: str = "") -> Any:
    """Draw rows as one mosaic of grey images with a common scale; return the matplotlib image.

    Parameters
    ----------
    axes : matplotlib axes
        Axes to draw on.
    rows : array-like of shape (n, height · width)
        Images, one per row.
    image_shape : (int, int)
        Height and width.
    columns : int, default=10
        Number of images in a row of the mosaic.
    title : str
        Title of the axes.
    """
    from matplotlib import colormaps

    images = check_rows(rows, "rows", image_shape)
    height, width = image_shape
    columns = min(columns, len(images))
    lines = -(-len(images) // columns)
    # A frame and gaps of one pixel; NaN gives them a separate colour.
    mosaic = np.full((lines * (height + 1) + 1, columns * (width + 1) + 1), np.nan)
    for number, image in enumerate(images):
        top, left = (number // columns) * (height + 1) + 1, (number % columns) * (width + 1) + 1
        mosaic[top : top + height, left : left + width] = image.reshape(height, width)
    colors = colormaps["gray"].with_extremes(bad=GAP)
    drawn = axes.imshow(mosaic, cmap=colors, interpolation="nearest")
    axes.set_title(title, loc="left", fontsize=10)
    axes.set_axis_off()
    return drawn
