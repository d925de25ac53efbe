"""Updates of contrastive divergence: in NumPy, and their persistent chains."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from multicause import EnergyComponents
from multicause.arrays import double_precision
from multicause.energies import Energy, Logistic
from multicause.samplers import Hamiltonian
from multicause.solvers.contrastive_divergence import (
    EnergyBatches,
    Method,
    Rates,
    UpdateState,
    first_state,
    learn_round,
    with_chains,
)
from tests.solvers.mixtures import mixture

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def test_momentum_and_decay_against_plain_numpy():
    """All rows in every update: v ← m v − η (g + λ W), W ← W + v with g of EBM01 eq. 6, and a linear schedule."""
    X = mixture(200)[0]
    settings = {"sampler": "exact", "batch_size": None, "whiten": "zca", "max_iter": 30, "init": np.eye(4)}
    model = EnergyComponents(weight_decay=0.1, momentum=0.7, learning_rate=0.2, **settings).fit(X)
    Z = (X - X.mean(axis=0)) @ model._problem.whitening.matrix.T
    W, velocity = model._problem.whitening.inverse.copy(), 0.0
    for rate in np.linspace(0.2, 0.002, 30):
        slope = np.tanh(Z @ W.T / 2).T @ Z / len(Z) - np.linalg.inv(W).T
        velocity = 0.7 * velocity - rate * (slope + 0.1 * W)
        W = W + velocity
    np.testing.assert_allclose(model.whitened_components_, W, rtol=1e-8, atol=1e-10)


def test_persistent_chains_of_a_stream_follow_the_size_of_its_batches():
    model = EnergyComponents(sampler="metropolis", persistent=True, batch_size=None, max_iter=20, random_state=0)
    for n in (60, 100):
        chains = model.partial_fit(mixture(n)[0])._problem.updates.chains
        assert chains.shape == (n, 4)
        assert np.isfinite(chains).all()
    assert model.n_iter_ == 2


@pytest.mark.parametrize("n_chains", [2, 3, 5])
def test_further_chains_start_at_the_data_and_surplus_ones_are_dropped(n_chains):
    """NaN marks chains that have not begun."""
    chains = np.arange(6.0).reshape(3, 2)
    updates = UpdateState(None, (), None, chains, None, None, None)
    found = with_chains(updates, n_chains).chains
    assert found.shape == (n_chains, 2)
    np.testing.assert_array_equal(found[:3], chains[:n_chains])
    assert np.isnan(found[3:]).all()
    without = updates._replace(chains=chains[:0])
    assert with_chains(without, n_chains) is without


@pytest.mark.parametrize("n_batches", [1, 3], ids=["one batch for all", "one for each"])
def test_a_round_of_updates_is_the_same_as_rounds_of_one(n_batches):
    """Each update has random numbers of its own, whether they are drawn at once or not."""
    with double_precision():
        method = Method(Energy(Logistic()), Hamiltonian(3))
        parameters = method.energy.initial(jnp.eye(4), (), 1.0, jax.random.key(0))
        rows, shares = np.random.RandomState(0).normal(size=(n_batches, 20, 4)), np.full(20, 0.05)
        whitening, rates = (np.zeros(4), np.eye(4)), Rates(0.1, 0.1, 10, 0.0)
        seed = np.asarray(jax.random.key_data(jax.random.key(1)))

        def learned(updates, batches, n):
            return learn_round(method, updates, EnergyBatches(batches, shares), whitening, rates, np.asarray(n), seed)[
                0
            ]

        first = apart = first_state(method, parameters, 20)
        together = learned(first, rows, 3)
        for number in range(3):
            apart = learned(apart, rows[[number % n_batches]], 1)
    np.testing.assert_allclose(together.parameters.filters, apart.parameters.filters, rtol=1e-5)
    assert not np.allclose(together.parameters.filters, first.parameters.filters, rtol=1e-3)
