"""Figures 10.1–10.4, 10.6 and 10.9–10.11 of TN10, and a Helmholtz machine on bars; pictures in ``out/reproduce``."""

from __future__ import annotations

from collections.abc import Iterator

from multicause.app.experiments.table import Line
from multicause.app.experiments.tn10_images import codes, fields, sparseness
from multicause.app.experiments.tn10_models import bars, clustering, factors, is_quick, sources


def tn10(trials: int = 10, *, setting: str = "default", jobs: int = 1) -> Iterator[Line]:
    """Run all figures, one after the other; ``trials`` is the number of runs of the Helmholtz machine.

    The setting "quick" learns fields and bars only briefly, to check that all figures are drawn.
    """
    is_quick(setting)
    parts = (clustering, factors, sparseness, codes, sources, fields, bars)
    return (line for part in parts for line in part(trials, setting=setting))
