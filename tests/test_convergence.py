"""When learning ends."""

import jax.numpy as jnp
import numpy as np
import pytest

from multicause import MaximalCauses
from multicause.arrays import double_precision
from multicause.learning.convergence import MAX_FALLS, Convergence, Outcome, judge
from multicause.learning.updates import CreditMean

COOLED, WARM = np.array([True]), np.array([False])
TOL = 1e-3


class Judged:
    """A start whose bounds are judged one after the other."""

    def __init__(self, *, monotone, epsilon=1e-16):
        self.monotone, self.epsilon = monotone, epsilon
        self.record = Convergence.begin(1, monotone)

    def __call__(self, *bounds, cooled=COOLED):
        kept = []
        for bound in bounds:
            self.record, accepted = judge(self.record, jnp.array([bound]), jnp.zeros(1), cooled, self.epsilon)
            kept.append(bool(accepted[0]))
        return kept

    @property
    def converged(self):
        return bool(self.record.converged(TOL, self.monotone)[0])

    @property
    def fell(self):
        return bool(self.record.fell(self.monotone)[0])


@pytest.fixture(autouse=True)
def _in_double_precision():
    with double_precision():
        yield


def test_a_small_rise_over_three_iterations_is_convergence():
    judged = Judged(monotone=True)
    judged(-10.0, -9.0, -8.9995, -8.9992)
    assert not judged.converged
    judged(-8.9991)
    assert judged.converged
    assert not judged.fell


def test_a_fall_of_a_monotone_update_ends_learning_without_convergence():
    judged = Judged(monotone=True)
    assert judged(-10.0, -9.0, -9.0001) == [True, True, False]
    assert judged.fell
    assert not judged.converged
    assert judged.record.bound[0] == -9.0


def test_roundings_are_no_fall():
    assert Judged(monotone=True, epsilon=1e-7)(-100.0, -100.00001) == [True, True]


@pytest.mark.parametrize("bound", [np.nan, np.inf, -np.inf])
def test_a_step_to_an_infinite_bound_is_never_kept(bound):
    for cooled in (COOLED, WARM):
        judged = Judged(monotone=False)
        assert judged(-10.0, bound, cooled=cooled) == [True, False]
        assert not judged.converged


def test_a_fixed_point_step_that_falls_is_tried_at_half_the_length():
    judged = Judged(monotone=False)
    assert judged(-10.0, -11.0, -10.5) == [True, False, False]
    assert judged.record.length[0] == 0.25
    assert judged(-9.0) == [True]
    assert judged.record.length[0] == 0.5
    assert not judged.converged


def test_where_no_step_helps_learning_has_converged():
    judged = Judged(monotone=False)
    judged(-10.0, *[-10.1] * (MAX_FALLS - 1))
    assert not judged.converged
    judged(-10.1)
    assert judged.converged
    assert judged.record.bound[0] == -10.0


def test_a_short_step_does_not_look_like_rest():
    judged = Judged(monotone=False)
    judged(-10.0, *[-11.0] * 8)  # length is now 1/256
    judged(-10.0 + 5e-4)  # a rise below tol, but of one short step
    assert not judged.converged


def test_steps_to_and_fro_that_get_nowhere_are_convergence():
    """Each second step is taken back, and the others rise by a tenth of tol."""
    judged = Judged(monotone=False)
    for k in range(12):
        judged(-10.0 + 1e-4 * k, -11.0)
    assert judged.converged


def test_bounds_at_different_temperatures_are_not_compared():
    judged = Judged(monotone=True)
    assert judged(-5.0, -7.0, cooled=WARM) == [True, True]
    assert judged(-9.0) == [True]
    assert not judged.fell


def test_every_outcome_but_success_names_a_remedy():
    for outcome in Outcome:
        assert bool(outcome.remedy) == (outcome not in (Outcome.CONVERGED, Outcome.STOPPED))


class Exploding(CreditMean):
    """An update that goes wrong after a while."""

    def maximize(self, model, parameters, statistics):
        return super().maximize(model, parameters, statistics) / (statistics["credit"].sum() < 20)


def test_infinite_parameters_are_an_outcome_not_a_result():
    X = np.random.RandomState(0).poisson(3, (30, 4)).astype(float)
    with pytest.warns(UserWarning, match="non_finite.*the last finite ones were kept"):
        model = MaximalCauses(2, random_state=0, update=Exploding(), noise="poisson").fit(X)
    assert model.outcome_ == "non_finite"
    assert not model.converged_
    assert np.isfinite(model.components_).all()
    assert np.isfinite(model.transform(X)).all()
