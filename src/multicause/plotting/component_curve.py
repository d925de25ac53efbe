"""Plot of held-out scores against the number of components."""

from __future__ import annotations

from typing import Any, Self

from multicause.plotting.fields import one_axes
from multicause.selection import ComponentCurve


class ComponentCurveDisplay:
    """Plot of the held-out scores of :func:`multicause.selection.component_curve`, with the chosen number.

    Error bars are two standard errors of the difference from the highest score.

    Parameters
    ----------
    curve : ComponentCurve
        Scores to draw.

    Attributes
    ----------
    ax_ : matplotlib axes
        Axes with the curve, ``line_``, and a dashed line at the best number, ``best_line_``.
    figure_ : matplotlib figure

    Examples
    --------
    >>> from multicause import MixtureOfPoissons
    >>> from multicause.datasets import make_bars
    >>> from multicause.plotting import ComponentCurveDisplay
    >>> from multicause.selection import component_curve
    >>> bars = make_bars(100, size=3, noise="poisson", random_state=0)
    >>> curve = component_curve(MixtureOfPoissons(), bars.data, [1, 2], cv=2, random_state=0)
    >>> ComponentCurveDisplay(curve).plot().line_.get_xdata().tolist()
    [1, 2]
    """

    def __init__(self, curve: ComponentCurve) -> None:
        self.curve = curve

    def plot(self, ax: Any = None) -> Self:
        """Draw the curve on new axes or on ``ax``."""
        curve = self.curve
        self.figure_, self.ax_ = one_axes(ax)
        container = self.ax_.errorbar(
            curve.numbers, curve.scores, yerr=2 * curve.deficit_errors, color="C0", marker="o", capsize=3
        )
        self.line_ = container.lines[0]
        self.best_line_ = self.ax_.axvline(curve.best, color="C1", linestyle="--", label=f"best: {curve.best}")
        self.ax_.set(xlabel="number of components", ylabel="mean score of a held-out row")
        for side in ("top", "right"):
            self.ax_.spines[side].set_visible(False)
        self.ax_.legend(frameon=False)
        return self
