"""When learning ends."""

import re

import jax.numpy as jnp
import numpy as np
import pytest

import multicause
from multicause import EnergyComponents, HelmholtzMachine, MaximalCauses, SoftmaxNetwork
from multicause.annealing import LinearCooling
from multicause.arrays import double_precision
from multicause.em.convergence import MAX_FALLS, Convergence, assess_step
from multicause.estimators.base import BaseModel
from multicause.estimators.gradient_causes import GradientCauses
from multicause.outcomes import Outcome
from multicause.updates import CreditMean

COOLED, WARM = np.array([True]), np.array([False])
TOL = 1e-3


class AssessedStart:
    """A start whose bounds are assessed one after the other."""

    def __init__(self, *, monotone, epsilon=1e-16):
        self.monotone, self.epsilon = monotone, epsilon
        self.record = Convergence.begin(1, monotone)

    def __call__(self, *bounds, cooled=COOLED):
        kept = []
        for bound in bounds:
            self.record, accepted = assess_step(self.record, jnp.array([bound]), jnp.zeros(1), cooled, self.epsilon)
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
    start = AssessedStart(monotone=True)
    start(-10.0, -9.0, -8.9995, -8.9992)
    assert not start.converged
    start(-8.9991)
    assert start.converged
    assert not start.fell


def test_a_fall_of_a_monotone_update_ends_learning_without_convergence():
    start = AssessedStart(monotone=True)
    assert start(-10.0, -9.0, -9.0001) == [True, True, False]
    assert start.fell
    assert not start.converged
    assert start.record.bound[0] == -9.0


def test_roundings_are_no_fall():
    assert AssessedStart(monotone=True, epsilon=1e-7)(-100.0, -100.00001) == [True, True]


@pytest.mark.parametrize("bound", [np.nan, np.inf, -np.inf])
def test_a_step_to_an_infinite_bound_is_never_kept(bound):
    for cooled in (COOLED, WARM):
        start = AssessedStart(monotone=False)
        assert start(-10.0, bound, cooled=cooled) == [True, False]
        assert not start.converged


def test_a_fixed_point_step_that_falls_is_tried_at_half_the_length():
    start = AssessedStart(monotone=False)
    assert start(-10.0, -11.0, -10.5) == [True, False, False]
    assert start.record.length[0] == 0.25
    assert start(-9.0) == [True]
    assert start.record.length[0] == 0.5
    assert not start.converged


def test_where_no_step_helps_learning_has_converged():
    start = AssessedStart(monotone=False)
    start(-10.0, *[-10.1] * (MAX_FALLS - 1))
    assert not start.converged
    start(-10.1)
    assert start.converged
    assert start.record.bound[0] == -10.0


def test_a_short_step_does_not_look_like_rest():
    start = AssessedStart(monotone=False)
    start(-10.0, *[-11.0] * 8)  # length is now 1/256
    start(-10.0 + 5e-4)  # a rise below tol, but of one short step
    assert not start.converged


def test_steps_to_and_fro_that_get_nowhere_are_convergence():
    """Each second step is taken back, and the others rise by a tenth of tol."""
    start = AssessedStart(monotone=False)
    for k in range(12):
        start(-10.0 + 1e-4 * k, -11.0)
    assert start.converged


def test_bounds_at_different_temperatures_are_not_compared():
    start = AssessedStart(monotone=True)
    assert start(-5.0, -7.0, cooled=WARM) == [True, True]
    assert start(-9.0) == [True]
    assert not start.fell


def estimators():
    """Every public estimator with its defaults, and some with other settings, as if they had been fitted."""
    classes = [getattr(multicause, name) for name in multicause.__all__]
    required = {multicause.OwnCauses: (abs, abs)}
    models = [one(*required.get(one, ())) for one in classes if isinstance(one, type) and issubclass(one, BaseModel)]
    models += [MaximalCauses(annealing=LinearCooling(5.0)), MaximalCauses(annealing=None)]
    models += [SoftmaxNetwork(annealing=LinearCooling(5.0))]
    for model in models:
        model.components_, model.drift_ = np.eye(2), 0.5
    return models


def test_every_outcome_but_success_names_remedies_that_the_estimator_has():
    """No word of an advice that looks like a setting is one of another estimator."""
    known = {name for model in estimators() for name in model.get_params(deep=False)}
    for model in estimators():
        own = set(model.get_params(deep=False))
        for outcome in Outcome:
            if isinstance(model, multicause.PrincipalComponents) and outcome in (Outcome.MAX_ITER, Outcome.BOUND_FELL):
                continue  # one eigendecomposition can end in neither way
            if isinstance(model, GradientCauses) and outcome in (Outcome.BOUND_FELL, Outcome.CAUSE_DIED):
                assert model.explain_outcome(outcome) is None  # learning by gradients does not look for either
                continue
            advice = model.explain_outcome(outcome)
            assert (advice is None) == (outcome in (Outcome.CONVERGED, Outcome.STOPPED))
            if advice is None:
                continue
            assert len(advice.remedies) > 0
            words = set(re.findall(r"\w+", " ".join(advice.remedies)))
            assert not words & (known - own - {"noise", "temperature"}), (model, outcome)
            assert ("shorten the annealing" in str(advice)) == (
                outcome is Outcome.MAX_ITER and isinstance(getattr(model, "annealing", None), LinearCooling)
            )


def test_advice_on_causes_that_died_depends_on_the_annealing():
    for annealing, text in (
        ("auto", "cause is used); (2) raise n_init;"),
        (None, "(2) use annealing='auto'; (3) raise n_init;"),
        (LinearCooling(5.0), "(2) anneal from a lower temperature or use annealing='auto'; (3) raise n_init;"),
    ):
        model = MaximalCauses(annealing=annealing)
        model.components_ = np.eye(2)
        assert text in str(model.explain_outcome(Outcome.CAUSE_DIED))


def test_advice_on_single_precision_is_for_single_precision():
    for dtype in (np.float32, np.float64):
        for model in (MaximalCauses(), EnergyComponents()):
            model.components_ = np.eye(2, dtype=dtype)
            assert ("use float64 data" in str(model.explain_outcome(Outcome.NON_FINITE))) == (dtype is np.float32)


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
def test_a_batch_of_a_stream_was_not_stopped_and_is_no_reason_to_warn(model):
    """The steps that it asks for are done."""
    X = (np.random.RandomState(0).uniform(size=(40, 4)) < 0.5).astype(float)
    for number in (1, 2):
        model.partial_fit(X)
        assert model.outcome_ == "max_iter"
        assert not model.converged_
        if not isinstance(model, EnergyComponents):  # which counts updates
            assert model.n_iter_ == number
