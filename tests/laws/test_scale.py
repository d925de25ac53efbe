"""Units do not matter: a fit of X·c is the fit of X in other units, and an offset moves the mean alone."""

import warnings

import numpy as np
import pytest

from multicause import (
    IndependentComponents,
    LinearCauses,
    MixtureOfGaussians,
    MixtureOfPoissons,
    RestrictedMaximalCauses,
    SoftmaxNetwork,
    SparseCoding,
    TruncatedAutoencoder,
)
from tests.laws.classical import CLASSICAL, IMAGES, Classical
from tests.laws.configurations import CAUSES, CONFIGURATIONS

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

# Counts and binary data have no unit.
WITHOUT_UNIT = ("poisson", "bernoulli")
OTHERS = [
    Classical("sparse-coding-defaults", SparseCoding, IMAGES),
    Classical("sparse-coding-cauchy", SparseCoding, IMAGES, {"prior": "cauchy", "max_iter": 3}),
    Classical("mixture-full", MixtureOfGaussians, IMAGES, {"covariance": "full", "max_iter": 3}),
    Classical("autoencoder", TruncatedAutoencoder, IMAGES),
    Classical("linear-automatic", LinearCauses, IMAGES, {"max_iter": 60}),
]
WITH_UNIT = [
    configuration
    for configuration in [*CONFIGURATIONS, *CLASSICAL, *OTHERS]
    if configuration.noise not in WITHOUT_UNIT and configuration.name != "helmholtz-machine"
]
# Models whose noise or components have a mean of their own.
WITH_MEAN = ("mixture", "k-means", "factor", "principal", "independent", "autoencoder")


def dimensions(model, X):
    """Number of dimensions of the model's density."""
    return CAUSES if isinstance(model, IndependentComponents) else X.shape[1]


@pytest.mark.parametrize("unit", [1e-6, 1e6])
@pytest.mark.parametrize("configuration", WITH_UNIT, ids=str)
def test_unit_does_not_matter(configuration, unit):
    X = configuration.rows(0)
    model, scaled = configuration.make().fit(X), configuration.make().fit(unit * X)
    score = model.score_samples(X) - dimensions(model, X) * np.log(unit)
    np.testing.assert_allclose(scaled.score_samples(unit * X), score, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(
        scaled.reconstruct(unit * X), unit * model.reconstruct(X), rtol=1e-7, atol=1e-7 * unit * np.abs(X).max()
    )
    assert scaled.outcome_ == model.outcome_
    assert scaled.n_iter_ == model.n_iter_


@pytest.mark.parametrize("configuration", [each for each in WITH_UNIT if each.name.startswith(WITH_MEAN)], ids=str)
def test_offset_does_not_matter_where_there_is_a_mean(configuration):
    X = configuration.rows(0)
    offset = 100 * X.std() * np.linspace(-1, 1, X.shape[1])
    model, moved = configuration.make().fit(X), configuration.make().fit(X + offset)
    np.testing.assert_allclose(moved.score_samples(X + offset), model.score_samples(X), rtol=1e-6)
    np.testing.assert_allclose(moved.reconstruct(X + offset) - offset, model.reconstruct(X), atol=1e-5)
    assert moved.outcome_ == model.outcome_


@pytest.mark.parametrize("estimator", [MixtureOfPoissons, RestrictedMaximalCauses, SoftmaxNetwork])
def test_values_far_below_one_are_no_counts(estimator):
    X = np.random.RandomState(0).poisson(5 * np.eye(6)[np.arange(60) % 6])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = estimator(6, random_state=0, max_iter=30).fit(1e-6 * X)
    assert model.outcome_ in ("cause_died", "max_iter")
    assert any("multiply X by a constant" in str(warning.message) for warning in caught)
