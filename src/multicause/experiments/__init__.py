"""Experiments of the papers, with their numbers beside ours. Each is a function that returns a table."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

_HOME = {
    "mca_ex": ("multicause.experiments.mca_exact", "mca_exact"),
    "mca08": ("multicause.experiments.mca08", "mca08"),
    "et10": ("multicause.experiments.et10", "et10"),
    "et10_digits": ("multicause.experiments.et10_data", "digits"),
    "et10_patches": ("multicause.experiments.et10_data", "patches"),
    "et10_speech": ("multicause.experiments.et10_data", "speech"),
}
NAMES = tuple(_HOME)


def experiment(name: str) -> Callable[..., Any]:
    """The experiment of that name."""
    if name not in _HOME:
        raise ValueError(f"Unknown experiment {name!r}. Known: {', '.join(map(repr, NAMES))}.")
    module, function = _HOME[name]
    return getattr(import_module(module), function)
