"""A user's own model, given by its log joint alone."""

import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.utils.estimator_checks import check_estimator

from multicause import LinearCauses, OwnCauses
from multicause.datasets import make_bars

BARS = make_bars(200, size=3, combination="sum", noise="gaussian", random_state=0)


def linear(parameters, states, rows):
    """The log joint of linear causes with Gaussian noise."""
    odds, sigma = parameters["log_odds"], jnp.exp(parameters["log_sigma"])
    errors = (rows[:, None] - states @ parameters["components"]) / sigma
    prior = states @ odds - jnp.logaddexp(0, odds).sum()
    normalizer = rows.shape[1] * (jnp.log(sigma) + 0.5 * jnp.log(2 * jnp.pi))
    return prior - 0.5 * jnp.sum(errors**2, axis=-1) - normalizer


def initialize(X, n_components, random):
    components = X.std() * random.normal(1, 0.5, (n_components, X.shape[1]))
    return {"components": components, "log_odds": np.full(n_components, -0.5), "log_sigma": np.log(X.std() / 2 + 1e-3)}


class Given:
    """The parameters of a fitted model."""

    def __init__(self, model):
        self.model = model

    def __call__(self, X, n_components, random):
        odds = np.log(self.model.activity_ / (1 - self.model.activity_))
        sigma = 0.5 * np.log(self.model.noise_variance_)
        return {"components": self.model.components_, "log_odds": odds, "log_sigma": sigma}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_it_agrees_with_linear_causes():
    start = BARS.causes * 0.8 + 0.5
    exact = LinearCauses(6, init=start, annealing=None, max_iter=300).fit(BARS.data)
    settings = {"max_iter": 1, "learning_rate": 1e-9, "random_state": 0}
    same = OwnCauses(linear, Given(exact), 6, **settings).fit(BARS.data)
    np.testing.assert_allclose(same.score_samples(BARS.data), exact.score_samples(BARS.data), rtol=1e-5)
    np.testing.assert_allclose(same.transform(BARS.data), exact.transform(BARS.data), atol=1e-4)
    np.testing.assert_array_equal(same.recognize(BARS.data, 1).states, exact.recognize(BARS.data, 1).states)

    class Start(Given):
        def __call__(self, X, n_components, random):
            return super().__call__(X, n_components, random) | {"components": start, "log_sigma": np.log(4.0)}

    learned = OwnCauses(linear, Start(exact), 6, max_iter=250, tol=0, batch_size=200, random_state=0).fit(BARS.data)
    assert learned.score(BARS.data) == pytest.approx(exact.score(BARS.data), abs=0.02)
    np.testing.assert_allclose(learned.parameters_["components"], exact.components_, atol=0.3)
    assert learned.lower_bounds_[-1] > learned.lower_bounds_[0]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_few_states_give_a_lower_bound_and_weights_count():
    settings = {"max_iter": 3, "random_state": 0}
    every, few = (OwnCauses(linear, initialize, 6, population=k, **settings).fit(BARS.data) for k in (64, 12))
    few.parameters_ = every.parameters_
    assert (few.score_samples(BARS.data) <= every.score_samples(BARS.data) + 1e-9).all()
    half = np.arange(200) < 100
    weighted = OwnCauses(linear, initialize, 6, batch_size=200, **settings).fit(BARS.data, sample_weight=half)
    assert weighted.score(BARS.data[half]) > every.score(BARS.data[half]) - 5


class Forgetful:
    """A function that is not pure."""

    calls = 0

    def __call__(self, parameters, states, rows):
        self.calls += 1
        return linear(parameters, states, rows) + self.calls


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda p, s, y: linear(p, s, y).T, r"here \(8, 3\); got \(3, 8\)"),
        (lambda p, s, y: linear(p, s, y) * jnp.nan, "without NaN"),
        (lambda p, s, y: 1 / 0, "it failed with ZeroDivisionError"),
        (lambda p, s, y: linear(p, s, y) - linear(p, s, y).mean(), "for each state and row on its own"),
        (lambda p, s, y: linear(p, s, y) + jnp.sqrt(0 * p["log_sigma"] ** 2), "whose gradient is finite"),
        (lambda p, s, y: jnp.asarray(np.array(linear(p, s, y))), "compiled and differentiated"),
        (Forgetful(), "two calls differed"),
    ],
    ids=["shape", "nan", "raises", "mixes rows", "gradient", "numpy", "impure"],
)
def test_the_function_is_tried_before_learning_begins(function, message):
    with pytest.raises(ValueError, match=message):
        OwnCauses(function, initialize, 6).fit(BARS.data)


@pytest.mark.filterwarnings("ignore")
def test_scikit_learns_own_checks():
    model = OwnCauses(linear, initialize, 2, max_iter=2, population=4, n_generations=1, random_state=0)
    results = check_estimator(model, on_skip=None, on_fail=None)
    failed = {r["check_name"] for r in results if r["status"] == "failed"}
    # The initial parameters of this model depend on the rows, but not on their weights.
    assert failed <= {"check_sample_weight_equivalence_on_dense_data"}
