"""A user's own model, given by its log joint alone."""

import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.utils.estimator_checks import check_estimator

from multicause import LinearCauses, OwnCauses, load
from multicause.app.report import write_report
from multicause.datasets import make_bars
from multicause.persistence import ModelFileError
from multicause.plotting import ComponentsDisplay
from multicause.posteriors import Beam, Evolved, Truncated
from multicause.solvers.optimizers import Optax

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


def observed(parameters, states, rows):
    """The log joint of observed values alone."""
    odds, sigma, missing = parameters["log_odds"], jnp.exp(parameters["log_sigma"]), jnp.isnan(rows)
    errors = jnp.where(missing, 0, rows)[:, None] - states @ parameters["components"]
    squares = jnp.sum(jnp.where(missing[:, None], 0, errors / sigma) ** 2, axis=-1)
    normalizer = jnp.sum(~missing, axis=-1) * (jnp.log(sigma) + 0.5 * jnp.log(2 * jnp.pi))
    return states @ odds - jnp.logaddexp(0, odds).sum() - 0.5 * squares - normalizer[:, None]


def incomplete(X, n_components, random):
    return initialize(np.nan_to_num(X), n_components, random)


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
    every, few = (OwnCauses(linear, initialize, 6, posterior=Evolved(k), **settings).fit(BARS.data) for k in (64, 12))
    few.parameters_ = every.parameters_
    assert (few.score_samples(BARS.data) <= every.score_samples(BARS.data) + 1e-9).all()
    half = np.arange(200) < 100
    weighted = OwnCauses(linear, initialize, 6, batch_size=200, **settings).fit(BARS.data, sample_weight=half)
    assert weighted.score(BARS.data[half]) > every.score(BARS.data[half]) - 5


@pytest.mark.filterwarnings("ignore")
def test_scikit_learns_own_checks(few_block_sizes):
    # Checks of models that accept missing values use some.
    model = OwnCauses(observed, incomplete, 2, max_iter=2, random_state=0)
    results = check_estimator(model, on_skip=None, on_fail=None)
    failed = {r["check_name"] for r in results if r["status"] == "failed"}
    # The initial parameters of this model depend on the rows, but not on their weights.
    assert failed <= {f"check_sample_weight_equivalence_on_{kind}_data" for kind in ("dense", "sparse")}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_missing_values_are_left_out_by_the_function():
    X = np.where(np.random.RandomState(0).uniform(size=BARS.data.shape) < 0.3, np.nan, BARS.data)
    exact = LinearCauses(6, init=BARS.causes * 0.8 + 0.5, annealing=None, max_iter=20).fit(X)
    settings = {"max_iter": 1, "learning_rate": 1e-9, "random_state": 0}
    same = OwnCauses(observed, Given(exact), 6, **settings).fit(X)
    np.testing.assert_allclose(same.score_samples(X), exact.score_samples(X), rtol=1e-5)
    with pytest.raises(ValueError, match="NaN for rows with missing values, which are NaN. Leave them out"):
        OwnCauses(linear, Given(exact), 6, **settings).fit(X)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_file_names_the_functions_and_does_not_run_them(tmp_path):
    model = OwnCauses(
        linear, initialize, 6, optimizer=Optax("rmsprop"), posterior=Beam(6, 20), max_iter=1, random_state=0
    )
    model.fit(BARS.data).save(tmp_path / "model")
    with pytest.raises(ModelFileError, match=r"uses the function '(linear|initialize)' .* which a file cannot hold"):
        load(tmp_path / "model")
    loaded = load(tmp_path / "model", parts=[linear, initialize])
    np.testing.assert_array_equal(loaded.score_samples(BARS.data), model.score_samples(BARS.data))

    def other(parameters, states, rows):
        return linear(parameters, states, rows)[:, 0]

    other.__module__, other.__qualname__ = linear.__module__, linear.__qualname__
    with pytest.raises(ModelFileError, match=r"the log joint of its parameters has shape \(1,\), not \(1, 2\)"):
        load(tmp_path / "model", parts=[other, initialize])
    nameless = OwnCauses(lambda p, s, y: linear(p, s, y), initialize, 6, max_iter=1, random_state=0).fit(BARS.data)
    with pytest.raises(TypeError, match="settings/log_joint cannot be saved: .* a lambda has none"):
        nameless.save(tmp_path / "model")


def test_a_report_needs_components(tmp_path):
    model = OwnCauses(linear, initialize, 6)
    model.parameters_ = initialize(BARS.data, 6, np.random.RandomState(0))
    with pytest.raises(TypeError, match="OwnCauses has none, because its parameters may mean anything"):
        write_report(model, BARS.data, tmp_path / "x.html")
    with pytest.raises(TypeError, match="A model with components is needed"):
        ComponentsDisplay.from_estimator(model)


def test_a_posterior_that_needs_more_than_a_log_joint_is_refused():
    with pytest.raises(TypeError, match=r"must be 'beam' or 'evolved', .* got Truncated\(.*With Evolved\(population\)"):
        OwnCauses(linear, initialize, 6, posterior=Truncated(2)).fit(BARS.data)


def test_the_function_is_tried_before_learning_begins():
    with pytest.raises(ValueError, match=r"here \(8, 6\); got \(6, 8\)"):
        OwnCauses(lambda *words: linear(*words).T, initialize, 6).fit(BARS.data)
