"""The bars tests, as the papers describe them."""

import numpy as np
import pytest

from multicause.datasets import make_bars

SHAPES = {  # kind: (image side, number of bars, pixels of each bar)
    "standard": (5, 10, {5}),
    "overlapping": (9, 16, {18}),
    "widths": (5, 6, {5, 15}),
    "intensities": (5, 6, {5, 15}),
    "short": (3, 12, {2}),
    "signed": (5, 10, {5}),
    "unequal": (5, 10, {5}),
}


@pytest.mark.parametrize("kind", SHAPES)
def test_shapes_and_pixels(kind):
    side, n_bars, pixels = SHAPES[kind]
    bars = make_bars(50, kind=kind, random_state=0)
    assert bars.image_shape == (side, side)
    assert bars.data.shape == (50, side**2)
    assert bars.causes.shape == (n_bars, side**2)
    assert bars.states.shape == (50, n_bars)
    assert set((bars.causes != 0).sum(axis=1)) == pixels
    assert len(np.unique(bars.causes, axis=0)) == n_bars
    values = np.unique(np.abs(bars.causes))
    assert values.max() == 10
    assert len(values) == (2 if kind != "intensities" else 7)  # zero, and one or six grey values
    again = make_bars(50, kind=kind, random_state=0)
    np.testing.assert_array_equal(bars.data, again.data)


def test_signed_bars_are_half_negative():
    causes = make_bars(2, kind="signed").causes
    assert (causes.sum(axis=1) < 0).sum() == 5


def test_average_number_of_bars_is_two(seed):
    """Mean of 20000 × 10 Bernoulli draws: 5 standard errors are 0.045, a false alarm in 2e6 seeds."""
    for kind in ("standard", "overlapping", "unequal"):
        states = make_bars(20_000, kind=kind, random_state=seed).states
        assert states.sum(axis=1).mean() == pytest.approx(2, abs=0.05)
    rates = make_bars(20_000, kind="unequal", imbalance=0.6, random_state=seed).states.mean(axis=0)
    np.testing.assert_allclose(rates[1::2], 0.32, atol=0.02)
    np.testing.assert_allclose(rates[0::2], 0.08, atol=0.02)


def test_combinations():
    bars = make_bars(300, random_state=0)
    np.testing.assert_array_equal(bars.data, np.where(bars.states @ bars.causes > 0, 10, 0))
    sums = make_bars(300, combination="sum", random_state=0)
    np.testing.assert_array_equal(sums.data, sums.states @ sums.causes)
    assert sums.data.max() == 20


def test_noise_reaches_every_row(seed):
    """Rows without an active bar are noisy too, with the same variance; standard errors are below 2 %."""
    bars = make_bars(20_000, noise="gaussian", noise_scale=2.0, random_state=seed)
    empty = bars.states.sum(axis=1) == 0
    assert bars.data[empty].std() == pytest.approx(2, rel=0.1)
    assert (bars.data - np.where(bars.states @ bars.causes > 0, 10, 0)).std() == pytest.approx(2, rel=0.1)
    counts = make_bars(2000, noise="poisson", random_state=seed)
    assert (counts.data == np.round(counts.data)).all()
    assert (counts.data[counts.states.sum(axis=1) == 0] == 0).all()


def test_min_active():
    assert make_bars(500, min_active=2, random_state=0).states.sum(axis=1).min() == 2


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"n_samples": 0}, "n_samples must be a whole number of at least 1; got 0"),
        ({"kind": "diagonal"}, "Unknown kind 'diagonal'. Known: 'standard', 'overlapping'"),
        ({"size": 2}, "size must be a whole number of at least 3"),
        ({"activity": 1.5}, r"must lie in \(0, 1\]"),
        ({"activity": [0.1, 0.2]}, r"one per bar, shape \(10,\)"),
        ({"value": -1}, "value must be a positive number"),
        ({"combination": "or"}, "Unknown combination 'or'"),
        ({"kind": "signed", "combination": "max"}, "Signed bars cannot be combined by 'max'"),
        ({"kind": "signed", "noise": "poisson"}, "which Poisson noise cannot have"),
        ({"noise": "salt"}, "Unknown noise 'salt'"),
        ({"noise": "gaussian", "noise_scale": 0}, "noise_scale must be a positive number"),
        ({"min_active": 11}, "min_active=11 exceeds the number of bars, 10"),
        ({"min_active": 9}, "too rare at these activities"),
        ({"kind": "unequal", "imbalance": 1.0}, r"imbalance must lie in \[0, 1\)"),
    ],
)
def test_errors(settings, text, monkeypatch):
    monkeypatch.setattr("multicause.datasets.bars.MAX_ROUNDS", 50)
    with pytest.raises(ValueError, match=text):
        make_bars(**({"n_samples": 20} | settings))
