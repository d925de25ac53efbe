"""Experiments of the papers, with their results beside ours.

Each experiment is a function that returns the lines of a table; a long one yields them as they are found.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any

_HOME = {
    "mca_ex": ("multicause.app.experiments.mca_exact", "mca_exact"),
    "mca08": ("multicause.app.experiments.mca08", "mca08"),
    "mca08_patches": ("multicause.app.experiments.mca08", "patches"),
    "et10": ("multicause.app.experiments.et10", "et10"),
    "et10_digits": ("multicause.app.experiments.et10_data", "digits"),
    "et10_patches": ("multicause.app.experiments.et10_data", "patches"),
    "et10_speech": ("multicause.app.experiments.et10_data", "speech"),
    "ebm01_fig1": ("multicause.app.experiments.ebm01_separation", "figure_1"),
    "ebm01_fig2": ("multicause.app.experiments.ebm01_separation", "figure_2"),
    "ebm01_fig3": ("multicause.app.experiments.ebm01_filters", "figure_3"),
    "ebm01_fig4": ("multicause.app.experiments.ebm01_filters", "figure_4"),
    "ebm01_fig5": ("multicause.app.experiments.ebm01_filters", "figure_5"),
    "ebm01_fig6": ("multicause.app.experiments.ebm01_filters", "figure_6"),
    "ebm01_fig7": ("multicause.app.experiments.ebm01_filters", "figure_7"),
    "ebm01_overcomplete": ("multicause.app.experiments.ebm01_beyond", "overcomplete"),
    "ebm01_layers": ("multicause.app.experiments.ebm01_beyond", "layers"),
    "tn10": ("multicause.app.experiments.tn10", "tn10"),
    "tn10_clustering": ("multicause.app.experiments.tn10_models", "clustering"),
    "tn10_factors": ("multicause.app.experiments.tn10_models", "factors"),
    "tn10_sparseness": ("multicause.app.experiments.tn10_images", "sparseness"),
    "tn10_codes": ("multicause.app.experiments.tn10_images", "codes"),
    "tn10_sources": ("multicause.app.experiments.tn10_models", "sources"),
    "tn10_fields": ("multicause.app.experiments.tn10_images", "fields"),
    "tn10_bars": ("multicause.app.experiments.tn10_models", "bars"),
}
NAMES = tuple(_HOME)


def experiment(name: str) -> Callable[..., Any]:
    """Return the experiment of that name."""
    if name not in _HOME:
        raise ValueError(f"Unknown experiment {name!r}. Known: {', '.join(map(repr, NAMES))}.")
    module, function = _HOME[name]
    return getattr(import_module(module), function)
