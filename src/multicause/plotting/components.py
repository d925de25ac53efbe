"""Grid plot of the components of a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from multicause.plotting.fields import FIELD, check_one_of, check_rows, draw_field, new_axes, shared_limits
from multicause.plotting.validation import check_components


class ComponentsDisplay:
    """Grid of images or lines that shows the components of a model.

    Parameters
    ----------
    components : array-like of shape (n_components, n_features)
        Generative fields.
    image_shape : (int, int), optional
        Height and width of a field; without it fields are drawn as lines.
    activity : array-like of shape (n_components,), optional
        Activity of each cause, which is written above its field.
    numbers : array-like of shape (n_components,), optional
        Number of each component in the model; by default 0, 1, …

    Attributes
    ----------
    axes_ : ndarray of matplotlib axes, (rows, columns)
        Axes of the grid; those after the last component are empty.
    artists_ : list
        matplotlib's image or line of each component.
    figure_ : matplotlib figure

    Examples
    --------
    >>> from multicause import MixtureOfPoissons
    >>> from multicause.datasets import make_bars
    >>> from multicause.plotting import ComponentsDisplay
    >>> bars = make_bars(100, size=3, noise="poisson", min_active=1, random_state=0)
    >>> model = MixtureOfPoissons(4, random_state=0).fit(bars.data)
    >>> display = ComponentsDisplay.from_estimator(model, image_shape=bars.image_shape, sort="activity")
    >>> display.axes_.shape
    (1, 4)
    """

    def __init__(
        self,
        components: ArrayLike,
        *,
        image_shape: Sequence[int] | None = None,
        activity: ArrayLike | None = None,
        numbers: ArrayLike | None = None,
    ) -> None:
        self.components = check_rows(components, "components", image_shape)
        self.image_shape = image_shape
        self.activity = None if activity is None else np.asarray(activity, dtype=float)
        self.numbers = np.arange(len(self.components)) if numbers is None else np.asarray(numbers)
        for name in ("activity", "numbers"):
            value = getattr(self, name)
            if value is not None and value.shape != (len(self.components),):
                raise ValueError(f"{name} must have shape ({len(self.components)},), as components; got {value.shape}.")

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        *,
        image_shape: Sequence[int] | None = None,
        sort: str | None = None,
        most: int | None = None,
        ax: Any = None,
        **settings: Any,
    ) -> Self:
        """Draw the components of a fitted model.

        Parameters
        ----------
        model : fitted estimator of this library
            Fitted model.
        image_shape : (int, int), optional
            Height and width of a field; without it fields are drawn as lines.
        sort : {"activity"}, optional
            Draw the most active components first; by default they have the model's order.
        most : int, optional
            Largest number of components to draw.
        ax, **settings
            As for :meth:`plot`.
        """
        check_components(model)
        components, activity = np.asarray(model.components_), getattr(model, "activity_", None)
        order = np.arange(len(components))
        if sort is not None:
            check_one_of(sort, "sort", ("activity",))
            if activity is None:
                raise ValueError(f"{type(model).__name__} has no activity_ to sort by; use sort=None.")
            order = np.argsort(-np.asarray(activity), kind="stable")
        if most is not None and most < 1:
            raise ValueError(f"most must be a positive number of components, or None for all; got {most!r}.")
        order = order[:most]
        ordered = None if activity is None else np.asarray(activity)[order]
        return cls(components[order], image_shape=image_shape, activity=ordered, numbers=order).plot(ax, **settings)

    def plot(
        self,
        ax: Any = None,
        *,
        columns: int = 10,
        scale: str | tuple[float, float] = "common",
        cmap: str | None = None,
        origin: str = "upper",
    ) -> Self:
        """Draw all components as a grid of images or curves.

        Parameters
        ----------
        ax : array of matplotlib axes, optional
            One axes for each place of the grid; by default a new figure.
        columns : int, default=10
            Number of fields in a row of the grid.
        scale : {"common", "own"} or (float, float)
            Whether all fields share their colour limits or each has its own; or the limits themselves.
        cmap : str, optional
            Colour map; by default grey, or red and blue if there are negative values.
        origin : {"upper", "lower"}
            Position of the first row of an image; use "lower" for spectrograms.
        """
        if not isinstance(scale, tuple):
            check_one_of(scale, "scale", ("common", "own"))
        if columns < 1:
            raise ValueError(f"columns must be a positive number; got {columns!r}.")
        n_columns = min(columns, len(self.components))
        shape = (-(-len(self.components) // n_columns), n_columns)
        self.figure_, self.axes_ = new_axes(ax, shape, (FIELD, FIELD + 0.2))
        self.artists_ = []
        common = scale if isinstance(scale, tuple) else shared_limits(self.components)
        for axes, values, title in zip(self.axes_.flat, self.components, self._titles(), strict=False):
            limits = shared_limits(values) if scale == "own" else common
            self.artists_.append(
                draw_field(axes, values, self.image_shape, limits, cmap=cmap, origin=origin, title=title)
            )
        for axes in self.axes_.flat[len(self.components) :]:
            axes.set_axis_off()
        return self

    def _titles(self) -> list[str]:
        if self.activity is None:
            return [str(number) for number in self.numbers]
        return [f"{number}: {value:.2g}" for number, value in zip(self.numbers, self.activity, strict=True)]
