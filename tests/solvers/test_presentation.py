"""Rows that a pass shows: as often as their weights say, in batches of equal size."""

from types import SimpleNamespace

import numpy as np
import pytest

from multicause.solvers.presentation import MOST_REPETITIONS, Presentation, repetitions, rows_to_show


def blocks(*weights):
    """Data of some blocks, of which only the weights matter."""
    return SimpleNamespace(of_weights=lambda function: [function(np.asarray(each, float)) for each in weights])


@pytest.mark.parametrize(
    ("weights", "expected"),
    [
        ([1, 2, 0, 3], [1, 2, 0, 3]),
        ([0.5, 0.25, 0, 0.25], [1.5, 0.75, 0, 0.75]),  # shares of one: as many as rows with a weight
        ([1000, 3000], [0.5 * MOST_REPETITIONS, 1.5 * MOST_REPETITIONS]),
    ],
)
def test_repetitions_are_in_proportion_to_weights(weights, expected):
    np.testing.assert_allclose(repetitions(np.array(weights)), expected)


def test_random_rounding_keeps_the_mean(seed):
    """Five standard errors of a fraction of 2000 draws."""
    random, expected = np.random.default_rng(seed), np.array([0.3, 2.0, 1.6, 0.0, 0.1])
    counts = np.array([np.bincount(rows_to_show(expected, random), minlength=5) for _ in range(2000)])
    assert (np.abs(counts - expected) < 1).all()
    np.testing.assert_allclose(counts.mean(axis=0), expected, atol=5 * 0.5 / np.sqrt(2000))
    np.testing.assert_array_equal(counts.sum(axis=1), 4)


def test_one_pass_over_blocks_shows_the_repeated_rows():
    """With integer weights every block has exactly its repeated rows, in batches that are padded by weight zero."""
    weights = [np.array([1.0, 2, 0]), np.array([3.0, 1, 1, 1])]
    rule = Presentation.of(blocks(*weights), batch_size=4)
    assert not rule.whole
    order, draws = rule.draw(np.random.default_rng(0))
    assert sorted(order) == [0, 1]
    for own, draw in zip(weights, draws, strict=True):
        batches = rule.batches(own, draw)
        shown = batches.rows[batches.weights > 0]
        np.testing.assert_array_equal(np.bincount(shown, minlength=len(own)), own)
        assert batches.n_batches == -(-len(shown) // 4)
        np.testing.assert_allclose(batches.lengths, batches.weights.sum(axis=1) / 4)
        again = rule.batches(own, draw)  # a task that is repeated draws the same
        np.testing.assert_array_equal(again.rows, batches.rows)


def test_batches_of_similar_blocks_have_one_shape():
    """Where blocks are smaller than a batch, places are filled up, and steps are as long as without filling."""
    shapes = set()
    for n_rows in (57, 58, 60):
        weights = [np.ones(n_rows), np.ones(n_rows)]
        rule = Presentation.of(blocks(*weights), batch_size=200)
        for own, draw in zip(weights, rule.draw(np.random.default_rng(0))[1], strict=True):
            batches = rule.batches(own, draw)
            shapes.add(batches.rows.shape)
            np.testing.assert_array_equal(np.sort(batches.rows[batches.weights > 0]), np.arange(n_rows))
            np.testing.assert_array_equal(batches.lengths[: int(batches.n_batches)], [1.0])
    assert len(shapes) == 1


def test_one_batch_of_all_rows_has_their_weights():
    weights = np.array([0.5, 0.0, 2.5])
    rule = Presentation.of(blocks(weights), batch_size=10)
    batches = rule.batches(weights, rule.draw(np.random.default_rng(0))[1][0])
    np.testing.assert_array_equal(batches.rows, [[0, 1, 2]])
    np.testing.assert_array_equal(batches.weights, [weights])
