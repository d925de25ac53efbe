"""TN10: figures 10.1–10.4, 10.6 and 10.9–10.11, and a Helmholtz machine on bars; pictures in ``out/reproduce``."""

from __future__ import annotations

from collections.abc import Iterator

from multicause.app.experiments.table import Line
from multicause.app.experiments.tn10_images import codes, fields, sparseness
from multicause.app.experiments.tn10_models import bars, clustering, factors, is_quick, sources


def tn10(trials: int = 10, *, setting: str = "default", jobs: int = 1) -> Iterator[Line]:
    """All figures, one after the other; ``trials`` is the number of runs of the Helmholtz machine.

    The setting "quick" learns fields and bars for a moment only, to see that all figures are drawn.
    """
    is_quick(setting)
    parts = (clustering, factors, sparseness, codes, sources, fields, bars)
    return (line for part in parts for line in part(trials, setting=setting))
