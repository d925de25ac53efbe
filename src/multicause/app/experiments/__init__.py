"""Experiments of the papers, with their results beside ours.

Each experiment is a function that returns the lines of a table; a long one yields them as they are found.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

_HOME = {
    "mca_ex": ("multicause.app.experiments.mca_exact", "mca_exact", "MCA08 §6.3–6.4: exact maximal causes on bars"),
    "mca08": (
        "multicause.app.experiments.mca08",
        "mca08",
        "MCA08 and GSN07: every bars test and the phonemes, three algorithms",
    ),
    "mca08_patches": ("multicause.app.experiments.mca08", "patches", "MCA08: fields of image patches"),
    "et10": ("multicause.app.experiments.et10", "et10", "ET10: Expectation Truncation on bars"),
    "et10_digits": ("multicause.app.experiments.et10_data", "digits", "ET10: parts of digits"),
    "et10_patches": ("multicause.app.experiments.et10_data", "patches", "ET10: fields of image patches"),
    "et10_speech": ("multicause.app.experiments.et10_data", "speech", "ET10: parts of speech"),
    "ebm01_fig1": (
        "multicause.app.experiments.ebm01_separation",
        "figure_1",
        "EBM01 figure 1: six ways to separate sources",
    ),
    "ebm01_fig2": (
        "multicause.app.experiments.ebm01_separation",
        "figure_2",
        "EBM01 figure 2: their course of learning",
    ),
    "ebm01_fig3": (
        "multicause.app.experiments.ebm01_filters",
        "figure_3",
        "EBM01 figure 3: overcomplete filters of speech",
    ),
    "ebm01_fig4": ("multicause.app.experiments.ebm01_filters", "figure_4", "EBM01 figure 4: power of these filters"),
    "ebm01_fig5": (
        "multicause.app.experiments.ebm01_filters",
        "figure_5",
        "EBM01 figure 5: overcomplete filters of images",
    ),
    "ebm01_fig6": (
        "multicause.app.experiments.ebm01_filters",
        "figure_6",
        "EBM01 figure 6: positions of these filters",
    ),
    "ebm01_fig7": (
        "multicause.app.experiments.ebm01_filters",
        "figure_7",
        "EBM01 figure 7: frequencies of these filters",
    ),
    "ebm01_overcomplete": (
        "multicause.app.experiments.ebm01_beyond",
        "overcomplete",
        "EBM01: overcomplete models of known sources",
    ),
    "ebm01_layers": ("multicause.app.experiments.ebm01_beyond", "layers", "EBM01: models with two layers"),
    "tn10": ("multicause.app.experiments.tn10", "tn10", "TN10: all of its figures"),
    "tn10_clustering": ("multicause.app.experiments.tn10_models", "clustering", "TN10: clustering"),
    "tn10_factors": ("multicause.app.experiments.tn10_models", "factors", "TN10: factors and principal components"),
    "tn10_sparseness": ("multicause.app.experiments.tn10_images", "sparseness", "TN10 figure 10.4: sparse densities"),
    "tn10_codes": ("multicause.app.experiments.tn10_images", "codes", "TN10 figures 10.9–10.11: codes by wavelets"),
    "tn10_sources": ("multicause.app.experiments.tn10_models", "sources", "TN10: independent sources"),
    "tn10_fields": ("multicause.app.experiments.tn10_images", "fields", "TN10 figure 10.6: fields of a sparse code"),
    "peers": (
        "multicause.app.experiments.peers",
        "peers",
        "models of other packages: noisy-or, levels, evolved states, autoencoder",
    ),
    "tn10_bars": ("multicause.app.experiments.tn10_models", "bars", "TN10: a Helmholtz machine on bars"),
}
NAMES = tuple(_HOME)
#: Papers by the first part of an experiment's name.
PAPERS = {
    "mca": "Lücke & Sahani 2008, Maximal Causes (MCA08), and 2007, Generalized Softmax Networks (GSN07)",
    "et10": "Lücke & Eggert 2010, Expectation Truncation (ET10)",
    "ebm01": "Hinton, Welling, Teh & Osindero 2001, A New View of ICA (EBM01)",
    "tn10": "Dayan & Abbott 2001, Theoretical Neuroscience, chapter 10 (TN10)",
    "peers": "Models of other packages",
}
#: How long the experiments take with their defaults on two cores: estimates, in orders of magnitude.
DURATIONS = {
    "mca_ex": "minutes",
    "mca08": "hours",
    "mca08_patches": "minutes",
    "et10": "hours",
    "et10_digits": "a minute",
    "et10_patches": "tens of minutes",
    "et10_speech": "an hour",
    "ebm01_fig1": "minutes",
    "ebm01_fig2": "minutes",
    "ebm01_fig3": "tens of minutes",
    "ebm01_fig4": "tens of minutes, or seconds after ebm01_fig3",
    "ebm01_fig5": "hours",
    "ebm01_fig6": "hours, or seconds after ebm01_fig5",
    "ebm01_fig7": "hours, or seconds after ebm01_fig5",
    "ebm01_overcomplete": "minutes",
    "ebm01_layers": "minutes",
    "tn10": "tens of minutes",
    "tn10_clustering": "seconds",
    "tn10_factors": "seconds",
    "tn10_sparseness": "seconds",
    "tn10_codes": "seconds",
    "tn10_sources": "seconds",
    "tn10_fields": "minutes",
    "tn10_bars": "tens of minutes",
    "peers": "an hour",
}


class Quick(NamedTuple):
    """How ``multicause reproduce`` runs an experiment with ``--quick``."""

    trials: int
    setting: str
    seconds: int  # of CPU time in one command with all others, compilation included; measured on a busy machine


#: Short runs of all experiments; "tn10" is the sum of its parts.
QUICK = {
    "mca_ex": Quick(2, "default", 15),
    "mca08": Quick(1, "default", 342),
    "mca08_patches": Quick(1, "paper", 13),
    "et10": Quick(1, "default", 95),
    "et10_digits": Quick(1, "paper", 8),
    "et10_patches": Quick(1, "quick", 35),
    "et10_speech": Quick(1, "quick", 19),
    "ebm01_fig1": Quick(1, "quick", 41),
    "ebm01_fig2": Quick(1, "quick", 1),
    "ebm01_fig3": Quick(1, "quick", 10),
    "ebm01_fig4": Quick(1, "quick", 2),
    "ebm01_fig5": Quick(1, "quick", 17),
    "ebm01_fig6": Quick(1, "quick", 1),
    "ebm01_fig7": Quick(1, "quick", 1),
    "ebm01_overcomplete": Quick(1, "default", 4),
    "ebm01_layers": Quick(1, "default", 25),
    "tn10_clustering": Quick(1, "quick", 7),
    "tn10_factors": Quick(1, "quick", 3),
    "tn10_sparseness": Quick(1, "quick", 2),
    "tn10_codes": Quick(1, "quick", 1),
    "tn10_sources": Quick(1, "quick", 1),
    "tn10_fields": Quick(1, "quick", 18),
    "tn10_bars": Quick(1, "quick", 18),
    "peers": Quick(1, "quick", 346),
}
#: What each experiment reproduces, in a few words.
SUBJECTS = {name: subject for name, (_, _, subject) in _HOME.items()}


def experiment(name: str) -> Callable[..., Any]:
    """Return the experiment of that name."""
    if name not in _HOME:
        raise ValueError(f"Unknown experiment {name!r}. Known: {', '.join(map(repr, NAMES))}.")
    module, function, _ = _HOME[name]
    return getattr(import_module(module), function)


def quick_run(name: str) -> Quick:
    """Return the short run of an experiment; one that is the sum of its parts has that of the first part."""
    return QUICK.get(name) or next(short for key, short in QUICK.items() if key.startswith(f"{name}_"))
