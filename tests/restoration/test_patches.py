"""Patches of an image: their sums make the image again, and means of values nearby."""

import numpy as np
import pytest

from multicause.restoration.patches import PatchGrid


@pytest.mark.parametrize("step", [1, 3])
def test_an_image_is_the_mean_of_its_patches(step):
    image = np.random.RandomState(0).normal(size=(17, 23, 3))
    grid = PatchGrid(image.shape, 5, step)
    sums, total = np.zeros(image.shape), np.zeros((*image.shape[:2], 1))
    for begin in range(0, grid.shape[0], 4):
        part = grid.strip(begin, begin + 4)
        part.add(part.extract(image), np.ones((len(part), 1)), sums, total)
    np.testing.assert_allclose(sums / total, image)
    some = np.array([0, 7, len(grid) - 1])
    np.testing.assert_array_equal(grid.extract(image, some), grid.extract(image)[some])


def test_means_of_values_nearby():
    grid = PatchGrid((9, 8, 1), 3)
    values = np.random.RandomState(0).uniform(size=(len(grid), 2))
    found = grid.average_nearby(values, 2).reshape(*grid.shape, 2)
    images = values.reshape(*grid.shape, 2)
    for y, x in ((0, 0), (3, 2), (6, 5)):
        expected = images[max(0, y - 2) : y + 3, max(0, x - 2) : x + 3].mean(axis=(0, 1))
        np.testing.assert_allclose(found[y, x], expected, rtol=1e-5)
