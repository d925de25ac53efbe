"""Sets of causes as bits of words, beside arrays of truth values."""

import jax.numpy as jnp
import numpy as np

from multicause.arrays import double_precision
from multicause.posteriors.evolution.bit_sets import lowest, packed, size_of, unpacked


def test_sets_of_causes_as_bits():
    random = np.random.RandomState(0)
    states = random.uniform(size=(70, 5, 8)) < 0.1
    with double_precision():
        words = packed(jnp.asarray(states))
        assert words.shape == (2, 5, 8)
        np.testing.assert_array_equal(unpacked(words, 70), states)
        np.testing.assert_array_equal(size_of(words), states.sum(axis=0))
        reference, left, seen = words[:, 0], words, np.zeros(states.shape, int)
        for _ in range(int(states.sum(axis=0).max())):
            one = lowest(left, reference)
            for k, n in zip(*np.nonzero(one.exists), strict=True):
                seen[one.cause[k, n], k, n] = one.sign[k, n]
            left = one.rest
        assert not np.asarray(left).any()
        np.testing.assert_array_equal(seen, np.where(states, np.where(states[:, :1], -1, 1), 0))
