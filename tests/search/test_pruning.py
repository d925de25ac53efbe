"""Backward elimination of causes that are not needed: what is silenced, when it ends, and that true causes stay."""

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from multicause import LinearCauses, MaximalCauses
from multicause.arrays import double_precision
from multicause.datasets import make_bars
from multicause.em.loop import learn
from multicause.em.results import one_start
from multicause.metrics import recovered_causes
from multicause.priors import Bernoulli
from multicause.records import Parameters
from multicause.search.phases import Search
from multicause.search.pruning import (
    find_surplus,
    least_needed,
    rise_of_missing_cause,
    rise_worth_a_cause,
    silent_causes,
    without,
)
from multicause.search.tournament import VARIANT_TOL
from multicause.search.variants import falls_without
from tests.search.problem import CAUSES, problem

WORTH = 10.0


def rows_of_weight(n_weighted, weight):
    return SimpleNamespace(n_features=25, n_weighted=n_weighted, overview=SimpleNamespace(weight=weight))


def test_a_missing_cause_is_worth_more_than_the_fit_of_noise():
    """½ log N for each of D values of a component (BIC), per row. A weight of two is two rows."""
    assert rise_worth_a_cause(rows_of_weight(500, 500.0)) == pytest.approx(25 * np.log(500) / 1000)
    assert rise_worth_a_cause(rows_of_weight(250, 500.0)) == pytest.approx(25 * np.log(500) / 1000)
    assert rise_worth_a_cause(rows_of_weight(500, 5.0)) == pytest.approx(25 * np.log(500) / 1000)
    assert rise_worth_a_cause(rows_of_weight(1, 1.0)) == VARIANT_TOL


@pytest.mark.parametrize(
    ("falls", "silenced"),
    [
        ([100, 120, 180, 190], []),  # all are missed about equally
        ([2, 400, 25, 600], [0, 2]),  # two groups, far from each other
        ([2, 50, 8, 60, 900], [0, 2]),  # three groups: the first one
        ([50, 300, 30, 99, 120], [2]),  # no clear gap: an eighth of them, at least one
        ([1, 3, 5, 9], []),  # none is worth a component, so that none differs from the others
        ([0.0, 100, 150, 180], []),  # the first one is silent already
        ([7.0], []),
    ],
)
def test_causes_that_are_missed_least_are_silenced(falls, silenced):
    present = np.array(falls) > 0
    found = least_needed(np.array(falls, dtype=float), np.eye(len(falls)), present, WORTH)
    assert np.flatnonzero(found).tolist() == silenced


@pytest.mark.parametrize(
    ("falls", "rise"),
    [
        ([20, 600, 2, 480, 28, 540], 80),  # three of six, and the others are missed equally
        ([20, 600, 2, 480, 55, 540], None),  # one of the three may be a rare cause
        ([20, 600, 2, 290, 28, 550], None),  # one of the others is missed less: a rare cause, or a copy
        ([20, 600, 2, 1300, 28, 550], None),  # one of them may represent a mixture of two
        ([2, 600, 500, 450, 550, 520, 530, 510], None),  # a single one may be in place of a cause that is missing
        ([20, 12, 2, 15, 600], None),  # one cause alone cannot be compared with others
        ([100, 120, 180, 190], None),
        ([3, 5, 9, 1], None),  # none is worth a component
        ([np.nan, 5, 9, 700, 600, 1], None),
    ],
)
def test_repair_may_be_short_if_there_are_surplus_components(falls, rise):
    assert rise_of_missing_cause(np.array(falls, dtype=float), WORTH) == rise


def test_the_rise_with_a_missing_cause_is_that_of_a_row_of_the_search():
    """Falls are sums over the rows of the search, by the posterior of the user's model."""
    given = problem("sum")
    W = np.zeros((5, CAUSES.shape[1]))
    W[:3] = CAUSES
    parameters = given.parameters(W)
    parameters.prior["activity"] = np.array([0.3, 0.3, 0.3, 1e-6, 1e-6])
    models = SimpleNamespace(final=given.model, search=None)
    plan = SimpleNamespace(models=models, data=given.data, search_data=given.data)
    with double_precision():
        falls = falls_without(given.model, given.data, parameters)
        found = find_surplus(plan, Search(fit=SimpleNamespace(parameters=parameters)))
    assert np.sort(falls)[2] > 3 * np.sort(falls)[1]
    assert found.surplus == pytest.approx(np.sort(falls)[2] / 6 / len(given.rows))


def test_causes_that_mostly_coincide_are_found_among_surplus_components(seed):
    """Three pairs of causes, which occur alone in 12 % of their rows. Annealing alone finds mixtures of both."""
    random = np.random.RandomState(seed)
    causes = np.kron(np.eye(6), np.full((1, 4), 10.0))
    states = np.repeat(random.uniform(size=(300, 3)) < 0.3, 2, axis=1) & (random.uniform(size=(300, 6)) > 0.12)
    X = (states[:, :, None] * causes).max(axis=1) + random.normal(size=(300, 24))
    assert recovered_causes(MaximalCauses(8, random_state=seed).fit(X), causes).injective


def test_one_of_several_copies_stays():
    """None of them is missed beside the others, but all together are."""
    components = np.array([[1.0, 0, 0], [0.98, 0.1, 0], [0, 0, 1], [1, 1, 1]])
    found = least_needed(np.array([1.0, 2.0, 500.0, 600.0]), components, np.ones(4, dtype=bool), WORTH)
    assert found.tolist() == [True, False, False, False]


def test_silent_causes_have_components_of_zeros_and_stay_silent_in_em():
    given = problem("sum")
    parameters = given.parameters(np.concatenate([CAUSES, CAUSES[:1]]))
    fewer = without(given.model, parameters, np.array([False, False, False, True]))
    np.testing.assert_array_equal(fewer.components[:3], CAUSES)
    assert not fewer.components[3].any()
    assert parameters.components[3].any()  # the given ones are not changed
    after = given.learn(learn, one_start(fewer), 20)
    activity = after.parameters.prior["activity"]
    assert activity[3] < 0.05 * activity[:3].min()


def test_a_row_of_weight_thirty_is_thirty_rows():
    model = SimpleNamespace(prior=Bernoulli())
    parameters = Parameters(np.eye(2), {"activity": np.array([0.0036, 0.3])}, {})
    repeated = SimpleNamespace(n_weighted=60, overview=SimpleNamespace(weight=1800.0))
    assert silent_causes(model, parameters, repeated).tolist() == [False, False]
    once = SimpleNamespace(n_weighted=60, overview=SimpleNamespace(weight=60.0))
    assert silent_causes(model, parameters, once).tolist() == [True, False]


def test_causes_that_come_back_are_learned_as_if_none_had_been_left_out():
    """With much noise, components of zeros grow again under the sum rule, as copies of each other."""
    bars = make_bars(300, size=3, combination="sum", noise="gaussian", random_state=0)
    rows = bars.data + 8 * np.random.RandomState(1).randn(*bars.data.shape)
    model = LinearCauses(6, random_state=0).fit(rows)
    differences = np.linalg.norm(model.components_[:, None] - model.components_, axis=2)[np.triu_indices(6, k=1)]
    assert differences.min() > 1
    assert not any("not needed" in change.reason for change in model.bound_changes_)


def test_without_pruning_the_change_of_posterior_is_recorded_though_causes_have_died():
    rows = make_bars(10, size=3, noise="poisson", random_state=0).data
    with pytest.warns(ConvergenceWarning):
        model = MaximalCauses(12, noise="poisson", random_state=0).fit(rows)
    assert any("posterior" in change.reason for change in model.bound_changes_)


def test_causes_of_one_shared_activity_cannot_be_silenced():
    shared = Bernoulli(shared=True)
    assert shared.silenced(shared.initialize(3, None), np.array([True, False, False])) is None


@pytest.mark.parametrize(
    ("model", "data"),
    [
        (MaximalCauses(9, noise="poisson"), {"noise": "poisson"}),  # all states are shared, no last phase otherwise
        (LinearCauses(12), {"combination": "sum", "noise": "gaussian"}),
    ],
)
def test_surplus_components_are_named_by_their_activities(model, data, seed):
    bars = make_bars(300, size=3, random_state=seed, **data)
    with pytest.warns(ConvergenceWarning, match="Lower n_components"):
        model.set_params(random_state=seed).fit(bars.data)
    recovery = recovered_causes(model, bars.causes)
    others = np.setdiff1d(np.arange(len(model.components_)), recovery.mapping)
    assert recovery.injective
    assert model.outcome_ == "cause_died"
    assert model.activity_[recovery.mapping].min() > 0.2
    assert model.activity_[others].max() < 0.01


def test_with_as_many_components_as_causes_all_stay(seed):
    bars = make_bars(300, size=3, noise="poisson", random_state=seed)
    model = MaximalCauses(6, noise="poisson", random_state=seed).fit(bars.data)
    assert recovered_causes(model, bars.causes).injective
    assert model.outcome_ == "converged"
