import jax
import jax.numpy as jnp
import numpy as np
import pytest

from multicause.arrays import hardware, on_host


@pytest.mark.parametrize("on_cpu", [True, False])
def test_records_on_the_host_have_numpy_arrays(monkeypatch, on_cpu):
    monkeypatch.setattr(hardware, "on_cpu", lambda: on_cpu)
    on_device = {"sums": (jnp.arange(3.0), None), "number": jnp.asarray(2), "known": np.ones(2)}
    found = on_host(on_device)
    assert all(isinstance(leaf, np.ndarray) for leaf in jax.tree.leaves(found))
    np.testing.assert_array_equal(found["sums"][0], [0, 1, 2])
    assert found["sums"][1] is None
    assert (found["number"], found["number"].dtype) == (2, on_device["number"].dtype)
