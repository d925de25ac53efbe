"""Noises: what is drawn has the distribution that it should have, and what is learned is found."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from multicause import LinearCauses, MaximalCauses, NonnegativeCauses
from multicause.arrays import double_precision
from multicause.noises import Poisson
from multicause.posteriors import Preselected


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


CAUSES = np.array([[0.9, 0.9, 0.9, 0.0, 0.0, 0.0], [0.0, 0.0, 0.8, 0.8, 0.8, 0.0], [0.7, 0.0, 0.0, 0.0, 0.7, 0.7]])


def means_of(rule, states):
    if rule is MaximalCauses:
        return np.max(states[:, :, None] * CAUSES, axis=1)
    return np.minimum(states @ CAUSES, 1)


@pytest.mark.parametrize("kind", [MaximalCauses, LinearCauses, NonnegativeCauses])
def test_binary_data_have_probabilities_as_means(kind):
    """Probabilities are found from binary data; 4000 rows, of which a third have a cause, give errors of about 0.02."""
    random = np.random.RandomState(0)
    states = random.uniform(size=(4000, 3)) < 0.35
    X = (random.uniform(size=(4000, 6)) < means_of(kind, states)).astype(float)
    start = np.clip(CAUSES + random.uniform(-0.1, 0.1, CAUSES.shape), 0, 1)
    model = kind(3, noise="bernoulli", init=start, annealing=None, max_iter=60, tol=1e-4).fit(X)
    np.testing.assert_allclose(model.components_, CAUSES, atol=0.1)
    np.testing.assert_allclose(model.activity_, 0.35, atol=0.05)
    reconstructed = model.reconstruct(X)
    assert reconstructed.min() >= 0
    assert reconstructed.max() <= 1
    assert set(np.unique(model.sample(20, random_state=0)[0])) <= {0.0, 1.0}
    with pytest.raises(ValueError, match="Binary data are needed"):
        model.transform(X + 0.5)


@pytest.mark.parametrize(
    ("kind", "posterior"),
    [(MaximalCauses, "exact"), (MaximalCauses, Preselected(3, 3, keep=None)), (LinearCauses, "exact")],
)
def test_each_dimension_has_a_noise_of_its_own(kind, posterior):
    """Standard deviations are found to a few percent from 3000 rows."""
    random, scale = np.random.RandomState(0), np.linspace(0.2, 1.2, 6)
    states = random.uniform(size=(3000, 3)) < 0.4
    W = 10 * CAUSES
    means = np.max(states[:, :, None] * W, axis=1) if kind is MaximalCauses else states @ W
    X = means + scale * random.normal(size=means.shape)
    model = kind(3, noise="diagonal_gaussian", init=W + 0.5, annealing=None, posterior=posterior).fit(X)
    np.testing.assert_allclose(np.sqrt(model.noise_variance_), scale, rtol=0.1)
    np.testing.assert_allclose(model.components_, W, atol=0.2)
