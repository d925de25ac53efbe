"""The log joint of a decoder network and its closed-form updates, in NumPy."""

import numpy as np
import pytest
from scipy import stats

from multicause.arrays import double_precision
from multicause.solvers.decoder_network import DecoderNetwork, NetworkSums, initial_parameters, sizes_of

RANDOM = np.random.RandomState(0)
X = RANDOM.normal(size=(6, 4))
WEIGHTS = np.array([1.0, 2, 0, 1, 1, 3])


@pytest.fixture(autouse=True)
def _in_double_precision():
    with double_precision():
        yield


def test_log_joint_of_observed_values():
    parameters = initial_parameters(X, WEIGHTS, (2, 3), RANDOM)
    parameters["log_odds"] = np.array([-1.0, 0.5])
    rows = X.copy()
    rows[0, 1] = np.nan
    states = RANDOM.randint(0, 2, (6, 5, 2)).astype(float)
    found = DecoderNetwork().log_joint(parameters, states, rows)
    hidden = states @ parameters["weights"][0] + parameters["biases"][0]
    means = np.where(hidden > 0, hidden, 0.01 * hidden) @ parameters["weights"][1] + parameters["biases"][1]
    sigma = np.exp(0.5 * parameters["log_variance"])
    prior = stats.bernoulli.logpmf(states, 1 / (1 + np.exp(-parameters["log_odds"]))).sum(axis=-1)
    expected = prior + np.nansum(stats.norm.logpdf(rows[:, None], means, sigma), axis=-1)
    np.testing.assert_allclose(found, expected)


def test_prior_and_noise_follow_from_sums():
    parameters = initial_parameters(X, WEIGHTS, (2, 3), RANDOM)
    solved = DecoderNetwork().solve(parameters, NetworkSums(np.array([2.0, 0.0]), 8.0, 6.0, 24.0))
    activity = 1 / (1 + np.exp(-np.asarray(solved["log_odds"])))
    np.testing.assert_allclose(activity, [0.25, 0.5 / 8])  # a cause that is never active keeps half a row
    assert np.exp(float(solved["log_variance"])) == pytest.approx(0.25)
    assert solved["weights"] is parameters["weights"]


def test_the_network_begins_with_the_mean_and_the_variance_of_weighted_rows():
    parameters = initial_parameters(X, WEIGHTS, (2, 3), np.random.RandomState(0))
    repeated = np.repeat(X, WEIGHTS.astype(int), axis=0)
    np.testing.assert_allclose(parameters["biases"][-1], repeated.mean(axis=0))
    assert np.exp(parameters["log_variance"]) == pytest.approx(repeated.var(axis=0).mean())
    assert [each.shape for each in parameters["weights"]] == [(2, 3), (3, 4)]
    sizes = sizes_of(parameters)
    assert sizes["weights"][1] == pytest.approx(np.sqrt(np.mean(parameters["weights"][1] ** 2)))
