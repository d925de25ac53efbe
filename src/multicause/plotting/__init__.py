"""Plots; they need matplotlib, which the extra ``app`` brings and which is imported when the first is drawn.

Displays have scikit-learn's form: ``from_estimator`` computes and draws, the constructor takes what is drawn, and
``plot`` draws it again, on axes of the user's own if wanted.
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
