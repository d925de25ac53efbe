"""Mini-batches of contrastive divergence: drawn in proportion to weights, or all rows."""

import numpy as np

from multicause.solvers.energy_batches import mini_batches

X = np.arange(4.0)[:, None]


def test_rows_are_drawn_in_proportion_to_their_weights(seed):
    """Within five standard errors of the share of 20,000 draws."""
    weights = np.array([1.0, 0.0, 3.0, 6.0])
    batches = mini_batches(X, weights, 50, np.random.RandomState(seed))(400)
    assert batches.rows.shape == (400, 50, 1)
    shares = np.bincount(batches.rows.astype(int).ravel(), minlength=4) / 20_000
    np.testing.assert_allclose(shares, weights / 10, atol=5 * 0.5 / np.sqrt(20_000))
    assert shares[1] == 0
    np.testing.assert_allclose(batches.shares, np.full(50, 1 / 50))


def test_one_batch_of_all_rows_has_weighted_means():
    batches = mini_batches(X, np.array([1.0, 0.0, 3.0, 6.0]), None, np.random.RandomState(0))(7)
    np.testing.assert_array_equal(batches.rows, [X])
    np.testing.assert_allclose(batches.shares, [0.1, 0.0, 0.3, 0.6])
