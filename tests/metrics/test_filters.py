"""Gabor functions and time–frequency diagrams of filters whose form is known."""

import numpy as np
import pytest

from multicause.metrics import fit_gabors, time_frequency_power


def gabor(position, size, orientation, frequency, phase, amplitude, shape):
    """Written with angles, unlike the code that is tested."""
    rows, columns = np.mgrid[: shape[0], : shape[1]] - np.reshape(position, (2, 1, 1))
    along = columns * np.cos(orientation) + rows * np.sin(orientation)
    across = -columns * np.sin(orientation) + rows * np.cos(orientation)
    envelope = np.exp(-((along / size[0]) ** 2 + (across / size[1]) ** 2) / 2)
    return (amplitude * envelope * np.cos(2 * np.pi * frequency * along + phase)).ravel()


def test_known_gabor_functions_are_found(seed):
    random, shape = np.random.RandomState(seed), (12, 14)
    truth = [
        (
            random.uniform(3, 9, 2), random.uniform(1.2, 2.5, 2), random.uniform(0, np.pi), random.uniform(0.12, 0.35),
            random.uniform(-np.pi, np.pi), random.uniform(0.5, 3),
        )
        for _ in range(20)
    ]  # fmt: skip
    filters = np.stack([gabor(*one, shape) for one in truth])
    found = fit_gabors(filters, shape)
    good = found.error < 1e-6
    assert good.mean() >= 0.9  # least squares may end in a local optimum
    assert found.localized[good].all()
    for i in np.flatnonzero(good):
        again = gabor(found.position[i], found.size[i], found.orientation[i], found.frequency[i], found.phase[i],
                      found.amplitude[i], shape)  # fmt: skip
        np.testing.assert_allclose(again, filters[i], atol=2e-3 * np.abs(filters[i]).max())
        np.testing.assert_allclose(found.position[i], truth[i][0], atol=0.05)
        assert found.frequency[i] == pytest.approx(truth[i][3], abs=0.01)
        assert np.abs(np.sin(found.orientation[i] - truth[i][2])) < 0.05
    errors = ((filters - np.stack([gabor(*one, shape) for one in zip(*found[:6], strict=True)])) ** 2).sum(axis=1)
    np.testing.assert_allclose(found.error, errors / (filters**2).sum(axis=1), atol=1e-5)


def test_noise_and_waves_without_an_end_are_not_localized():
    random, shape = np.random.RandomState(0), (12, 14)
    noise = random.normal(size=(19, 168))
    wave = gabor((5, 5), (500, 500), 0.4, 0.2, 0, 1, shape)
    found = fit_gabors(np.vstack([noise, wave]), shape)
    assert not found.localized.any()
    assert (found.error[:-1] > 0.3).all()
    assert (found.error >= 0).all()
    assert (found.error <= 1).all()


def test_filters_of_the_wrong_form():
    with pytest.raises(ValueError, match=r"shape \(n, 20\) for images of 4×5; got \(3, 7\)"):
        fit_gabors(np.ones((3, 7)), (4, 5))
    with pytest.raises(ValueError, match="Filter 1 is zero everywhere"):
        fit_gabors(np.array([np.ones(20), np.zeros(20)]), (4, 5))
    with pytest.raises(ValueError, match="at least 4×4"):
        fit_gabors(np.ones((2, 6)), (2, 3))
    with pytest.raises(ValueError, match="must be finite"):
        fit_gabors(np.full((2, 20), np.nan), (4, 5))
    with pytest.raises(ValueError, match=r"shape \(n, T\)"):
        time_frequency_power(np.ones(5))


def test_the_power_of_a_tone_burst_lies_where_it_sounds():
    """A burst of 1000 Hz from 4 to 8 ms and one of 2500 Hz with a quarter of its power, at 8 kHz."""
    time = np.arange(100) / 8000
    one = np.exp(-(((time - 0.006) / 0.002) ** 2) / 2) * np.sin(2 * np.pi * 1000 * time)
    two = 0.5 * np.exp(-(((time - 0.009) / 0.001) ** 2) / 2) * np.sin(2 * np.pi * 2500 * time)
    diagram = time_frequency_power(np.stack([one, two]), sampling_rate=8000)
    assert diagram.power.shape == (51, 100)
    f = np.unravel_index(diagram.power.argmax(), diagram.power.shape)[0]
    assert diagram.frequencies[f] == pytest.approx(1000, abs=100)
    assert diagram.power.max() == pytest.approx((one**2).sum())
    assert diagram.power[np.argmin(np.abs(diagram.frequencies - 2500)), 72] == pytest.approx((two**2).sum())
    # exp(−t²/σ²) is above one half for |t| < σ √(log 2): 26.6 of 100 samples around 6 ms.
    assert diagram.templates_in_time[0].sum() == pytest.approx(2 * 0.002 * np.sqrt(np.log(2)) * 8000, abs=2)
    assert diagram.times[diagram.templates_in_time[0] > 0].mean() == pytest.approx(0.006, abs=2e-4)


def test_gaps_shorter_than_the_papers_are_filled():
    spikes = np.zeros((1, 60))
    spikes[0, [10, 16, 30]] = 1.0
    found = time_frequency_power(spikes)
    inside = found.templates_in_time[0]
    assert inside[10:17].all()  # five samples between
    assert not inside[17:30].any()  # thirteen samples between
