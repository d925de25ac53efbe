"""When scores of the same rows differ by more than chance."""

from __future__ import annotations

import numpy as np

# One model is as good as another if its mean score is lower by less than so many standard errors of the difference.
# Two of them leave a chance of about 2 % to prefer a number of components that is too small by accident.
STANDARD_ERRORS = 2.0
# The same holds for a difference of less than one nat in all rows together. Where silent components are all that models
# differ by, rows differ by rounding or by the activities left to such components, which are alike in all rows, so that
# standard errors are even smaller.
LEAST_TOTAL = 1.0


def is_by_chance(difference: np.ndarray, error: np.ndarray, n_rows: int) -> np.ndarray:
    """Return whether differences between mean scores of so many rows, given their standard errors, mean nothing."""
    return np.asarray(difference <= np.maximum(STANDARD_ERRORS * error, LEAST_TOTAL / n_rows))


def mean_and_error(values: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the weighted mean over the last axis of values (numbers, rows), and its standard error."""
    shares = weights / weights.sum()
    mean = values @ shares
    squares = ((values - mean[:, None]) ** 2) @ shares**2
    n = len(weights)
    return mean, np.sqrt(squares * n / max(n - 1, 1))
