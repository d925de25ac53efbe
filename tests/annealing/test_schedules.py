"""Schedules, as the papers print them."""

import numpy as np
import pytest

from multicause import MaximalCauses
from multicause.annealing import ConditionalCooling, LinearCooling, NoAnnealing
from multicause.arrays import double_precision


@pytest.fixture(autouse=True)
def _in_double_precision():
    with double_precision():
        yield


REST, MOVING = np.full((1, 3), 1e-4), np.array([[1e-4, 1e-4, 1.0]])


def test_conditional_cooling_follows_appendix_e2():
    schedule = ConditionalCooling(11.0, final=1.5, n_steps=50, hold=10, quiet=20).schedule(1)
    cooling = schedule.begin()
    for _ in range(10):  # ten iterations at the first temperature, whatever happens
        assert cooling.temperature[0] == 11.0
        cooling = schedule.advance(cooling, REST)
    step = (11.0 - 1.5) / 50
    cooling = schedule.advance(cooling, MOVING)  # one component still moves: no step
    assert cooling.temperature[0] == 11.0
    cooling = schedule.advance(cooling, REST)
    assert cooling.temperature[0] == pytest.approx(11.0 - step)
    for _ in range(49):
        assert not schedule.cooled(cooling)[0]
        cooling = schedule.advance(cooling, REST)
    assert cooling.temperature[0] == 1.5
    assert schedule.cooled(cooling)[0]
    for _ in range(19):
        cooling = schedule.advance(cooling, REST)
    assert not schedule.finished(cooling)[0]
    cooling = schedule.advance(cooling, MOVING)  # the count begins again
    for _ in range(20):
        assert not schedule.finished(cooling)[0]
        cooling = schedule.advance(cooling, REST)
    assert schedule.finished(cooling)[0]


def test_starts_that_never_rest_are_cold_in_time():
    """From temperatures of their own, taken in turn; not before the hold is over, and no later than asked."""
    schedule = ConditionalCooling((11.0, 5.0), final=1.5, n_steps=7, hold=3, within=12).schedule(3)
    history = [schedule.begin()]
    for _ in range(12):
        history.append(schedule.advance(history[-1], np.repeat(MOVING, 3, axis=0)))
    temperatures = np.array([cooling.temperature for cooling in history])
    assert temperatures[0].tolist() == [11.0, 5.0, 11.0]
    assert (temperatures[:4] == temperatures[0]).all()
    assert (np.diff(temperatures, axis=0) <= 0).all()
    assert (temperatures[11] > 1.5).all()
    assert (temperatures[12] == 1.5).all()


def test_starts_cool_each_at_its_own_pace():
    schedule = ConditionalCooling(3.0, n_steps=2, hold=0).schedule(2)
    cooling = schedule.advance(schedule.begin(), np.array([[1e-4], [1.0]]))
    np.testing.assert_allclose(cooling.temperature, [2.0, 3.0])


def test_linear_cooling_is_figure_4b():
    """100 iterations: ten at 13, seventy down, twenty at 1."""
    schedule = LinearCooling(13.0, n_iter=100).schedule(1)
    cooling, temperatures = schedule.begin(), []
    for _ in range(100):
        temperatures.append(cooling.temperature[0])
        cooling = schedule.advance(cooling, MOVING)
    assert temperatures[:11] == [13.0] * 11
    np.testing.assert_allclose(np.diff(temperatures[10:81]), -12 / 70)
    assert temperatures[80:] == [1.0] * 20


def test_no_annealing_is_temperature_one():
    schedule = NoAnnealing().schedule(2)
    assert schedule.advance(schedule.begin(), MOVING).temperature.tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    ("schedule", "text"),
    [
        (ConditionalCooling(0.5), "start >= final >= 1; got start=0.5 and final=1.0"),
        (LinearCooling(2.0, final=3.0), "start >= final >= 1; got start=2.0 and final=3.0"),
        (LinearCooling(np.nan), "start >= final >= 1"),
        (LinearCooling(3.0, hold=0.7, settle=0.6), r"hold \+ settle <= 1"),
        (LinearCooling(3.0, settle=np.nan), r"hold \+ settle <= 1; got n_iter=100, hold=0.1, settle=nan"),
        (LinearCooling(3.0, n_iter=np.nan), "a whole number n_iter >= 1"),
        (LinearCooling(3.0, n_iter=2.5), "a whole number n_iter >= 1"),
        (ConditionalCooling(()), r"start >= final >= 1; got start=\(\)"),
        (
            ConditionalCooling([3.0, 2.0]),
            r"got start=\[3.0, 2.0\] and final=1.0. Give several start temperatures as a tuple",
        ),
        (ConditionalCooling((3.0, np.nan)), "start >= final >= 1"),
        (ConditionalCooling((3.0, 0.5)), "start >= final >= 1"),
        (ConditionalCooling(3.0, hold=5, within=5), "within of ConditionalCooling must be a whole number above hold=5"),
        (LinearCooling((3.0, 2.0)), r"got start=\(3.0, 2.0\) and final=1.0. Each must be one number"),
        (LinearCooling("hot"), "start >= final >= 1; got start='hot'"),
        (ConditionalCooling(3.0, n_steps=0), "n_steps >= 1"),
        (ConditionalCooling(3.0, n_steps=2.5), "whole numbers n_steps >= 1"),
        (LinearCooling(3.0, component_noise=-1.0), "component_noise must be a standard deviation of at least 0"),
        (LinearCooling(3.0, component_noise=None), "component_noise must be a standard deviation of at least 0"),
    ],
)
def test_impossible_settings(schedule, text):
    with pytest.raises(ValueError, match=text):
        MaximalCauses(2, annealing=schedule).fit(np.eye(4))


def test_a_fit_records_its_temperatures():
    X = np.random.RandomState(0).poisson(3, (40, 6)).astype(float)
    model = MaximalCauses(2, noise="poisson", annealing=LinearCooling(4.0, n_iter=20), random_state=0).fit(X)
    assert model.temperatures_[0] == 4.0
    assert model.temperatures_[-1] == 1.0
    assert model.n_iter_ >= 20
    assert len(model.temperatures_) == len(model.lower_bounds_) == model.n_iter_ + 1


def test_component_noise_moves_the_components_while_cooling():
    X = np.random.RandomState(0).poisson(3, (40, 6)).astype(float)

    def fit(noise):
        schedule = LinearCooling(4.0, n_iter=20, component_noise=noise)
        return MaximalCauses(2, noise="poisson", annealing=schedule, random_state=0, max_iter=10).fit(X)

    with pytest.warns(UserWarning, match="max_iter"):
        quiet, noisy, again = fit(0.0), fit(0.5), fit(0.5)
    assert np.abs(quiet.components_ - noisy.components_).max() > 0.05
    assert (noisy.components_ >= 0).all()
    np.testing.assert_array_equal(noisy.components_, again.components_)


def test_a_schedule_without_a_slope():
    schedule = LinearCooling(5.0, hold=0.5, settle=0.5, n_iter=20)
    assert [schedule.temperature(t) for t in (0, 9, 10, 19)] == [5.0, 5.0, 1.0, 1.0]
