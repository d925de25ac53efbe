"""Scales of initial components, compared with the sums and lengths that they should have."""

from types import SimpleNamespace

import numpy as np
import pytest

from multicause.initialization.scaling import with_equal_sums, with_lengths_of_data, with_relative_noise, with_slabs
from multicause.records import Moments, Parameters

N_STARTS, N_COMPONENTS, N_FEATURES = 2, 3, 4
MOMENTS = Moments(np.array([1.0, 2.0, 3.0, 4.0]), 6.25, 4.0, 1e-16)


def starts():
    components = np.random.RandomState(0).uniform(1, 2, size=(N_STARTS, N_COMPONENTS, N_FEATURES))
    activity = np.full((N_STARTS, N_COMPONENTS), 0.5)
    prior = {"activity": activity, "slab_mean": 0 * activity, "slab_variance": 1 + 0 * activity}
    return Parameters(components, prior, {"variance": np.full(N_STARTS, 1.5)})


def conditions():
    prior = SimpleNamespace(activity=lambda parameters: parameters["activity"])
    data = SimpleNamespace(dtype=np.dtype(float))
    return SimpleNamespace(
        model=SimpleNamespace(prior=prior), moments=MOMENTS, data=data, random=np.random.RandomState(1)
    )


@pytest.mark.parametrize(("total", "expected"), [(7.0, 7.0), (None, 10 / 1.5)])
def test_components_have_equal_sums(total, expected):
    """By default the mean sum of a row, 10, divided by 1.5 active causes."""
    scaled = with_equal_sums(starts(), conditions(), total).components
    np.testing.assert_allclose(scaled.sum(axis=-1), expected)
    np.testing.assert_allclose(scaled / scaled[..., :1], starts().components / starts().components[..., :1])


def test_a_component_of_zeros_cannot_be_scaled():
    given = starts()
    given.components[:, 1] = 0
    with pytest.raises(ValueError, match="component 1 is zero"):
        with_equal_sums(given, conditions(), None)


def test_random_components_are_as_long_as_the_deviation_of_the_data():
    found = with_lengths_of_data(starts(), conditions()).components
    np.testing.assert_allclose(np.linalg.norm(found, axis=-1), 2.0, rtol=1e-6)  # the root of 4


def test_noise_is_a_fraction_of_the_deviation_of_the_data():
    assert np.allclose(with_relative_noise(starts(), MOMENTS).noise["variance"], (0.3 * 2) ** 2)


def test_slabs_explain_the_mean_square_that_noise_leaves():
    """⟨|y|²⟩ = 4 · 4 + 30, of which noise explains 4 · 1.5; each of 3 causes is active in half of the rows."""
    found = with_slabs(starts(), MOMENTS)
    np.testing.assert_allclose(np.linalg.norm(found.components, axis=-1), 1)
    np.testing.assert_allclose(found.prior["slab_variance"], (46 - 6) / 1.5)
