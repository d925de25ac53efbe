"""The local engine: the methods of its data against plain NumPy."""

import jax.numpy as jnp
import joblib
import numpy as np
import pytest

from multicause.arrays import double_precision
from multicause.engines import Local
from multicause.engines.blocks import rounded
from multicause.runtime.parallel import available_cores, number_of_jobs

# Bytes of a row with which a block of 1024 rows, the smallest, fills a cache.
LARGE = 24 * 2**10


def summary(rows):
    return rows.sum(axis=1)


@pytest.fixture
def loaded(seed):
    X = np.random.RandomState(seed).normal(size=(23, 3))
    weights = np.random.RandomState(seed + 1).uniform(size=23)
    with double_precision():
        yield Local(memory_budget=5 * 100).load(X, weights).arranged(summary, bytes_per_row=100), X, weights


def test_blocks_are_equal_and_the_last_is_filled_with_weightless_rows(loaded):
    data, X, weights = loaded
    assert [len(block.rows) for block in data.blocks] == [4] * 6  # an even number of blocks serves two cores best
    np.testing.assert_array_equal(np.concatenate([b.rows for b in data.blocks])[:23], X)
    np.testing.assert_array_equal(np.concatenate([b.weights for b in data.blocks]), np.append(weights, [0]))
    np.testing.assert_allclose(np.concatenate([b.summary for b in data.blocks])[:23], X.sum(axis=1))
    assert (data.n_rows, data.n_features, data.n_weighted, data.dtype) == (23, 3, 23, np.float64)


def test_sum(loaded):
    data, X, weights = loaded
    total = data.sum(lambda block, factor: factor * (block.weights @ block.rows), 2.0)
    np.testing.assert_allclose(total, 2 * weights @ X)


def test_map_collect_and_what_stays_with_its_block(loaded):
    data, X, weights = loaded
    kept = data.map(lambda block: block.rows.sum(axis=1))
    np.testing.assert_allclose(data.collect(kept), X.sum(axis=1))
    total = data.sum(lambda block, memory: (block.weights * memory).sum(), aligned=kept)
    np.testing.assert_allclose(total, weights @ X.sum(axis=1))


def test_quantile_is_the_global_order_statistic(loaded):
    data, X, weights = loaded
    values = data.map(lambda block: jnp.stack([block.rows[:, 0], -block.rows[:, 1]]))
    order = np.argsort(X[:, 0])[::-1]
    shares = np.cumsum(weights[order]) / weights.sum()
    for k in (0, 1, 11, 22):  # rows down to the k-th have this share of the weight, or just less
        for share in (shares[k], shares[k] - weights[order[k]] / weights.sum() / 2):
            found = data.quantile(values, np.array([share, 1.0]))
            np.testing.assert_array_equal(found, [X[order[k], 0], (-X[:, 1]).min()])
    ones = Local(memory_budget=500).load(X, np.ones(23)).arranged(summary, bytes_per_row=100)
    for k in (1, 2, 12, 23):
        np.testing.assert_array_equal(ones.quantile(values, np.array([k / 23, 1.0]))[0], X[order[k - 1], 0])
    with pytest.raises(ValueError, match="share of all weight must lie in"):
        data.quantile(values, np.array([0.0, 1.0]))


def test_rows_and_samples(loaded):
    data, X, _ = loaded
    np.testing.assert_array_equal(data.rows(np.array([3, 1])), X[[3, 1]])
    few = data.sample(7, np.random.RandomState(0))
    assert few.n_rows == 7
    places = [np.flatnonzero((row == X).all(axis=1))[0] for row in few.rows()]
    assert places == sorted(set(places))
    assert data.sample(23, np.random.RandomState(0)) is data
    weightless = Local().load(X, np.zeros(23))
    assert weightless.sample(5, np.random.RandomState(0)) is weightless


def test_one_block_where_memory_allows_and_one_program_serves_similar_sizes(loaded):
    _, X, weights = loaded
    shapes = []
    for n in (20, 19):
        data = Local().load(X[:n], weights[:n]).arranged(summary, 100)
        assert len(data.blocks) == 1
        shapes.append(data.blocks[0].rows.shape)
    assert shapes == [(20, 3), (20, 3)]


def test_at_most_an_eighth_of_the_rows_is_wasted_and_the_budget_is_kept():
    for size in range(1, 5000):
        up, down = rounded(size, up=True), rounded(size, up=False)
        assert down <= size <= up <= size * 9 / 8
        assert rounded(down, up=True) == down
        assert size < 9 or size > 7 / 8 * up
    assert len({rounded(size, up=True) for size in range(1024, 2048)}) <= 9


def test_the_sum_does_not_depend_on_the_number_of_threads():
    X = np.random.RandomState(0).normal(size=(20000, 4)).astype(np.float32)
    weights = np.random.RandomState(1).uniform(size=20000).astype(np.float32)
    sums = []
    with double_precision():
        for n_jobs in (1, 2, 5):
            data = Local(n_jobs=n_jobs).load(X, weights).arranged(summary, LARGE)
            assert data.n_jobs == n_jobs
            sums.append(np.asarray(data.sum(lambda block: block.weights @ block.rows)))
    assert len(data.blocks) >= 17
    np.testing.assert_array_equal(sums[0], sums[1])
    np.testing.assert_array_equal(sums[0], sums[2])


def test_threads_have_double_precision_and_start_no_threads_of_their_own():
    data = Local(n_jobs=2).load(np.ones((5000, 2)), np.ones(5000)).arranged(summary, LARGE)
    assert len(data.blocks) > 1
    found = data.map(lambda block: (jnp.ones(()).dtype, number_of_jobs(-1)))
    assert found == [(np.dtype(float), 1)] * len(data.blocks)


def test_blocks_that_are_worked_on_at_once_share_the_memory_budget():
    data = Local(memory_budget=2 * 1024 * LARGE, n_jobs=4).load(np.ones((5000, 2)), np.ones(5000))
    assert data.n_jobs == 4
    assert data.arranged(summary, LARGE).n_jobs == 2


def test_number_of_jobs_in_scikit_learns_sense(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    cores = available_cores()
    assert number_of_jobs(None) == number_of_jobs(-1) == cores
    assert number_of_jobs(3) == 3
    assert number_of_jobs(-cores - 5) == 1
    with joblib.parallel_config(n_jobs=3):
        assert number_of_jobs(None) == 3
        assert number_of_jobs(2) == 2
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert number_of_jobs(None) == 1
    assert number_of_jobs(-1) == cores
    for impossible in (0, 1.5, True, "two"):
        with pytest.raises(ValueError, match="n_jobs must be a positive number of threads"):
            number_of_jobs(impossible)
