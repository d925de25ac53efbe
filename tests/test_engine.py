"""The local engine: its verbs against plain NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from multicause.arrays import double_precision
from multicause.engines import Local


def SUMMARY(rows):
    return rows.sum(axis=1)


@pytest.fixture
def loaded(seed):
    X = np.random.RandomState(seed).normal(size=(23, 3))
    weights = np.random.RandomState(seed + 1).uniform(size=23)
    engine = Local(memory_budget=5 * 100)
    with double_precision():
        yield engine, engine.load(X, weights, SUMMARY, bytes_per_row=100), X, weights


def test_blocks_are_equal_and_the_last_is_filled_with_weightless_rows(loaded):
    _, blocks, X, weights = loaded
    assert [len(block.rows) for block in blocks] == [5] * 5
    np.testing.assert_array_equal(np.concatenate([b.rows for b in blocks])[:23], X)
    np.testing.assert_array_equal(np.concatenate([b.weights for b in blocks]), np.append(weights, [0, 0]))
    np.testing.assert_array_equal(np.concatenate([b.position for b in blocks]), np.arange(25))
    np.testing.assert_allclose(np.concatenate([b.summary for b in blocks])[:23], X.sum(axis=1))


def test_sum(loaded):
    engine, blocks, X, weights = loaded
    total = engine.sum(lambda block, factor: factor * (block.weights @ block.rows), blocks, 2.0)
    np.testing.assert_allclose(total, 2 * weights @ X)


def test_map_collect_and_what_stays_with_its_block(loaded):
    engine, blocks, X, weights = loaded
    kept = engine.map(lambda block: block.rows.sum(axis=1), blocks)
    np.testing.assert_allclose(engine.collect(kept, blocks), X.sum(axis=1))
    total = engine.sum(lambda block, memory: (block.weights * memory).sum(), blocks, aligned=kept)
    np.testing.assert_allclose(total, weights @ X.sum(axis=1))


def test_quantile_is_the_global_order_statistic(loaded):
    engine, blocks, X, weights = loaded
    values = engine.map(lambda block: jnp.stack([block.rows[:, 0], -block.rows[:, 1]]), blocks)
    order = np.argsort(X[:, 0])[::-1]
    shares = np.cumsum(weights[order]) / weights.sum()
    for k in (0, 1, 11, 22):  # rows down to the k-th have this share of the weight, or just less
        for share in (shares[k], shares[k] - weights[order[k]] / weights.sum() / 2):
            found = engine.quantile(values, blocks, np.array([share, 1.0]))
            np.testing.assert_array_equal(found, [X[order[k], 0], (-X[:, 1]).min()])
    ones = Local(memory_budget=500).load(X, np.ones(23), SUMMARY, bytes_per_row=100)
    for k in (1, 2, 12, 23):
        np.testing.assert_array_equal(engine.quantile(values, ones, np.array([k / 23, 1.0]))[0], X[order[k - 1], 0])
    with pytest.raises(ValueError, match="share of all weight must lie in"):
        engine.quantile(values, blocks, np.array([0.0, 1.0]))


def test_random_numbers_of_a_row_do_not_depend_on_its_block(loaded):
    engine, blocks, X, weights = loaded
    key = jax.random.key(0)

    def draw(block):
        return jax.vmap(lambda place: jax.random.uniform(jax.random.fold_in(key, place)))(block.position)

    many = engine.collect(engine.map(draw, blocks), blocks)
    one_block = Local().load(X, weights, SUMMARY, 100)
    np.testing.assert_array_equal(many, engine.collect(engine.map(draw, one_block), one_block))
    assert len(np.unique(many)) == 23


def test_one_block_where_memory_allows(loaded):
    _, _, X, weights = loaded
    assert len(list(Local().load(X, weights, SUMMARY, 100))) == 1
    assert jnp.asarray(1.0).dtype == np.float64
