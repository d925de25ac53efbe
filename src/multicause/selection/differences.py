"""When scores of the same rows differ by more than chance."""

from __future__ import annotations

from typing import Any

import numpy as np

# One model is as good as another if its mean score is lower by less than so many standard errors of the difference.
# Two of them leave a chance of about 2 % to prefer a number of components that is too small by accident.
STANDARD_ERRORS = 2.0
# The same holds for a difference below this part of the standard error of the score itself. Where silent components are
# all that models differ by, scores differ by rounding or by the activities left to such components, which are alike in
# all rows, so that the standard error of the difference is even smaller.
LEAST_PART = 1e-3


def is_by_chance(difference: Any, error: Any, score_error: Any) -> np.ndarray:
    """Return whether differences of mean scores mean nothing, given their standard errors and that of the score."""
    return np.asarray(difference <= np.maximum(STANDARD_ERRORS * error, LEAST_PART * score_error))


def mean_and_error(values: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the weighted mean over the last axis of values (numbers, rows), and its standard error."""
    shares = weights / weights.sum()
    mean = values @ shares
    squares = ((values - mean[:, None]) ** 2) @ shares**2
    n = len(weights)
    return mean, np.sqrt(squares * n / max(n - 1, 1))
