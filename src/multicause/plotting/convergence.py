"""Plot of the bound and temperature during learning."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from multicause.plotting.fields import one_axes
from multicause.plotting.validation import check_model

# Number of letters in a line of the legend, and in the label of the vertical axis.
LEGEND_WIDTH, AXIS_WIDTH = 40, 26


class ConvergenceDisplay:
    """Plot of the bound and the temperature against iterations.

    Parameters
    ----------
    bounds : array-like of shape (n_iterations,)
        Mean bound per row: before each iteration, and at the end.
    temperatures : array-like of shape (n_iterations,), optional
        Temperature of each iteration; a constant one is not drawn.
    reference : float, optional
        A level to compare the bound with, such as that of the generating parameters.
    bound_changes : sequence of (int, str)
        Iterations from which on bounds are not comparable with earlier ones, and the reason: for example that causes
        were found on some rows and are then learned from all. They are marked by dashed lines.
    label : str, default="bound"
        Name of the bound, such as "log evidence".

    Attributes
    ----------
    ax_ : matplotlib axes
        Axes with the bound, ``bound_line_``.
    temperature_ax_ : matplotlib axes or None
        Twin axes with the temperature, ``temperature_line_``, on the right.
    change_lines_ : list
        Lines at these changes.
    figure_ : matplotlib figure

    Examples
    --------
    >>> from multicause.plotting import ConvergenceDisplay
    >>> display = ConvergenceDisplay([-9.0, -7.0, -6.5], temperatures=[4, 2, 1]).plot()
    >>> display.bound_line_.get_ydata().tolist()
    [-9.0, -7.0, -6.5]
    """

    def __init__(
        self,
        bounds: ArrayLike,
        *,
        temperatures: ArrayLike | None = None,
        reference: float | None = None,
        bound_changes: Sequence[tuple[int, str]] = (),
        label: str = "bound",
    ) -> None:
        self.bounds = np.asarray(bounds, dtype=float)
        self.temperatures = None if temperatures is None else np.asarray(temperatures, dtype=float)
        self.reference = reference
        self.bound_changes = tuple(bound_changes)
        self.label = label
        if self.bounds.ndim != 1 or not np.isfinite(self.bounds).any():
            raise ValueError(
                f"bounds must be one finite number for each iteration; got shape {self.bounds.shape} with "
                f"{int(np.isfinite(self.bounds).sum())} finite values."
            )
        if self.temperatures is not None and self.temperatures.shape != self.bounds.shape:
            raise ValueError(
                f"temperatures must have shape {self.bounds.shape}, as bounds; got {self.temperatures.shape}."
            )

    @classmethod
    def from_estimator(cls, model: Any, *, reference: float | None = None, ax: Any = None) -> Self:
        """Draw the learning curve of a fitted model.

        Parameters
        ----------
        model : fitted estimator of this library
            Its ``lower_bounds_`` and, if it was annealed, ``temperatures_``.
        reference : float, optional
            A level to compare the bound with.
        ax : matplotlib axes, optional
            Axes to draw on; by default a new figure.
        """
        check_model(model)
        bounds = np.asarray(model.lower_bounds_, dtype=float)
        if not np.isfinite(bounds).any():
            raise ValueError(
                f"This {type(model).__name__} has recorded no bound: the likelihood of such a model is unknown during "
                "learning. Draw its contrasts_ instead."
            )
        temperatures = getattr(model, "temperatures_", None)
        if temperatures is not None and len(temperatures) != len(bounds):
            temperatures = None
        return cls(
            bounds,
            temperatures=temperatures,
            reference=reference,
            bound_changes=getattr(model, "bound_changes_", ()),
            label=model.value_labels().history,
        ).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw the curves on new axes or on ``ax``."""
        self.figure_, self.ax_ = one_axes(ax)
        iterations = np.arange(len(self.bounds))
        (self.bound_line_,) = self.ax_.plot(iterations, self.bounds, color="C0", label="bound")
        self.ax_.set(xlabel="iteration", ylabel=fill(f"mean {self.label} of a row", AXIS_WIDTH))
        self.ax_.spines["top"].set_visible(False)
        lines = [self.bound_line_]
        if self.reference is not None:
            lines.append(self.ax_.axhline(self.reference, color="C1", linestyle="--", label="reference"))
        self.change_lines_ = [
            self.ax_.axvline(
                start - 0.5, color="0.6", linewidth=1, linestyle=(0, (4, 3)), label=fill(reason, LEGEND_WIDTH)
            )
            for start, reason in self.bound_changes
        ]
        lines += self.change_lines_
        self.temperature_ax_ = self.temperature_line_ = None
        if self.temperatures is not None and np.ptp(self.temperatures) > 0:
            self.temperature_ax_ = self.ax_.twinx()
            (self.temperature_line_,) = self.temperature_ax_.plot(
                iterations, self.temperatures, color="C3", linewidth=1, label="temperature"
            )
            self.temperature_ax_.set_ylabel("temperature")
            self.temperature_ax_.spines["top"].set_visible(False)
            lines.append(self.temperature_line_)
        else:
            self.ax_.spines["right"].set_visible(False)
        if len(lines) > 1:
            self.ax_.legend(handles=lines, frameon=False, fontsize=8, loc="center right")
        return self
