"""Sets of causes as bits of words, beside arrays of truth values."""

import jax
import numpy as np

from multicause.arrays import double_precision
from multicause.posteriors.evolution.bit_sets import lowest, packed, size_of, unpacked


def test_sets_of_causes_as_bits():
    random = np.random.RandomState(0)
    states = random.uniform(size=(70, 5, 8)) < 0.1
    with double_precision():
        words = jax.jit(packed)(states)
        assert words.shape == (2, 5, 8)
        causes, sizes = jax.jit(lambda words: (unpacked(words, 70), size_of(words)))(words)
        np.testing.assert_array_equal(causes, states)
        np.testing.assert_array_equal(sizes, states.sum(axis=0))
        first = jax.jit(lowest)
        words = np.asarray(words)
        reference, left, seen = words[:, 0], words, np.zeros(states.shape, int)
        for _ in range(int(states.sum(axis=0).max())):
            one = jax.tree.map(np.asarray, first(left, reference))
            for k, n in zip(*np.nonzero(one.exists), strict=True):
                seen[one.cause[k, n], k, n] = one.sign[k, n]
            left = one.rest
        assert not left.any()
        np.testing.assert_array_equal(seen, np.where(states, np.where(states[:, :1], -1, 1), 0))
