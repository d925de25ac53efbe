"""When scores of the same rows differ by more than chance."""

from __future__ import annotations

import numpy as np

# One model is as good as another if its mean score is lower by less than so many standard errors of the difference.
# Two of them leave a chance of about 2 % to prefer a number of components that is too small by accident.
STANDARD_ERRORS = 2.0


def mean_and_error(values: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the weighted mean over the last axis of values (numbers, rows), and its standard error."""
    shares = weights / weights.sum()
    mean = values @ shares
    squares = ((values - mean[:, None]) ** 2) @ shares**2
    n = len(weights)
    return mean, np.sqrt(squares * n / max(n - 1, 1))
