"""Priors of few active causes, compared with enumeration."""

import jax
import numpy as np
import pytest

from multicause.arrays import double_precision
from multicause.priors import truncation
from tests.oracles import enumeration as oracle

H = 5


@pytest.mark.parametrize("max_active", [1, 2, 4])
def test_truncated_prior_by_enumeration(max_active, seed):
    activity = np.random.RandomState(seed).uniform(0.05, 0.4, H)
    states = oracle.all_states(H)
    p = np.prod(np.where(states, activity, 1 - activity), axis=1) * (states.sum(axis=1) <= max_active)
    means = p @ states / p.sum()
    with double_precision():
        log_mass = jax.jit(truncation.log_mass, static_argnums=1)
        assert float(log_mass(activity, max_active)) == pytest.approx(np.log(p.sum()), rel=1e-12)
        step = jax.jit(truncation.untruncated, static_argnums=2)
        found = once = step(means, np.full(H, 0.2), max_active)
        for _ in range(20):
            found = step(means, found, max_active)
    np.testing.assert_allclose(once, activity, rtol=0.05)  # what one M-step does
    np.testing.assert_allclose(found, activity, rtol=1e-4)
