"""Noises by themselves: what is drawn has the distribution that it should have."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from multicause.arrays import double_precision
from multicause.noises import Poisson


def counts(rate, dtype, seed, n):
    with double_precision():
        drawn = np.asarray(Poisson().sample(jax.random.key(seed), jnp.full((n,), rate, dtype), {}))
    assert drawn.dtype == dtype
    assert (drawn == np.rint(drawn)).all()
    return drawn.astype(float)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("rate", [3.0, 9.9e3, 2e7, 2.6e20, 1e30])
def test_counts_of_any_rate_have_their_mean_and_variance(rate, dtype, seed):
    """20,000 draws: mean and variance within 5 standard errors, a false alarm in one of 50,000 seeds.

    The rounding of large counts in their dtype adds to both.
    """
    n, rate = 20_000, float(dtype(rate))
    drawn, rounding = counts(rate, dtype, seed, n), float(np.finfo(dtype).eps) * rate
    assert abs(drawn.mean() - rate) < 5 * np.sqrt(rate / n) + rounding
    error = 5 * np.sqrt((2 * rate**2 + rate) / n)
    assert abs(drawn.var() - rate) < error + rounding**2 + 2 * rounding * np.sqrt(rate)


@pytest.mark.parametrize("rate", [9.9e3, 1.01e4, 1e6])
def test_large_counts_have_their_distribution(rate, seed):
    """200,000 draws against the distribution function; the largest difference exceeds 2.7/√n in one of a million."""
    n = 200_000
    drawn = np.sort(counts(rate, np.float64, seed, n))
    values = np.arange(drawn[0], drawn[-1] + 1)
    reached = np.searchsorted(drawn, values, side="right") / n
    assert np.abs(reached - stats.poisson.cdf(values, rate)).max() < 2.7 / np.sqrt(n)
