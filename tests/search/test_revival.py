"""Dead causes come back where data are explained worst."""

import numpy as np
import pytest

from multicause import LinearCauses, MaximalCauses
from multicause.datasets import make_bars
from multicause.em.results import dead_causes
from multicause.engines import Local
from multicause.metrics import recovered_causes
from multicause.search.revival import WORST, revive, worst_rows

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def additive(n=300):
    """Sums of eight causes: rows (n, 16) and causes (8, 16)."""
    random = np.random.RandomState(0)
    causes = random.normal(0, 3, (8, 16))
    states = random.uniform(size=(n, 8)) < 0.2
    return states @ causes + 0.5 * random.normal(size=(n, 16)), causes


def fitted_with_dead_causes():
    X, causes = additive()
    init = np.concatenate([causes[:6], causes[5:6], np.zeros((1, 16))])
    model = LinearCauses(8, init=init, annealing=None, learn=("activity",), max_iter=2, random_state=0).fit(X)
    return model, X


def test_dead_causes_are_unused_blank_or_copies():
    class Sums:
        prior = {"active": np.array([9.0, 0.1, 9.0, 9.0, 9.0])}
        weight = 10.0

    class Parameters:
        components = np.array([[1.0, 2.0], [3.0, 1.0], [0.0, 0.0], [1.0, 2.0], [2.0, 2.0]])

    class Data:
        n_weighted = 10

    assert dead_causes(Parameters, Sums, Data).tolist() == [False, True, True, True, False]


def test_new_components_are_residuals_of_the_rows_with_the_lowest_evidence():
    model, X = fitted_with_dead_causes()
    data = Local().load(X)
    worst = worst_rows(model._model, data, model._parameters)
    np.testing.assert_array_equal(worst, np.argsort(model.score_samples(X), kind="stable")[: int(WORST * len(X))])
    dead = np.arange(8) >= 6
    revived = revive(model._model, data, model._parameters, dead, worst, np.random.RandomState(0))
    residuals = (X - model.reconstruct(X))[worst]
    for component in revived.components[dead]:
        assert np.abs(residuals - component).max(axis=1).min() < 1e-6
    np.testing.assert_array_equal(revived.components[~dead], model.components_[~dead])
    np.testing.assert_allclose(revived.prior["activity"][dead], model.activity_[~dead].mean())


@pytest.mark.parametrize("estimator", [LinearCauses])
def test_all_dead_causes_come_back_at_once(estimator):
    """Five of eight causes begin at zero, and there is time for one or two attempts."""
    X, causes = additive()
    init = np.concatenate([causes[:3], np.zeros((5, 16))])
    model = estimator(8, init=init, max_iter=120, random_state=0).fit(X)
    assert model.outcome_ != "cause_died"
    assert model.score(X) > LinearCauses(8, init=causes, random_state=0).fit(X).score(X) - 0.1


def test_surplus_components_are_named_by_their_activity():
    """Twice as many components as bars: all bars are found, and the others are hardly ever active."""
    bars = make_bars(300, size=3, noise="poisson", random_state=0)
    model = MaximalCauses(12, noise="poisson", random_state=0).fit(bars.data)
    found = recovered_causes(model, bars.causes)
    assert found.all_found
