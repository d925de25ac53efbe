"""Batches of learning by a log joint, and states that are packed into bytes."""

import numpy as np

from multicause.solvers.joint_learning import batches_of, batches_to_show, pack, unpack


def test_states_of_rows_that_repeat_or_pad_a_batch_are_not_stored():
    """Row 5 does not exist: what is stored there is dropped."""
    rows, places, counts, n_batches, full = batches_to_show(np.array([2, 0, 2, 4, 1]), 3, 5)
    assert (n_batches, full) == (2, 3)
    np.testing.assert_array_equal(rows, [[2, 0, 2], [4, 1, 2]])
    np.testing.assert_array_equal(places, [[2, 0, 5], [4, 1, 5]])
    np.testing.assert_array_equal(counts, [[True, True, True], [True, True, False]])


def test_batches_have_the_same_size():
    X = np.arange(5.0)[:, None]
    found = [np.asarray(rows)[:, 0].tolist() for rows in batches_of(X, 3)]
    assert found == [[0, 1, 2], [3, 4, 3]]
    assert [len(rows) for rows in batches_of(X, 100)] == [5]


def test_eight_causes_are_one_byte(seed):
    states = np.random.RandomState(seed).randint(0, 2, (4, 3, 11))
    packed = pack(states)
    assert packed.shape == (4, 3, 2)
    np.testing.assert_array_equal(unpack(packed, 11), states)
