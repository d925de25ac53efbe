"""Truncated variational autoencoder: its log joint and updates in NumPy, and what a network learns beyond sums."""

import signal

import numpy as np
import pytest
from scipy.special import logsumexp
from sklearn.base import clone

from multicause import LinearCauses, TruncatedAutoencoder
from multicause.datasets import make_bars

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
H, D = 2, 6
STATES = np.arange(2**H)[:, None] >> np.arange(H) & 1


def interacting(seed=0):
    """Two causes that together make something else than their sum."""
    random = np.random.RandomState(seed)
    both = random.randint(0, 4, 600)
    means = 5 * np.eye(4, 3, k=-1).repeat(2, axis=1)[both]
    return means + 0.3 * random.normal(size=means.shape), means


X, MEANS = interacting()


@pytest.fixture(scope="module")
def model():
    settings = {"learning_rate": 0.05, "max_iter": 100, "batch_size": 50, "tol": 0}
    return TruncatedAutoencoder(H, layers=(16,), random_state=1, **settings).fit(X)


def decoded(parameters, states):
    """The network's output in NumPy."""
    *hidden, last = zip(parameters["weights"], parameters["biases"], strict=True)
    for weight, bias in hidden:
        inputs = states @ weight + bias
        states = np.where(inputs > 0, inputs, 0.01 * inputs)
    return states @ last[0] + last[1]


def log_joint(parameters, rows):
    """log p(s, y) of all states, of observed values alone: (n, 2^H)."""
    odds, variance = parameters["log_odds"], np.exp(parameters["log_variance"])
    errors = rows[:, None] - decoded(parameters, STATES)
    terms = -0.5 * (errors**2 / variance + np.log(2 * np.pi * variance))
    return STATES @ odds - np.log1p(np.exp(odds)).sum() + np.nansum(terms, axis=-1)


@pytest.mark.parametrize("share", [0.0, 0.3])
def test_it_agrees_with_the_equations(model, share):
    rows = np.where(np.random.RandomState(1).uniform(size=(40, D)) < share, np.nan, X[:40])
    joint = log_joint(model.parameters_, rows)
    evidence = logsumexp(joint, axis=1)
    probabilities = np.exp(joint - evidence[:, None])
    np.testing.assert_allclose(model.score_samples(rows), evidence, rtol=1e-9)
    np.testing.assert_allclose(model.transform(rows), probabilities @ STATES, atol=1e-9)
    means = probabilities @ decoded(model.parameters_, STATES)
    np.testing.assert_allclose(model.reconstruct(rows), means, atol=1e-9)
    np.testing.assert_allclose(model.impute(rows), np.where(np.isnan(rows), means, rows), atol=1e-9)
    best = model.recognize(rows, 1)
    np.testing.assert_array_equal(best.states[:, 0], STATES[joint.argmax(axis=1)])


def test_prior_and_noise_are_those_of_the_last_pass():
    """Without steps of the network, they are the fixed point of EM for given means, approached from pass to pass."""
    missing = np.where(np.random.RandomState(1).uniform(size=X.shape) < 0.2, np.nan, X)
    settings = {"learning_rate": 1e-12, "tol": 0, "batch_size": 70, "random_state": 0}
    before, after = (TruncatedAutoencoder(H, max_iter=k, **settings).fit(missing) for k in (3, 4))
    joint = log_joint(before.parameters_, missing)
    probabilities = np.exp(joint - logsumexp(joint, axis=1, keepdims=True))
    np.testing.assert_allclose(after.activity_, (probabilities @ STATES).mean(axis=0), rtol=1e-6)
    errors = np.nansum((missing[:, None] - decoded(before.parameters_, STATES)) ** 2, axis=-1)
    expected = (probabilities * errors).sum() / np.isfinite(missing).sum()
    assert after.noise_variance_ == pytest.approx(expected, rel=1e-6)
    assert after.lower_bound_ == pytest.approx(logsumexp(joint, axis=1).mean(), rel=1e-6)


def test_a_linear_decoder_is_the_linear_model():
    linear = LinearCauses(H, random_state=0, max_iter=30).fit(X)
    same = TruncatedAutoencoder(H, layers=(), max_iter=1, random_state=0).fit(X)
    parameters = {
        "weights": (linear.components_,),
        "biases": (np.zeros(D),),
        "log_variance": np.log(linear.noise_variance_),
    }
    same.parameters_ |= parameters | {"log_odds": np.log(linear.activity_ / (1 - linear.activity_))}
    np.testing.assert_allclose(same.score_samples(X), linear.score_samples(X), rtol=1e-9)
    np.testing.assert_allclose(same.reconstruct(X), linear.reconstruct(X), atol=1e-9)


def test_a_network_learns_how_causes_interact(model):
    linear = LinearCauses(H, random_state=0).fit(X)
    held_out, means = interacting(seed=1)
    assert model.score(held_out) > linear.score(held_out) + 5
    # The noise has a standard deviation of 0.3.
    assert model.noise_variance_ == pytest.approx(0.09, rel=0.1)
    assert np.abs(model.reconstruct(held_out) - means).mean() < 0.1
    np.testing.assert_allclose(
        model.components_, model.inverse_transform(np.eye(H)) - model.inverse_transform([[0] * H])
    )


def test_samples_have_the_moments_of_the_model(model):
    """Means of 20,000 rows lie within five standard errors, for each of eight numbers: no false alarm in 10⁵ runs."""
    rows, causes = model.sample(20_000, random_state=0)
    error = np.sqrt(model.activity_ * (1 - model.activity_) / len(rows))
    assert (np.abs(causes.mean(axis=0) - model.activity_) < 5 * error).all()
    noise = rows - model.inverse_transform(causes)
    assert (np.abs(noise.mean(axis=0)) < 5 * np.sqrt(model.noise_variance_ / len(rows))).all()
    assert noise.var() == pytest.approx(model.noise_variance_, rel=0.03)


def test_a_stream_is_learned_batch_by_batch():
    model = TruncatedAutoencoder(H, batch_size=50, learning_rate=0.05, random_state=0)
    for batch in np.split(X, 6) * 8:
        model.partial_fit(batch)
    assert model.n_iter_ == 48
    assert model.lower_bounds_[-6:].mean() > model.lower_bounds_[:6].mean() + 0.5


def test_wrong_settings_are_refused():
    with pytest.raises(ValueError, match=r"layers must be a tuple of numbers of hidden units, .* got \(4, 0\)"):
        TruncatedAutoencoder(H, layers=(4, 0)).fit(X)
    with pytest.raises(TypeError, match=r"posterior of TruncatedAutoencoder must be 'beam' or 'evolved'"):
        TruncatedAutoencoder(H, posterior="exact").fit(X)
    with pytest.raises(ValueError, match=r"Causes must have shape \(n_samples, 2\)"):
        TruncatedAutoencoder(H, max_iter=1).fit(X).inverse_transform(np.ones((2, 3)))


def test_ctrl_c_while_the_linear_model_is_learned_ends_the_fit_with_a_model(monkeypatch):
    learn = LinearCauses.fit

    def interrupted(*given, **settings):
        signal.raise_signal(signal.SIGINT)
        return learn(*given, **settings)

    monkeypatch.setattr(LinearCauses, "fit", interrupted)
    model = TruncatedAutoencoder(H, init="linear", max_iter=30, random_state=0)
    # A shell that starts tests in the background has them ignore Ctrl-C.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            clone(model).partial_fit(X)
        model.fit(X)
    finally:
        signal.signal(signal.SIGINT, before)
    assert model.outcome_ == "stopped"
    assert model.n_iter_ <= 1
    assert np.isfinite(model.score(X))


def test_a_network_that_begins_as_linear_causes_keeps_their_fit_and_improves_the_bound():
    bars = make_bars(200, size=3, combination="sum", noise="gaussian", noise_scale=2.0, random_state=0)
    settings = {"n_components": 6, "random_state": 0}
    model = TruncatedAutoencoder(**settings, init="linear", learning_rate=0.005, max_iter=20).fit(bars.data)
    linear = LinearCauses(**settings).fit(bars.data - bars.data.mean(axis=0))
    assert model.score(bars.data) > linear.score(bars.data - bars.data.mean(axis=0))
    with pytest.raises(ValueError, match=r"init='linear' needs layers of at least one unit for each of the 6 causes"):
        TruncatedAutoencoder(**settings, init="linear", layers=(12, 2)).fit(bars.data)
    with pytest.raises(ValueError, match="init"):
        TruncatedAutoencoder(init="random").fit(bars.data)
