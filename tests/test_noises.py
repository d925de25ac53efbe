"""Noises by themselves: what is drawn has the moments that it should have."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from multicause.arrays import double_precision
from multicause.noises import Poisson
from multicause.noises.poisson import NEARLY_NORMAL


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("rate", [3.0, 2e7, 0.99 * NEARLY_NORMAL, 1e12, 2.6e20, 1e30])
def test_counts_of_any_rate_have_their_mean_and_variance(rate, dtype, seed):
    """20,000 draws: a mean within 5 standard errors, a variance within 5 of its own, false alarm below 1e-4 in all.

    The rounding of large counts in their dtype adds to both.
    """
    n = 20_000
    with double_precision():
        mean = jnp.full((n,), rate, dtype)
        drawn = np.asarray(Poisson().sample(jax.random.key(seed), mean, {}))
    assert drawn.dtype == dtype
    drawn, rate, rounding = drawn.astype(float), float(mean[0]), float(np.finfo(dtype).eps) * rate
    assert (drawn == np.rint(drawn)).all()
    assert abs(drawn.mean() - rate) < 5 * np.sqrt(rate / n) + rounding
    error = 5 * np.sqrt((2 * rate**2 + rate) / n)
    assert abs(drawn.var() - rate) < error + rounding**2 + 2 * rounding * np.sqrt(rate)
