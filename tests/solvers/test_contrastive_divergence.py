"""Updates of contrastive divergence: in NumPy, and their persistent chains."""

import numpy as np
import pytest

from multicause import EnergyComponents
from multicause.solvers.contrastive_divergence import UpdateState, with_chains
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
