"""Fields by dots and gratings, kurtosis, coding costs, wavelets and conditional histograms."""

import numpy as np
import pytest

from multicause import IndependentComponents
from multicause.metrics import (
    coding_cost,
    conditional_histogram,
    decompose,
    found_causes,
    kurtosis,
    receptive_fields_by_dots,
    receptive_fields_by_gratings,
)


def test_linear_recognition_has_the_same_field_for_dots_and_gratings():
    X = np.random.RandomState(0).laplace(size=(300, 12)) @ np.random.RandomState(1).normal(size=(12, 12))
    model = IndependentComponents(random_state=0, max_iter=20, tol=1e-3).fit(X)
    W = model.receptive_fields_
    np.testing.assert_allclose(receptive_fields_by_dots(model), W, atol=1e-10)
    np.testing.assert_allclose(receptive_fields_by_gratings(model, (3, 4)), W, atol=1e-10)
    with pytest.raises(ValueError, match=r"image_shape must have 12 pixels.*got \(4, 4\)"):
        receptive_fields_by_gratings(model, (4, 4))


def test_kurtosis_of_known_densities(seed):
    """TN10 figure 10.4: 0 for a Gaussian, 3 for the double exponential; −1.2 for a uniform density."""
    random = np.random.RandomState(seed)
    n = 400_000
    assert kurtosis(random.normal(size=n)) == pytest.approx(0, abs=0.05)
    assert kurtosis(random.laplace(size=n)) == pytest.approx(3, abs=0.3)
    assert kurtosis(random.uniform(size=(n, 2)), axis=0) == pytest.approx(-1.2, abs=0.02)
    for bad in ([1, 1, 1], [np.nan, 1]):
        with pytest.raises(ValueError, match="kurtosis needs"):
            kurtosis(bad)


def test_coding_cost_is_an_entropy():
    assert coding_cost(np.arange(8), step=1) == pytest.approx(3)
    assert coding_cost([0, 0, 0, 0], step=1) == 0
    assert coding_cost(np.random.RandomState(0).uniform(0, 256, 10**6), step=1) == pytest.approx(8, abs=0.02)
    with pytest.raises(ValueError, match="step must be a positive number"):
        coding_cost([1.0], step=0)


def test_a_decomposition_keeps_length_and_tells_orientations_apart():
    pytest.importorskip("pywt", reason="PyWavelets is not installed")
    image = np.random.RandomState(0).normal(size=(32, 32))
    parts = decompose(image, levels=2)
    total = sum((p**2).sum() for p in (parts.low, *parts.horizontal, *parts.vertical, *parts.diagonal))
    assert total == pytest.approx((image**2).sum())
    stripes = np.repeat(np.array([[1.0, 1, 1, 1, -1, -1, -1, -1]] * 32), 4, axis=1)  # vary from left to right
    across = decompose(stripes, levels=2)
    assert (across.vertical[1] ** 2).sum() > 100 * (across.horizontal[1] ** 2).sum()
    with pytest.raises(ValueError, match="two dimensions"):
        decompose(np.ones(5))


def test_a_bow_tie_shows_shared_variance():
    random = np.random.RandomState(0)
    common = np.exp(random.normal(size=200_000))
    parent, child = common * random.normal(size=(2, 200_000))
    tied, edges = conditional_histogram(child, parent, limit=5.0)
    free, _ = conditional_histogram(random.permutation(child), parent, limit=5.0)

    def width(table, column):
        return (table[:, column] > 0.25).sum()

    assert width(tied, 2) > 1.5 * width(tied, 20)
    assert abs(width(free, 2) - width(free, 20)) <= 4
    assert len(edges) == 42
    with pytest.raises(ValueError, match="same number of values"):
        conditional_histogram([1, 2], [1])


def test_found_causes_up_to_scale_and_offset():
    bars = np.eye(4)
    np.testing.assert_array_equal(found_causes(5 * bars[:3] - 2, bars), [True, True, True, False])
    with pytest.raises(ValueError, match="rows of the same length"):
        found_causes(np.ones((2, 3)), bars)
