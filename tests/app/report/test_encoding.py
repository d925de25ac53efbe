"""Pictures of a page are small."""

import numpy as np

from multicause.app.report.encoding import shrunk


def test_large_pictures_are_shrunk_by_means():
    rows = np.arange(2 * 5 * 4, dtype=float).reshape(2, 20)
    small, shape = shrunk(rows, (5, 4), 2)
    assert shape == (3, 2)
    images = rows.reshape(2, 5, 4)
    np.testing.assert_allclose(small[0, 0], images[0, :2, :2].mean())
    np.testing.assert_allclose(small[1, 5], images[1, 4:, 2:].mean())
    flat, shape = shrunk(rows, (1, 20), 3)
    assert shape == (1, 7)
    np.testing.assert_allclose(flat[0, 6], rows[0, 18:].mean())
