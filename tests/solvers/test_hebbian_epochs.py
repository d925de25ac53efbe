"""Epochs and streams of Hebbian learning: the delta rule, the schedule, and units that have not learned."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from multicause import SoftmaxNetwork, fit_trials
from multicause.annealing import LinearCooling
from multicause.datasets import make_bars
from tests.oracles import truncation as oracle

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
H, D = 4, 9


def test_a_stream_without_noise_is_the_delta_rule(seed):
    """In two batches, with a row of zeros that must not change anything."""
    random = np.random.RandomState(seed)
    W, Y = random.uniform(0.1, 3, (H, D)), random.poisson(2, (230, D)).astype(float)
    Y[7] = 0
    words = {"total": 12.0, "activity": 0.3, "temperature": 3.0, "learning_rate": 0.5, "component_noise": 0.0}
    network = SoftmaxNetwork(H, init=W, random_state=0, **words)
    network.partial_fit(Y[:120]).partial_fit(Y[120:])
    W = 12 * W / W.sum(axis=1, keepdims=True)
    W = oracle.hebbian(Y, W, 0.3, 3.0, 0.5)
    np.testing.assert_allclose(network.components_, W, rtol=1e-7, atol=1e-10)
    assert network.n_presentations_ == 230
    assert network.outcome_ == "max_iter"
    network.set_params(temperature=5.0, learning_rate=0.2).partial_fit(Y[120:])
    expected = oracle.hebbian(Y[120:], W, 0.3, 5.0, 0.2)
    np.testing.assert_allclose(network.components_, expected, rtol=1e-7, atol=1e-10)


def test_every_batch_of_a_stream_is_one_epoch_of_the_schedule(seed):
    """Also where batches differ in length: the temperature must not jump with the size of a batch."""
    random = np.random.RandomState(seed)
    W, Y = random.uniform(0.1, 3, (H, D)), random.poisson(2, (28, D)).astype(float)
    cooling = LinearCooling(6.0, n_iter=4, hold=0, settle=0)
    network = SoftmaxNetwork(
        H, init=W, total=12.0, activity=0.3, annealing=cooling, learning_rate=0.5, component_noise=0.0
    )
    temperatures = []
    for k, (first, last) in enumerate([(0, 20), (20, 24), (24, 28)]):
        network.partial_fit(Y[first:last])
        temperatures += [6 - 5 * (k + i / (last - first)) / 4 for i in range(last - first)]
    W = 12 * W / W.sum(axis=1, keepdims=True)
    expected = oracle.hebbian(Y, W, 0.3, np.array(temperatures), 0.5, tempered=True)
    np.testing.assert_allclose(network.components_, expected, rtol=1e-7, atol=1e-10)
    np.testing.assert_allclose(network.temperatures_, [4.75, 3.5, 2.25])
    assert network.n_iter_ == 3


@pytest.mark.filterwarnings("default::sklearn.exceptions.ConvergenceWarning")
def test_units_that_are_alike_are_no_success():
    """Of counts near zero Poisson noise shows nothing, and all units learn the mean row."""
    bars = make_bars(150, random_state=0)
    network = SoftmaxNetwork(10, n_init=1, hold=600, max_iter=20, random_state=0)
    with pytest.warns(ConvergenceWarning, match=r"copy of another.*at most 0\.0\d+ of them.*multiply X by a constant"):
        network.fit(bars.data * 0.01)
    assert network.outcome_ == "cause_died"
    assert network.converged_
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert network.set_params(temperature=8.0).fit(bars.data).outcome_ == "converged"


def test_units_whose_causes_never_come_alone_have_not_died():
    """All rows have all three causes. Two of them explain most of a row, so that pairs have no place for the third."""
    causes = np.zeros((3, 9))
    causes[0, :4], causes[1, 4:8], causes[2, [1, 2, 3, 8]] = [12, 9, 9, 9], [10, 10, 10, 9], [10, 10, 10, 9]
    X = np.repeat([causes.max(axis=0)], 12, axis=0)
    still = {"learning_rate": 1e-9, "component_noise": 0.0, "temperature": 1.0, "n_init": 1, "max_iter": 1}
    network = SoftmaxNetwork(3, init=causes, total=39.0, random_state=0, **still).fit(X)
    assert network._online.averages.prior["active"].min() < 1e-9
    assert (network.transform(X) > 0.9).all()
    assert network.outcome_ == "max_iter"
    copied = SoftmaxNetwork(3, init=causes[[0, 1, 1]] + [[0], [0], [0.1]], random_state=0, **still).fit(X)
    assert fit_trials(copied, [X])[0].outcome_ == copied.outcome_ == "cause_died"
