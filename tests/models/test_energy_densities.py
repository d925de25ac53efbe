"""Densities of EnergyComponents, their partition functions and samples, against closed forms and quadrature."""

import numpy as np
import pytest
from scipy import stats
from sklearn.exceptions import ConvergenceWarning

from multicause import EnergyComponents
from multicause.energies import Logistic, Student
from multicause.engines import Local
from multicause.samplers.annealed import LogPartition
from tests.solvers.mixtures import mixture

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


class Hidden(Logistic):
    """The logistic expert, without what it knows about itself."""

    def offers(self, method):
        return False


@pytest.mark.parametrize("whiten", ["pca", "zca", None])
def test_the_density_is_that_of_independent_sources(mixed, whiten):
    X, _, _ = mixed
    model = EnergyComponents(sampler="exact", whiten=whiten, max_iter=200, random_state=0).fit(X)
    W = model.components_
    expected = stats.logistic.logpdf((X - X.mean(axis=0)) @ W.T).sum(axis=1) + np.linalg.slogdet(W)[1]
    np.testing.assert_allclose(model.score_samples(X), expected, rtol=1e-9)
    np.testing.assert_allclose(model.score(X), expected.mean(), rtol=1e-9)
    assert model.lower_bound_ == pytest.approx(expected.mean(), rel=1e-9)
    np.testing.assert_allclose(model.transform(X), (X - X.mean(axis=0)) @ W.T, atol=1e-9)
    np.testing.assert_allclose(model.inverse_transform(model.transform(X)), X, rtol=1e-8)
    assert model.log_partition_.standard_error == 0


def grid(model, reach=9.0, n=401):
    """Places in the plane of X around its mean, in units of its standard deviation, and the area of each."""
    line = np.linspace(-reach, reach, n)
    Z = np.stack(np.meshgrid(line, line, indexing="ij"), axis=-1).reshape(-1, 2)
    inverse = model._problem.whitening.inverse
    area = (line[1] - line[0]) ** 2 * abs(np.linalg.det(inverse))
    return Z @ inverse.T + model.mean_, area


@pytest.mark.parametrize(
    "settings",
    [{"n_components": 1, "sampler": "exact"}, {"n_components": 3, "layers": (2,), "nonlinearity": "tanh"}],
    ids=["undercomplete", "layered"],
)
def test_densities_have_integral_one(settings, seed):
    """In the space of X, with the partition function that is known or estimated: to four standard errors.

    A false alarm in some thousand runs.
    """
    X = mixture(2000, 2)[0]
    model = EnergyComponents(**({"max_iter": 300, "random_state": seed, "sampler": "metropolis"} | settings)).fit(X)
    estimate = model.estimate_log_partition(n_chains=200, n_temperatures=150, random_state=seed)
    assert estimate.standard_error < 0.05
    places, area = grid(model)
    mass = np.exp(model.score_samples(places)).sum() * area
    assert np.log(mass) == pytest.approx(0, abs=4 * estimate.standard_error + 2e-3)


def test_the_estimated_partition_function_against_the_exact_one(mixed, monkeypatch, seed):
    """To four standard errors: a false alarm in some thousand runs."""
    X, A, _ = mixed
    model = EnergyComponents(expert=Hidden(), init=2 * np.linalg.inv(A), learning_rate=1e-12, max_iter=1,
                             sampler="metropolis", random_state=0).fit(X)  # fmt: skip
    assert model.log_partition_ is None
    assert np.isnan(model.lower_bound_)
    unnormalized = model.score_samples(X)
    estimate = model.estimate_log_partition(n_chains=200, n_temperatures=300, random_state=seed)
    exact = -np.linalg.slogdet(model.whitened_components_)[1]  # EBM01 eq. 5
    assert estimate.standard_error < 0.1
    assert estimate.value == pytest.approx(exact, abs=4 * estimate.standard_error)
    np.testing.assert_allclose(model.score_samples(X), unnormalized - estimate.value, rtol=1e-6)
    known = LogPartition(1.5, 0.1, 10, 0)
    monkeypatch.setattr("multicause.estimators.energy_density.estimate_log_partition", lambda *_: known)
    with pytest.warns(UserWarning, match="not normalized.*estimate_partition=True") as caught:
        EnergyComponents(expert=Hidden(), max_iter=1, sampler="metropolis").fit(X).score(X)
    assert {record.filename for record in caught} == {__file__}
    asked = EnergyComponents(expert=Hidden(), max_iter=1, sampler="metropolis", estimate_partition=True).fit(X)
    assert asked.lower_bound_ == pytest.approx(asked.score(X))
    assert asked.score(X) == pytest.approx(asked._problem.whitening.log_volume - 1.5 - asked.energy(X).mean())


def test_a_model_without_a_density_says_so():
    """Three filters in two dimensions, two of them parallel; along the third, exp(−E) falls like |h|^(−0.6) alone."""
    X = np.random.RandomState(0).normal(size=(50, 2))
    filters = np.array([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0]])
    settings = {"init": filters, "whiten": None, "learning_rate": 1e-12, "max_iter": 1, "random_state": 0}
    heavy = EnergyComponents(3, expert=Student(exponent=0.3, learn_exponents=False), **settings)
    with pytest.warns(ConvergenceWarning, match="no finite integral, because it falls too slowly"):
        heavy.set_params(estimate_partition=True).fit(X)
    assert heavy.log_partition_ is None
    assert np.isnan(heavy.lower_bound_)
    with pytest.raises(ValueError, match=r"sum of the exponents of all filters.*learn_exponents=False"):
        heavy.estimate_log_partition()
    with pytest.warns(UserWarning, match="no finite integral"):
        heavy.sample(2, random_state=0)
    light = EnergyComponents(3, expert=Student(exponent=0.8, learn_exponents=False), **settings).fit(X)
    few = {"n_chains": 20, "n_temperatures": 20, "random_state": 0}
    assert np.isfinite(light.estimate_log_partition(**few).value)


def test_samples_have_the_models_moments(seed):
    """Four moments to five standard errors: a false alarm in a hundred thousand runs."""
    X = mixture(2000, 2)[0]
    model = EnergyComponents(4, max_iter=300, random_state=0, sampler="metropolis", n_steps=10).fit(X)
    places, _ = grid(model)
    density = np.exp(model.score_samples(places))
    density /= density.sum()
    rows, activities = model.sample(2000, random_state=seed + 1)
    np.testing.assert_allclose(activities, model.transform(rows))
    for power in (1, 2):
        expected = density @ (places - model.mean_) ** power
        found = (rows - model.mean_) ** power
        errors = (found.mean(axis=0) - expected) / (found.std(axis=0) / np.sqrt(len(rows)))
        assert np.abs(errors).max() < 5
    # Chains in small groups follow the same paths, but for rounding that may turn a rejection into an acceptance.
    few = model.set_params(engine=Local(memory_budget="64KiB")).sample(2000, random_state=seed + 1)[0]
    assert (np.abs(few - rows).max(axis=1) < 1e-6).mean() > 0.9
