"""A weight of k is k repetitions of a row: for every estimator, and for batches of any size."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import multicause
from multicause.posteriors import MostProbable
from multicause.samplers import Metropolis
from multicause.solvers.presentation import MOST_REPETITIONS, repetitions, rows_to_show
from tests.laws.classical import bars, binary

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
H, D = 3, 9
IMAGES, COUNTS = bars("gaussian"), bars("poisson")
# Iterative solvers end within their tolerance, which has to be below that of the comparison.
PRECISE = MostProbable(tol=1e-12)


@dataclass(frozen=True)
class Weighted:
    """An estimator, data that suit it, and its settings."""

    estimator: type
    data: Callable[[int, int], np.ndarray]
    settings: dict[str, Any] = field(default_factory=dict)
    init: bool = True  # whether it can start from given components

    def fit(self, method: str, seed: int, X: np.ndarray, weights: np.ndarray | None = None) -> Any:
        """A model after a short fit, or after two calls of ``partial_fit``."""
        settings = {"n_components": H, "random_state": seed, "max_iter": 4} | self.settings
        if self.estimator is multicause.PrincipalComponents:  # has no iterations and no start
            del settings["max_iter"]
        elif self.init:
            settings["init"] = np.abs(np.random.RandomState(seed).normal(3, 1, (H, D)))
        model = self.estimator(**settings)
        for _ in range(1 if method == "fit" else 2):
            getattr(model, method)(X, sample_weight=weights)
        return model

    def __str__(self) -> str:
        batch = f"-{self.settings['batch_size']}" if "batch_size" in self.settings else ""
        return self.estimator.__name__ + batch


PLAIN, NETWORK = {"annealing": None}, {"temperature": 4.0, "n_init": 2}
CASES = [
    Weighted(multicause.MaximalCauses, COUNTS, PLAIN | {"noise": "poisson"}),
    Weighted(multicause.LinearCauses, IMAGES, PLAIN),
    Weighted(multicause.NonnegativeCauses, IMAGES, PLAIN),
    Weighted(multicause.RestrictedMaximalCauses, COUNTS, PLAIN),
    Weighted(multicause.SoftmaxNetwork, COUNTS, NETWORK),
    Weighted(multicause.MixtureOfGaussians, IMAGES),
    Weighted(multicause.MixtureOfPoissons, COUNTS),
    Weighted(multicause.KMeans, IMAGES),
    Weighted(multicause.FactorAnalysis, IMAGES),
    Weighted(multicause.PrincipalComponents, IMAGES),
    *(
        Weighted(multicause.SparseCoding, IMAGES, {"tol": 0.0, "posterior": PRECISE, "batch_size": size})
        for size in (1, 7, 200)
    ),
    Weighted(multicause.IndependentComponents, IMAGES, {"n_components": None}, init=False),
    Weighted(multicause.SpikeAndSlabCauses, IMAGES, PLAIN),
    *(Weighted(multicause.TruncatedAutoencoder, IMAGES, {"batch_size": size}, init=False) for size in (7, 200)),
    Weighted(multicause.NoisyOrCauses, binary, PLAIN, init=False),
    *(Weighted(multicause.HelmholtzMachine, binary, {"tol": 0.0, "batch_size": size}) for size in (1, 7)),
    *(
        Weighted(
            multicause.EnergyComponents,
            IMAGES,
            {"n_components": None, "sampler": Metropolis(), "batch_size": size, "max_iter": 8},
            init=False,
        )
        for size in (1, 7)
    ),
]


def test_every_estimator_is_here():
    estimators = {name for name in multicause.__all__ if isinstance(getattr(multicause, name), type)}
    # A user's own model has other parameters, and a test of its own below.
    assert {case.estimator.__name__ for case in CASES} == estimators - {"OwnCauses"}


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_weight_is_a_number_of_repetitions(case, method, seed):
    X = case.data(seed, 30)
    counts = np.random.RandomState(seed).permutation(np.arange(30) % 4)  # zero to three
    weighted = case.fit(method, seed, X, counts)
    repeated = case.fit(method, seed, np.repeat(X, counts, axis=0))
    scale = np.abs(repeated.components_).max()
    np.testing.assert_allclose(weighted.components_, repeated.components_, rtol=1e-7, atol=1e-8 * scale)
    np.testing.assert_allclose(weighted.lower_bounds_, repeated.lower_bounds_, rtol=1e-7)
    np.testing.assert_allclose(weighted.transform(X), repeated.transform(X), rtol=1e-6, atol=1e-7)
    expected = np.average(weighted.score_samples(X), weights=counts)
    assert weighted.score(X, sample_weight=counts) == pytest.approx(expected, rel=1e-12)
    assert weighted.score(np.repeat(X, counts, axis=0)) == pytest.approx(expected, rel=1e-9)
    unweighted = case.fit(method, seed, X)
    assert not np.allclose(unweighted.components_, weighted.components_, rtol=1e-3, atol=1e-3 * scale)


@pytest.mark.parametrize("batch_size", [1, 7, 200])
def test_a_weight_is_a_number_of_repetitions_in_a_users_own_model(batch_size, seed):
    """With three causes all states are considered, so that those of a row do not depend on how often it was shown."""

    def log_joint(parameters, states, rows):
        return -jnp.sum((rows[:, None] - states @ parameters["components"]) ** 2, axis=-1)

    def initialize(X, n_components, random):
        return {"components": np.random.RandomState(seed).normal(3, 1, (n_components, D))}

    def fit(X, weights=None):
        model = multicause.OwnCauses(log_joint, initialize, H, max_iter=3, batch_size=batch_size, random_state=seed)
        return model.fit(X, sample_weight=weights)

    X = IMAGES(seed, 30)
    counts = np.random.RandomState(seed).permutation(np.arange(30) % 4)
    weighted, repeated, unweighted = fit(X, counts), fit(np.repeat(X, counts, axis=0)), fit(X)
    components = [model.parameters_["components"] for model in (weighted, repeated, unweighted)]
    np.testing.assert_allclose(components[0], components[1], rtol=1e-7)
    np.testing.assert_allclose(weighted.lower_bounds_, repeated.lower_bounds_, rtol=1e-7)
    assert not np.allclose(components[0], components[2], rtol=1e-3)
    expected = np.average(weighted.score_samples(X), weights=counts)
    assert weighted.score(X, sample_weight=counts) == pytest.approx(expected, rel=1e-12)


def test_a_pass_shows_each_row_as_often_as_its_weight_says(seed):
    """The number of times is rounded up or down, and right on average.

    Over 2000 passes each frequency has a standard error below 0.5/√2000; five of them in 200 comparisons are a false
    alarm in one of ten thousand seeds.
    """
    random = np.random.default_rng(seed)
    for weights in (random.uniform(0, 3, 40), random.exponential(0.02, 40), 50.0 * random.uniform(1, 3, 40)):
        expected = repetitions(weights)
        np.testing.assert_allclose(expected / weights, expected[0] / weights[0])
        passes = [np.bincount(rows_to_show(expected, random), minlength=40) for _ in range(2000)]
        assert {shown.sum() for shown in passes} == {round(expected.sum())}
        assert (np.abs(np.array(passes) - expected) < 1).all()
        assert (np.abs(np.mean(passes, axis=0) - expected) < 5 * 0.5 / np.sqrt(2000)).all()


@pytest.mark.parametrize(
    ("weights", "total"),
    [
        ([1.0, 1.0, 1.0], 3),
        ([0.0, 2.0, 3.0], 5),  # whole numbers: repetitions
        ([0.1, 0.1, 0.1], 3),  # shares: as many rows as there are
        ([0.0, 0.5, 0.5], 2),
        ([1e6, 1e6, 1e6], 3 * MOST_REPETITIONS),  # so large that a pass would never end
    ],
)
def test_how_many_rows_a_pass_shows(weights, total, seed):
    expected = repetitions(np.array(weights, dtype=np.float32))
    assert len(rows_to_show(expected, np.random.default_rng(seed))) == total
    assert expected.sum() == pytest.approx(total)
