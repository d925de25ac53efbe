"""Quantiles of weighted rows, compared with their definition, and how rows are divided into blocks."""

import numpy as np
import pytest

from multicause.engines import Local
from multicause.engines.blocks import block_shape, weighted_quantile


def by_definition(values, weights, share):
    """The largest value that rows with this share of all weight reach or exceed."""
    return max(v for v in values if weights[values >= v].sum() >= share * weights.sum() * (1 - 1e-12))


@pytest.mark.parametrize("share", [0.05, 0.3, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("kind", ["equal", "whole", "real"])
def test_a_quantile_is_the_value_that_a_share_of_the_weight_reaches(share, kind, seed):
    random = np.random.RandomState(seed)
    values = random.normal(size=20).round(1)
    weights = {"equal": np.full(20, 2.0), "whole": random.randint(0, 4, 20) + 0.0, "real": random.uniform(size=20)}[
        kind
    ]
    expected = by_definition(values, weights, share)
    assert weighted_quantile(values, weights, share) == expected
    # Rows above and below an interval around it count by their weight alone.
    near = np.abs(values - expected) < 0.5
    above = weights[values >= expected + 0.5].sum()
    assert weighted_quantile(values[near], weights[near], share, above=above, total=weights.sum()) == expected


def test_shares_lie_between_zero_and_one():
    with pytest.raises(ValueError, match=r"A share of all weight must lie in \(0, 1\]; got 0"):
        weighted_quantile(np.ones(2), np.ones(2), 0)


@pytest.fixture
def _on_cpu(monkeypatch):
    monkeypatch.setattr("multicause.engines.blocks.fastest_block", lambda: 24 * 2**20)


@pytest.mark.usefixtures("_on_cpu")
@pytest.mark.parametrize("n_rows", [17_000, 40_000, 64_001, 1_000_000])
def test_blocks_of_many_rows_keep_16_cores_busy(n_rows):
    size, n_blocks = block_shape(Local(), n_rows, bytes_per_row=5000, fixed_bytes=0, for_threads=True)
    rounds = -(-n_blocks // 16)
    assert n_blocks >= 0.9 * 16 * rounds  # sizes are rounded up, which may take the last blocks away
    assert n_blocks * size >= n_rows > (n_blocks - 1) * size


@pytest.mark.usefixtures("_on_cpu")
def test_few_rows_are_one_block_or_an_even_number():
    assert block_shape(Local(), 4000, bytes_per_row=5000, fixed_bytes=0, for_threads=True) == (4096, 1)
    for threads in (True, False):
        found = block_shape(Local(), 14_000, bytes_per_row=5000, fixed_bytes=0, for_threads=threads)
        assert found == (3584, 4)


@pytest.mark.usefixtures("_on_cpu")
def test_blocks_are_not_small_if_much_is_computed_once_for_each():
    """What 20,000 rows share takes as much memory as 2500 of them, and blocks have at most four times as many."""
    many, few = (
        block_shape(Local(), 20_000, bytes_per_row=5000, fixed_bytes=12_500_000, for_threads=threads)
        for threads in (True, False)
    )
    assert many == few == (5120, 4)
