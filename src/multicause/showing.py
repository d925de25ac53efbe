"""What decides how a model and its rows are shown, in a report as in a plot."""

from __future__ import annotations

from typing import Any

import numpy as np

from multicause.priors.continuous import Continuous


def has_probabilities(model: Any) -> bool:
    """Whether ``transform`` gives probabilities of causes, rather than real values of them."""
    inner = getattr(model, "_model", None)
    return inner is not None and not isinstance(inner.prior, Continuous)


def is_signed(rows: np.ndarray) -> bool:
    """Whether negative values matter."""
    return bool(rows.min() < -0.01 * np.abs(rows).max())
