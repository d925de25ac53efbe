"""Inverses of many matrices against NumPy."""

import jax
import numpy as np
import pytest

from multicause.arrays import double_precision, inverse_and_log_det


@pytest.mark.parametrize(("dtype", "rtol"), [(np.float64, 1e-9), (np.float32, 1e-3)])
@pytest.mark.parametrize("size", [1, 2, 7])
def test_inverses_and_determinants(size, dtype, rtol, seed):
    roots = np.random.RandomState(seed).normal(size=(40, size, size + 3))
    matrices = (roots @ roots.transpose(0, 2, 1)).astype(dtype)
    with double_precision():
        inverse, log_det = jax.device_get(jax.jit(inverse_and_log_det)(matrices))
    assert inverse.dtype == dtype
    expected = np.linalg.inv(matrices.astype(float))
    scale = np.abs(expected).max(axis=(1, 2), keepdims=True)
    np.testing.assert_allclose(inverse / scale, expected / scale, atol=rtol)
    np.testing.assert_allclose(log_det, np.linalg.slogdet(matrices.astype(float))[1], rtol=rtol, atol=rtol)
