"""Rows by index, on a CPU and as an accelerator computes them, are those of NumPy."""

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
