"""Counts that are stabilized, and rates that follow from them."""

import numpy as np
import pytest

from multicause.restoration.counts import expected_counts, stabilize_counts


@pytest.mark.parametrize("rate", [0.5, 2.0, 30.0])
def test_rates_follow_from_expected_stabilized_counts(rate):
    # The false-alarm rate of five standard errors is below 1e-6.
    counts = np.random.RandomState(0).poisson(rate, 200_000)
    values = stabilize_counts(counts)
    slope = np.sqrt(rate) + 0.5  # at least the derivative of the inverse
    assert expected_counts(values.mean()) == pytest.approx(rate, abs=5 * slope * values.std() / 447 + 0.02)
