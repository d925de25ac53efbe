"""Bad input: the text of each error says what was expected, what came, and what to do."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from multicause import LinearCauses, MaximalCauses
from multicause.combinations import Maximum
from multicause.engines import Local
from multicause.noises import Gaussian, Poisson
from multicause.parts import Part
from multicause.posteriors import Exact
from multicause.priors import Bernoulli

X = np.random.RandomState(0).poisson(3, (20, 4)).astype(float)
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def broken(row, column, value):
    Y = X.copy()
    Y[row, column] = value
    return Y


@pytest.mark.parametrize("estimator", [MaximalCauses, LinearCauses])
@pytest.mark.parametrize(
    ("data", "text"),
    [
        (broken(3, 1, np.inf), "Input X contains infinity"),
        (X[:1], "1 sample.* while a minimum of 2 is required"),
        (X[0], "Expected 2D array, got 1D array instead"),
        (np.zeros((20, 4)), r"All values of X are equal \(0\).*at least two different values"),
        (np.full((20, 4), 7.5), r"All values of X are equal \(7.5\)"),
        (X * 1e200, "The largest value of X, .*e.200, is too large to be squared in float64. Scale X down"),
        (X.astype(str).astype(object) + "a", "could not convert string to float"),
        (np.empty((0, 4)), "0 sample"),
        (np.empty((5, 0)), "0 feature"),
    ],
)
def test_data(estimator, data, text):
    with pytest.raises(ValueError, match=text):
        estimator(2, max_iter=2).fit(data)


@pytest.mark.parametrize("estimator", [MaximalCauses, LinearCauses])
def test_negative_counts(estimator):
    text = "Poisson noise needs values of at least 0, and the smallest is -0.5. Shift the data, or use Gaussian noise"
    with pytest.raises(ValueError, match=text):
        estimator(2, noise="poisson").fit(broken(0, 0, -0.5))
    model = estimator(2, noise="poisson", max_iter=2, random_state=0).fit(X)
    for method in (model.transform, model.score_samples, model.reconstruct, model.recognize, model.partial_fit):
        with pytest.raises(ValueError, match=text):
            method(broken(0, 0, -0.5))


def test_constant_columns_are_learned_like_others():
    """A black or white border is no error: its weights are what the data says."""
    Y = np.column_stack([X, np.zeros(20), np.full(20, 4.0)])
    model = LinearCauses(2, random_state=0).fit(Y)
    assert np.isfinite(model.components_).all()
    np.testing.assert_allclose(model.reconstruct(Y)[:, 4], 0, atol=1e-6)


@pytest.mark.parametrize(
    ("settings", "error", "text"),
    [
        ({"n_components": 0}, ValueError, r"'n_components' parameter .* must be an int in the range \[1, inf\). Got 0"),
        ({"n_components": -3}, ValueError, "Got -3"),
        ({"n_components": 2.5}, ValueError, "must be an int"),
        (
            {"n_components": 20, "posterior": "exact"},
            ValueError,
            r"20 causes has 2\^20 = 1,048,576 states, more than max_states=65,536. Use "
            r"n_components of at most 16, .*posterior=Exact\(max_states=...\)",
        ),
        (
            {"noise": "laplace"},
            ValueError,
            "Unknown noise 'laplace'. Known: 'gaussian', 'diagonal_gaussian', 'poisson', 'bernoulli', 'leaky",
        ),
        ({"noise": Gaussian}, ValueError, "'noise' parameter"),
        ({"posterior": "mean_field"}, ValueError, "Unknown posterior 'mean_field'. Known: 'exact'"),
        ({"prior": "gauss"}, ValueError, "Unknown prior 'gauss'. Known: 'bernoulli'"),
        ({"update": "newton"}, ValueError, "Unknown update 'newton'. Known: 'coordinates'"),
        (
            {"update": "least_squares"},
            ValueError,
            r"update LeastSquares\(\) needs a sum of causes, but combination Maximum\(\) has a maximum of causes. With "
            r"the other parts as they are, use one of these: update=CreditMean\(\) or Gradient\(\)\.$",
        ),
        ({"annealing": "slow"}, ValueError, "'annealing' parameter .*'auto'"),
        ({"learn": ("components", "sigma")}, ValueError, r"learn must be a tuple of names from \('components', "),
        ({"learn": "components"}, ValueError, r"A tuple of one name is written \('components',\)"),
        ({"activity": 1.5}, ValueError, r"strictly between 0 and 1|\(0, 1\)|activity"),
        ({"activity": [0.1, 0.2, 0.3]}, ValueError, r"one number or one per cause, shape \(2,\); got shape \(3,\)"),
        ({"activity": [0.1, np.nan]}, ValueError, "activity must lie strictly between 0 and 1"),
        ({"activity": [0.1, 0.2], "prior": Bernoulli(shared=True)}, ValueError, "one activity for all causes"),
        ({"noise_scale": -1.0}, ValueError, "'noise_scale' parameter .* must be a float in the range"),
        ({"noise_scale": 1.0, "noise": "poisson"}, ValueError, "Poisson noise has no scale, but noise_scale=1.0"),
        ({"init": "pca"}, ValueError, "Unknown init 'pca'. Known: 'random', 'mean', 'data', an array, or an estimator"),
        ({"init": np.ones((3, 4))}, ValueError, r"\(n_components, n_features\) = \(2, 4\); got \(3, 4\)"),
        ({"init": np.full((2, 4), np.nan)}, ValueError, "init must be finite"),
        (
            {"init": -np.ones((2, 4))},
            ValueError,
            r"init must have values between 0 and inf, as components of Maximum\(\) have; .*between -1 and -1",
        ),
        ({"max_iter": 0}, ValueError, "'max_iter' parameter"),
        ({"tol": -1.0}, ValueError, "'tol' parameter"),
        ({"n_init": 0}, ValueError, "'n_init' parameter"),
        ({"engine": "gpu"}, ValueError, "'engine' parameter"),
        ({"engine": Local(memory_budget="lots")}, ValueError, "memory size must be .* '512MiB' or '2GB'; got 'lots'"),
        ({"engine": Local(memory_budget=10)}, ValueError, r"needs at least [\d,]+ bytes .*budget of 10. Raise it"),
    ],
)
def test_settings(settings, error, text):
    with pytest.raises(error, match=text):
        MaximalCauses(**({"n_components": 2, "max_iter": 2} | settings)).fit(X)


@pytest.mark.parametrize(
    ("weights", "text"),
    [
        (-np.ones(20), "Negative values in data passed to `sample_weight`"),
        (np.zeros(20), "Sample weights must contain at least one non-zero number"),
        (np.ones(7), r"sample_weight.shape == \(7,\), expected \(20,\)"),
        (np.full(20, np.nan), "NaN"),
    ],
)
def test_weights(weights, text):
    with pytest.raises(ValueError, match=text):
        MaximalCauses(2).fit(X, sample_weight=weights)


@pytest.mark.parametrize(
    "method", ["transform", "score", "score_samples", "reconstruct", "recognize", "inverse_transform"]
)
def test_before_fit(method):
    with pytest.raises(NotFittedError, match="not fitted yet"):
        getattr(MaximalCauses(2), method)(X)


def test_before_fit_without_data(tmp_path):
    with pytest.raises(NotFittedError):
        MaximalCauses(2).sample(3)
    with pytest.raises(NotFittedError):
        MaximalCauses(2).save(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_after_fit():
    model = MaximalCauses(2, max_iter=2, random_state=0).fit(X)
    with pytest.raises(ValueError, match="X has 3 features, but MaximalCauses is expecting 4 features"):
        model.transform(X[:, :3])
    with pytest.raises(ValueError, match="X has 3 features, but MaximalCauses is expecting 4 features"):
        model.partial_fit(X[:, :3])
    with pytest.raises(ValueError, match=r"shape \(n_samples, 2\), one column per cause; got \(5, 3\)"):
        model.inverse_transform(np.ones((5, 3)))
    with pytest.raises(ValueError, match="finite"):
        model.inverse_transform([[np.nan, 1.0]])
    with pytest.raises(ValueError, match="top must be a positive number of states, or None for all; got 0"):
        model.recognize(X, top=0)
    with pytest.raises(ValueError, match="n_samples must be a whole number of at least 1; got 0"):
        model.sample(0)


def test_parts_must_be_hashable_and_of_their_kind():
    with pytest.raises(TypeError, match="must be hashable .* Use a tuple instead of a list"):
        hash(Exact(max_states=[1, 2]))
    with pytest.raises(ValueError, match="'posterior' parameter"):
        MaximalCauses(2, posterior=Poisson()).fit(X)
    assert Exact() == Exact(max_states=2**16)
    assert Exact() != Exact(max_states=4)
    assert Maximum() != Bernoulli()
    assert isinstance(Exact(), Part)
