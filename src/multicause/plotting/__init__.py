"""Plots with matplotlib, which the extra ``app`` installs and which is imported when the first plot is drawn.

Displays follow scikit-learn's convention: ``from_estimator`` computes and draws, the constructor takes the values to
draw, and ``plot`` draws them again, optionally on given axes.
"""

from multicause.plotting.animation import animate_fields
from multicause.plotting.component_curve import ComponentCurveDisplay
from multicause.plotting.components import ComponentsDisplay
from multicause.plotting.convergence import ConvergenceDisplay
from multicause.plotting.images import draw_images
from multicause.plotting.posterior import PosteriorDisplay
from multicause.plotting.recovery import RecoveryDisplay

__all__ = [
    "ComponentCurveDisplay",
    "ComponentsDisplay",
    "ConvergenceDisplay",
    "PosteriorDisplay",
    "RecoveryDisplay",
    "animate_fields",
    "draw_images",
]
