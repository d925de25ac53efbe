"""Rows by index and indices of the largest scores, on a CPU and as an accelerator computes them, are those of NumPy."""

import jax.numpy as jnp
import numpy as np
import pytest

from multicause.arrays import add_by_index, double_precision, indexing, indices_of_largest, rows_at, sum_rows_at

H, K, N = 5, 3, 4


@pytest.fixture(params=[True, False], ids=["cpu", "accelerator"])
def device(request, monkeypatch):
    monkeypatch.setattr(indexing, "one_by_one", lambda: request.param)
    with double_precision():
        yield


@pytest.mark.usefixtures("device")
def test_rows_by_constant_indices():
    values = np.random.RandomState(0).normal(size=(H, N))
    places = np.array([4, 0, 4])
    np.testing.assert_array_equal(rows_at(jnp.asarray(values), places), values[places])
    expected = np.zeros((H, N))
    np.add.at(expected, places, values[:K])
    np.testing.assert_allclose(sum_rows_at(jnp.asarray(values[:K]), places, H), expected, rtol=1e-15)


@pytest.mark.usefixtures("device")
def test_rows_by_indices_of_each_column():
    random = np.random.RandomState(1)
    values, more = random.normal(size=(H, N)), random.normal(size=(K, N))
    places = np.argsort(-values, axis=0)[:K]
    np.testing.assert_array_equal(indices_of_largest(jnp.asarray(values), K), places)
    expected = values.copy()
    np.add.at(expected, (places, np.arange(N)), more)
    found = add_by_index(jnp.asarray(values), jnp.asarray(places), jnp.asarray(more))
    np.testing.assert_allclose(found, expected, rtol=1e-15)


@pytest.mark.parametrize("k", [1, 4])
def test_the_largest_scores_of_any_size(k, seed):
    """Ranks by NumPy; scores may be close to each other far from zero, and some may be minus infinity."""
    random = np.random.RandomState(seed)
    scores = random.normal(size=(12, 40))
    cases = [scores * scale for scale in (1.0, 1e-300, 1e-45, 1e39, 1e300)]
    cases += [scores - 1e9, np.where(scores < 1, -np.inf, scores * 1e60), np.round(scores), np.zeros((12, 40))]
    with double_precision():
        for case in cases:
            found = indices_of_largest(jnp.asarray(case), k)
            np.testing.assert_array_equal(found, np.argsort(-case, axis=0, kind="stable")[:k])
