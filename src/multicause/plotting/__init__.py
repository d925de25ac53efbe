"""Plots; needs matplotlib, which the extra ``app`` brings."""

from multicause.plotting.images import draw_bound, draw_images

__all__ = ["draw_bound", "draw_images"]
