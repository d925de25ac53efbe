"""When learning ends."""

import numpy as np
import pytest

from multicause import EnergyComponents, HelmholtzMachine, MaximalCauses, SoftmaxNetwork
from multicause.learning.convergence import MAX_FALLS, Convergence, Outcome
from multicause.learning.updates import CreditMean

COOLED, WARM = np.array([True]), np.array([False])


def judge(convergence, *bounds, cooled=COOLED):
    return [bool(convergence.judge(np.array([b]), np.zeros(1), cooled)[0]) for b in bounds]


def test_a_small_rise_over_three_iterations_is_convergence():
    convergence = Convergence(1, tol=1e-3, monotone=True, epsilon=1e-16)
    judge(convergence, -10.0, -9.0, -8.9995, -8.9992)
    assert not convergence.converged[0]
    judge(convergence, -8.9991)
    assert convergence.converged[0]
    assert not convergence.fell[0]


def test_a_fall_of_a_monotone_update_ends_learning_without_convergence():
    convergence = Convergence(1, tol=1e-3, monotone=True, epsilon=1e-16)
    assert judge(convergence, -10.0, -9.0, -9.0001) == [True, True, False]
    assert convergence.fell[0]
    assert not convergence.converged[0]
    assert convergence.bound[0] == -9.0


def test_roundings_are_no_fall():
    convergence = Convergence(1, tol=1e-3, monotone=True, epsilon=1e-7)
    assert judge(convergence, -100.0, -100.00001) == [True, True]


@pytest.mark.parametrize("bound", [np.nan, np.inf, -np.inf])
def test_a_step_to_an_infinite_bound_is_never_kept(bound):
    for cooled in (COOLED, WARM):
        convergence = Convergence(1, tol=1e-3, monotone=False, epsilon=1e-16)
        assert judge(convergence, -10.0, bound, cooled=cooled) == [True, False]
        assert not convergence.converged[0]


def test_a_fixed_point_step_that_falls_is_tried_at_half_the_length():
    convergence = Convergence(1, tol=1e-3, monotone=False, epsilon=1e-16)
    assert judge(convergence, -10.0, -11.0, -10.5) == [True, False, False]
    assert convergence.length[0] == 0.25
    assert judge(convergence, -9.0) == [True]
    assert convergence.length[0] == 0.5
    assert not convergence.converged[0]


def test_where_no_step_helps_learning_has_converged():
    convergence = Convergence(1, tol=1e-3, monotone=False, epsilon=1e-16)
    judge(convergence, -10.0, *[-10.1] * (MAX_FALLS - 1))
    assert not convergence.converged[0]
    judge(convergence, -10.1)
    assert convergence.converged[0]
    assert convergence.bound[0] == -10.0


def test_a_short_step_does_not_look_like_rest():
    convergence = Convergence(1, tol=1e-3, monotone=False, epsilon=1e-16)
    judge(convergence, -10.0, *[-11.0] * 8)  # length is now 1/256
    judge(convergence, -10.0 + 5e-4)  # a rise below tol, but of one short step
    assert not convergence.converged[0]


def test_steps_to_and_fro_that_get_nowhere_are_convergence():
    """Each second step is taken back, and the others rise by a tenth of tol."""
    convergence = Convergence(1, tol=1e-3, monotone=False, epsilon=1e-16)
    for k in range(12):
        judge(convergence, -10.0 + 1e-4 * k, -11.0)
    assert convergence.converged[0]


def test_bounds_at_different_temperatures_are_not_compared():
    convergence = Convergence(1, tol=1e-3, monotone=True, epsilon=1e-16)
    assert judge(convergence, -5.0, -7.0, cooled=WARM) == [True, True]
    assert judge(convergence, -9.0) == [True]
    assert not convergence.fell[0]


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


@pytest.mark.filterwarnings("error::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "model",
    [
        MaximalCauses(2, random_state=0),
        SoftmaxNetwork(2, temperature=2.0, random_state=0),
        HelmholtzMachine(2, random_state=0),
        EnergyComponents(2, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_a_batch_of_a_stream_was_not_stopped_and_is_no_reason_to_warn(model, compiled_quickly):
    """The steps that it asks for are done."""
    X = (np.random.RandomState(0).uniform(size=(40, 4)) < 0.5).astype(float)
    for number in (1, 2):
        model.partial_fit(X)
        assert model.outcome_ == "max_iter"
        assert not model.converged_
        if not isinstance(model, EnergyComponents):  # which counts updates
            assert model.n_iter_ == number
