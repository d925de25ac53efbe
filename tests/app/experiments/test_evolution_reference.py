"""Published evolution in NumPy: exact if all states are kept, and never worse than before."""

import numpy as np
import pytest
from scipy import stats

from multicause.app.experiments.evolution_reference import SparseCode, evolved_bounds
from multicause.app.experiments.peers_evolved import bounds_of_sums

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
RANDOM = np.random.RandomState(0)
MODEL = SparseCode(RANDOM.normal(size=(4, 6)), 0.3, 0.7)
X = RANDOM.normal(size=(5, 6))


def test_with_all_states_the_bound_becomes_the_log_evidence():
    states = (np.arange(16)[:, None] >> np.arange(4)) & 1
    prior = np.prod(np.where(states, 0.3, 0.7), axis=1)
    evidence = [
        np.log(prior @ [stats.norm.pdf(row, state @ MODEL.components, 0.7).prod() for state in states]) for row in X
    ]
    bounds = evolved_bounds(MODEL, X, n_states=16, n_parents=4, n_children=4, n_iter=40, seed=0)
    np.testing.assert_allclose(bounds[-1], np.mean(evidence), rtol=1e-12)


def test_bounds_never_fall():
    bounds = evolved_bounds(MODEL, X, n_states=3, n_parents=2, n_children=2, n_iter=20, seed=0)
    assert np.diff(bounds).min() >= -1e-12
    assert bounds[-1] > bounds[0]


def test_an_iteration_here_is_better_than_many_published_ones():
    found, published = bounds_of_sums(n_rows=20)
    assert found > published
