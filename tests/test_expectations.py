"""Expectations that follow from others, whatever posterior infers them."""

import numpy as np

from multicause.arrays import double_precision
from multicause.expectations import Inference

ROWS = np.array([[1.0, np.nan], [3.0, 4.0]])


class Given(Inference):
    """Two rows with weights 2 and 5 and given mean causes."""

    rows = ROWS
    observed = (~np.isnan(ROWS)).astype(float)
    row_weights = np.array([2.0, 5.0])
    mean_causes = np.array([[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]])
    total_causes = row_weights @ mean_causes

    def mean_data(self):
        return np.ones((2, 2))

    def recognize(self, top):
        raise NotImplementedError


def test_sums_over_observed_values_leave_out_missing_ones():
    with double_precision():
        causes, cause_data = Given().observed_causes, Given().observed_cause_data
    np.testing.assert_allclose(causes, [[2.2, 2.0], [2.9, 2.5], [3.6, 3.0]])
    np.testing.assert_allclose(cause_data, [[6.2, 8.0], [7.9, 10.0], [9.6, 12.0]])


def test_binary_causes_are_active_as_often_as_their_mean_says():
    inference = Given()
    assert inference.mean_active is inference.mean_causes
    assert inference.total_active is inference.total_causes


def test_missing_values_have_the_mean_of_the_data_by_default():
    np.testing.assert_array_equal(Given().imputed_data(), np.ones((2, 2)))
