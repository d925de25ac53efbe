"""Plot of the posterior of one row."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_array

from multicause.plotting.fields import (
    CHART,
    check_has_method,
    check_has_states,
    check_rows,
    draw_field,
    new_axes,
    shared_limits,
)
from multicause.plotting.validation import LEAST_SPAN, check_model

# Smaller probabilities are not written as numbers.
SMALLEST = 0.001


class PosteriorDisplay:
    """Plot of one row of data, its reconstruction, its most probable states, and the probability of each cause.

    Parameters
    ----------
    data, reconstruction : array-like of shape (n_features,)
        The row, and the row as its causes explain it.
    states : array-like of shape (n_states, n_causes)
        The most probable states, best first.
    probabilities : array-like of shape (n_states,)
        Their probabilities.
    causes : array-like of shape (n_causes,)
        Posterior mean of each cause.
    image_shape : (int, int), optional
        Height and width of the row; without it, it is drawn as a line.
    limits : (float, float), optional
        Smallest and largest value of all data. Data and reconstruction are drawn on one scale, which spans at least a
        quarter of that range, so that a nearly empty row is not stretched to full contrast.

    Attributes
    ----------
    axes_ : ndarray of four matplotlib axes
        Axes of data, reconstruction, states and causes.
    artists_ : list of two
        matplotlib's image or line of data and reconstruction.
    state_bars_, cause_bars_
        matplotlib's bars of the states and of the causes.
    figure_ : matplotlib figure

    Examples
    --------
    >>> from multicause.plotting import PosteriorDisplay
    >>> states = [[1, 0, 1], [1, 0, 0]]
    >>> display = PosteriorDisplay([3, 0, 2], [2.8, 0, 2.1], states, [0.9, 0.1], [1, 0, 0.9]).plot()
    >>> [label.get_text() for label in display.axes_[2].get_yticklabels()]
    ['0+2', '0']
    """

    def __init__(
        self,
        data: ArrayLike,
        reconstruction: ArrayLike,
        states: ArrayLike,
        probabilities: ArrayLike,
        causes: ArrayLike,
        *,
        image_shape: Sequence[int] | None = None,
        limits: tuple[float, float] | None = None,
    ) -> None:
        self.limits = limits
        rows = check_rows([np.asarray(data), np.asarray(reconstruction)], "data and reconstruction", image_shape)
        self.data, self.reconstruction = rows
        self.states, self.probabilities = np.asarray(states), np.asarray(probabilities, dtype=float)
        self.causes, self.image_shape = np.asarray(causes, dtype=float), image_shape
        if self.states.shape != (*self.probabilities.shape, *self.causes.shape) or self.states.ndim != 2:
            raise ValueError(
                "states must have shape (n_states, n_causes), with as many probabilities as states; got states "
                f"{self.states.shape}, probabilities {self.probabilities.shape}, causes {self.causes.shape}."
            )

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: ArrayLike,
        *,
        row: int = 0,
        top: int = 6,
        image_shape: Sequence[int] | None = None,
        ax: Any = None,
        **settings: Any,
    ) -> Self:
        """Compute the posterior of one row under a fitted model, and draw it.

        Parameters
        ----------
        model : fitted estimator of this library
            A model whose causes are on or off.
        X : array-like of shape (n_samples, n_features)
            Data.
        row : int, default=0
            Index of the row of X.
        top : int, default=6
            Number of states to draw.
        image_shape : (int, int), optional
            Height and width of a row; without it, it is drawn as a line.
        ax, **settings
            As for :meth:`plot`.
        """
        check_model(model)
        check_has_states(model, "PosteriorDisplay")
        check_has_method(model, "reconstruct", "PosteriorDisplay")
        rows = check_array(X, dtype=[np.float64, np.float32])
        if not isinstance(row, Integral) or not -len(rows) <= row < len(rows):
            raise ValueError(f"row must be the number of a row of X, below {len(rows)}; got {row!r}.")
        one = rows[[row]]
        recognition = model.recognize(one, top=top)
        return cls(
            one[0],
            model.reconstruct(one)[0],
            recognition.states[0],
            recognition.probabilities[0],
            model.transform(one)[0],
            image_shape=image_shape,
            limits=(float(rows.min()), float(rows.max())),
        ).plot(ax, **settings)

    def plot(self, ax: Any = None, *, cmap: str | None = None, origin: str = "upper") -> Self:
        """Draw data, reconstruction, states and causes side by side.

        Parameters
        ----------
        ax : array of four matplotlib axes, optional
            Axes to draw on; by default a new figure.
        cmap : str, optional
            Colour map of images; by default grey, or red and blue if there are negative values.
        origin : {"upper", "lower"}
            Position of the first row of an image; use "lower" for spectrograms.
        """
        self.figure_, axes = new_axes(ax, (1, 4), (CHART, CHART))
        self.axes_ = axes[0]
        least = [] if self.limits is None else [LEAST_SPAN * np.asarray(self.limits, dtype=float)]
        limits = shared_limits(self.data, self.reconstruction, *least)
        self.artists_ = [
            draw_field(one, values, self.image_shape, limits, cmap=cmap, origin=origin, title=title)
            for one, values, title in zip(
                self.axes_, (self.data, self.reconstruction), ("data", "reconstruction"), strict=False
            )
        ]
        states, causes = self.axes_[2:]
        places = np.arange(len(self.states))
        self.state_bars_ = states.barh(places, self.probabilities)
        states.set_yticks(places, ["+".join(map(str, np.flatnonzero(state > 0.5))) or "none" for state in self.states])
        labels = [f"{p:.2g}" if p >= SMALLEST else f"<{SMALLEST}" for p in self.probabilities]
        states.bar_label(self.state_bars_, labels, padding=2, fontsize=8)
        states.invert_yaxis()
        self.cause_bars_ = causes.bar(np.arange(len(self.causes)), self.causes)
        states.set_title("active causes of the most probable states", fontsize=8)
        causes.set_title("probability of each cause", fontsize=8)
        # Leave room for the numbers beside the bars.
        states.set(xlim=(0, 1.2), xlabel="probability")
        causes.set(ylim=(0, 1.05), xlabel="cause")
        causes.xaxis.get_major_locator().set_params(integer=True)
        for one in (states, causes):
            one.spines[["top", "right"]].set_visible(False)
        return self
