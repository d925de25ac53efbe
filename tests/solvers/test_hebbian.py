"""One presentation of a Hebbian network: its responses, and programs that are shared."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from multicause import SoftmaxNetwork
from multicause.arrays import double_precision
from multicause.datasets import make_bars
from multicause.solvers import hebbian
from tests.oracles import truncation as oracle

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
H, D = 4, 9


def test_responses_are_the_generalized_softmax(seed):
    random = np.random.RandomState(seed)
    W, Y = random.uniform(0.1, 3, (H, D)), random.poisson(2, (6, D)).astype(float)
    for tempered in (True, False):
        with double_precision():
            log_odds = jnp.log(0.3 / 0.7) / (2.5 if tempered else 1)
            found = np.asarray(hebbian.responses(jnp.asarray(W), jnp.asarray(Y), jnp.asarray(2.5), log_odds))
        expected = [oracle.responses(y, W, 0.3, 2.5, tempered) for y in Y]
        np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_a_long_fit_compiles_once():
    """The presentation loop is one program: a second fit traces nothing again."""
    rows = make_bars(60, random_state=0).data
    SoftmaxNetwork(4, temperature=5.0, max_iter=2, random_state=0).fit(rows)
    before = hebbian.epoch._cache_size()
    SoftmaxNetwork(4, temperature=7.0, learning_rate=0.5, max_iter=3, random_state=1).fit(rows)
    assert hebbian.epoch._cache_size() == before
    assert jax.config.jax_enable_x64 is False
