"""Transformation of photon counts to noise of constant variance, and its inverse."""

from __future__ import annotations

import numpy as np


def stabilize_counts(counts: np.ndarray) -> np.ndarray:
    """Return 2 √(x + 3/8), whose noise has variance one if x is a Poisson count and not very small (Anscombe 1948)."""
    return 2 * np.sqrt(counts + 3 / 8)


def expected_counts(stabilized: np.ndarray) -> np.ndarray:
    """Return the rates of Poisson counts whose :func:`stabilize_counts` has the given expectation.

    The closed form of Mäkitalo & Foi (2011, eq. 10) is used; the plain inverse has a bias at low counts.
    """
    # The expectation for a rate of zero, the smallest there is.
    d = np.maximum(stabilized, 2 * np.sqrt(3 / 8))
    rate = d**2 / 4 + np.sqrt(3 / 2) / (4 * d) - 11 / (8 * d**2) + 5 * np.sqrt(3 / 2) / (8 * d**3) - 1 / 8
    return np.maximum(rate, 0)
