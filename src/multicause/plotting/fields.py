"""Helpers shared by all displays: lazy import of matplotlib, axes, and rows drawn as images or lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from multicause.plotting.validation import check_image_shape, is_signed
from multicause.runtime.optional import need

# Size in inches of a small image, and of a chart with axes.
FIELD, CHART = 1.1, 2.8
# Aspect ratio from which an image fills its axes instead of having square pixels.
STRIPE = 3


def pyplot() -> Any:
    """Import matplotlib.pyplot, or raise ImportError with instructions to install it."""
    need("matplotlib", "plots", "app")
    from matplotlib import pyplot

    return pyplot


def check_rows(rows: ArrayLike, name: str, image_shape: Sequence[int] | None) -> np.ndarray:
    """Return validated, finite rows (n, D), which must match ``image_shape`` if it is given."""
    numbers = np.asarray(rows, dtype=float)
    if numbers.ndim != 2 or numbers.size == 0:
        raise ValueError(f"{name} must have two axes, (n, n_features); got shape {numbers.shape}.")
    if not np.isfinite(numbers).all():
        raise ValueError(f"{name} must be finite; they hold NaN or infinity, which cannot be drawn.")
    check_image_shape(image_shape, numbers.shape[1], name)
    return numbers


def check_one_of(value: Any, name: str, known: tuple[str, ...]) -> None:
    """Raise ValueError if a value is not one of the known names."""
    if value not in known:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, known))}; got {value!r}.")


def check_has_states(model: Any, display: str) -> None:
    """Raise an error for models whose causes are real numbers, which have no states with probabilities."""
    if not model.has_states:
        raise ValueError(
            f"{display} needs a model whose causes are on or off, with a probability for each state; those of "
            f"{type(model).__name__} are real numbers. Look at transform(X) and ComponentsDisplay instead."
        )


def check_has_method(model: Any, method: str, display: str) -> None:
    """Raise an error for models without a method that a display calls."""
    if not hasattr(model, method):
        raise ValueError(
            f"{display} needs a model with the method {method}, which {type(model).__name__} does not have. Look at "
            "transform(X) and recognize(X) instead."
        )


def new_axes(ax: Any, shape: tuple[int, int], size: tuple[float, float]) -> tuple[Any, np.ndarray]:
    """Return the figure and (rows, columns) axes to draw on: new ones, or those that the user passed."""
    if ax is None:
        figure, axes = pyplot().subplots(
            *shape, figsize=(shape[1] * size[0], shape[0] * size[1]), squeeze=False, layout="constrained"
        )
        return figure, axes
    axes = np.asarray(ax, dtype=object)
    wanted = shape[0] * shape[1]
    if axes.size != wanted:
        came = "one axes" if axes.ndim == 0 else f"{axes.size} axes"
        raise ValueError(
            f"{wanted} axes are needed, in {shape[0]} rows and {shape[1]} columns; got {came}. Leave ax=None, or pass "
            f"the array of plt.subplots({shape[0]}, {shape[1]})."
        )
    axes = axes.reshape(shape)
    return axes[0, 0].figure, axes


def one_axes(ax: Any) -> tuple[Any, Any]:
    """Return the figure and a single axes to draw on: a new one, or that which the user passed."""
    if ax is None:
        return pyplot().subplots(figsize=(2 * CHART, CHART), layout="constrained")
    axes = np.asarray(ax, dtype=object)
    if axes.size != 1:
        raise ValueError(f"One axes is needed; got {axes.size}. Pass one of them.")
    return axes.item().figure, axes.item()


def shared_limits(*rows: np.ndarray) -> tuple[float, float]:
    """Return common colour limits: from zero, or symmetric around zero if there are negative values."""
    everything = np.concatenate([part.ravel() for part in rows])
    if is_signed(everything):
        peak = float(np.abs(everything).max())
        return -peak, peak
    low, high = min(0.0, float(everything.min())), float(everything.max())
    return low, high if high > low else low + 1


def draw_field(
    axes: Any,
    values: np.ndarray,
    image_shape: Sequence[int] | None,
    limits: tuple[float, float],
    *,
    cmap: str | None = None,
    origin: str = "upper",
    title: str = "",
) -> Any:
    """Draw one row as an image or as a line; return the matplotlib artist."""
    low, high = limits
    axes.set_title(title, fontsize=8)
    axes.set_xticks([])
    axes.set_yticks([])
    if image_shape is None:
        (line,) = axes.plot(values, linewidth=1)
        margin = 0.05 * (high - low)
        axes.set_ylim(low - margin, high + margin)
        return line
    # Grey from black to white, or red and blue around white if the limits are symmetric.
    color = cmap or ("RdBu_r" if low == -high else "gray")
    # Pixels are square, unless the image would be a narrow stripe, as a short spectrogram is.
    aspect = "equal" if max(image_shape) <= STRIPE * min(image_shape) else "auto"
    return axes.imshow(
        values.reshape(image_shape),
        cmap=color,
        vmin=low,
        vmax=high,
        origin=origin,
        aspect=aspect,
        interpolation="nearest",
    )


def move_field(artist: Any, values: np.ndarray, image_shape: Sequence[int] | None) -> None:
    """Update a drawn field with new values."""
    if image_shape is None:
        artist.set_ydata(values)
    else:
        artist.set_data(values.reshape(image_shape))
