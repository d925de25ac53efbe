"""Plot of true causes beside the components that a model has found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from multicause.metrics.recovery import LARGEST_ERROR, recovered_causes
from multicause.plotting.fields import (
    FIELD,
    check_has_method,
    check_has_states,
    check_rows,
    draw_field,
    new_axes,
    shared_limits,
)
from multicause.plotting.validation import check_components

MISSING = "tab:red"


class RecoveryDisplay:
    """Plot of each true cause above the component that represents it, with its error and missing causes marked.

    Parameters
    ----------
    causes : array-like of shape (n_causes, n_features)
        True causes.
    components : array-like of shape (n_components, n_features)
        Components of the model.
    mapping : array-like of shape (n_causes,)
        The component that represents each cause (see :func:`multicause.metrics.recovered_causes`).
    image_shape : (int, int), optional
        Height and width of a cause; without it causes are drawn as lines.

    Attributes
    ----------
    errors : ndarray of shape (n_causes,)
        Mean absolute error of each cause's component.
    found : ndarray of shape (n_causes,)
        Whether a cause has its own component with an error below a tenth of the causes' peak. Of several causes that
        share a component, only the one with the smallest error counts as found.
    axes_ : ndarray of matplotlib axes, (2, n_causes)
        Causes, and components below.
    artists_ : list of two lists
        matplotlib's images or lines of causes and components.
    figure_ : matplotlib figure

    Examples
    --------
    >>> from multicause.plotting import RecoveryDisplay
    >>> display = RecoveryDisplay([[9, 0], [0, 9]], [[9.1, 0], [5, 5]], [0, 1]).plot()
    >>> display.found.tolist()
    [True, False]
    """

    def __init__(
        self,
        causes: ArrayLike,
        components: ArrayLike,
        mapping: ArrayLike,
        *,
        image_shape: Sequence[int] | None = None,
    ) -> None:
        self.causes = check_rows(causes, "causes", image_shape)
        self.components = check_rows(components, "components", image_shape)
        self.mapping, self.image_shape = np.asarray(mapping), image_shape
        if self.components.shape[1] != self.causes.shape[1]:
            raise ValueError(
                f"components must have the {self.causes.shape[1]} features of causes; got {self.components.shape[1]}."
            )
        if (
            self.mapping.shape != (len(self.causes),)
            or not np.isin(self.mapping, np.arange(len(self.components))).all()
        ):
            raise ValueError(
                f"mapping must have the number of a component, below {len(self.components)}, for each of the "
                f"{len(self.causes)} causes; got {self.mapping!r}."
            )
        self.errors = np.abs(self.components[self.mapping] - self.causes).mean(axis=1)
        rivals = np.where(self.mapping[:, None] == self.mapping, self.errors, np.inf)
        best = np.argmin(rivals, axis=1) == np.arange(len(self.causes))
        self.found = best & (self.errors < LARGEST_ERROR * np.abs(self.causes).max())

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        causes: ArrayLike,
        *,
        image_shape: Sequence[int] | None = None,
        ax: Any = None,
        **settings: Any,
    ) -> Self:
        """Present each true cause to a fitted model, and draw the component that the model infers.

        Parameters
        ----------
        model : fitted estimator of this library
            A model whose causes are on or off.
        causes : array-like of shape (n_causes, n_features)
            True causes, for example ``make_bars(...).causes``.
        image_shape : (int, int), optional
            Height and width of a cause; without it causes are drawn as lines.
        ax, **settings
            As for :meth:`plot`.
        """
        check_components(model)
        check_has_states(model, "RecoveryDisplay")
        check_has_method(model, "score_single_causes", "RecoveryDisplay")
        mapping = recovered_causes(model, causes).mapping
        return cls(causes, model.components_, mapping, image_shape=image_shape).plot(ax, **settings)

    def plot(self, ax: Any = None, *, cmap: str | None = None, origin: str = "upper") -> Self:
        """Draw causes and, below, their components; those of missing causes have a red frame.

        Parameters
        ----------
        ax : array of matplotlib axes, optional
            Two rows, a column for each cause; by default a new figure.
        cmap : str, optional
            Colour map; by default grey, or red and blue if there are negative values.
        origin : {"upper", "lower"}
            Position of the first row of an image; use "lower" for spectrograms.
        """
        n = len(self.causes)
        self.figure_, self.axes_ = new_axes(ax, (2, n), (FIELD, FIELD + 0.4))
        limits = shared_limits(self.causes, self.components[self.mapping])
        style: dict[str, Any] = {"cmap": cmap, "origin": origin}
        self.artists_: list[list[Any]] = [[], []]
        for c, (above, below) in enumerate(self.axes_.T):
            label = f"{self.mapping[c]}: {self.errors[c]:.2g}" if self.found[c] else f"missing: {self.errors[c]:.2g}"
            self.artists_[0].append(
                draw_field(above, self.causes[c], self.image_shape, limits, title=f"cause {c}", **style)
            )
            self.artists_[1].append(
                draw_field(below, self.components[self.mapping[c]], self.image_shape, limits, title=label, **style)
            )
            if not self.found[c]:
                below.title.set_color(MISSING)
                for spine in below.spines.values():
                    spine.set(color=MISSING, linewidth=2)
        self.axes_[0, 0].set_ylabel("true")
        self.axes_[1, 0].set_ylabel("found: error")
        if ax is None:
            self.figure_.suptitle(
                f"{int(self.found.sum())} of {n} causes found, mean absolute error {self.errors.mean():.2g}", fontsize=9
            )
        return self
