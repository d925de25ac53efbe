"""Rows relative to an origin, with zeros in place of missing values."""

import numpy as np

from multicause.arrays import observed_data, relative

ROWS = np.array([[1.0, np.nan], [3.0, 4.0]])
OBSERVED = np.array([[1.0, 0.0], [1.0, 1.0]])


def test_an_origin_is_subtracted_if_there_is_one():
    np.testing.assert_array_equal(relative(ROWS, np.array([1.0, 2.0])), [[0, np.nan], [2, 2]])
    assert relative(ROWS, None) is ROWS


def test_missing_values_are_zero_relative_to_the_origin():
    np.testing.assert_array_equal(observed_data(ROWS, np.array([1.0, 2.0]), OBSERVED), [[0, 0], [2, 2]])
    np.testing.assert_array_equal(observed_data(ROWS, None, OBSERVED), [[1, 0], [3, 4]])
    np.testing.assert_array_equal(observed_data(ROWS, None, None), ROWS)
