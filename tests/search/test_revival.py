"""Dead causes come back where data are explained worst."""

import numpy as np
import pytest

from multicause import LinearCauses
from multicause.arrays import double_precision
from multicause.em.usage import dead_causes
from multicause.engines import Local
from multicause.inference import arrange
from multicause.priors import Graded
from multicause.records import Parameters
from multicause.search.revival import WORST, revive, worst_rows
from tests.oracles import enumeration as oracle
from tests.search.problem import CAUSES, problem

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def additive(n=300):
    """Sums of eight causes: rows (n, 16) and causes (8, 16)."""
    random = np.random.RandomState(0)
    causes = random.normal(0, 3, (8, 16))
    states = random.uniform(size=(n, 8)) < 0.2
    return states @ causes + 0.5 * random.normal(size=(n, 16)), causes


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
    given = problem("sum")
    parameters = given.parameters(np.concatenate([CAUSES[:2], np.zeros((1, 6))]))
    parameters.prior["activity"] = np.array([0.2, 0.4, 0.9])
    dead = np.array([False, False, True])
    with double_precision():
        worst = worst_rows(given.model, given.data, parameters)
        revived = revive(given.model, given.data, parameters, dead, worst, np.random.RandomState(0))
    W, sigma = parameters.components, 1.0
    table = oracle.log_joint(given.rows, W, parameters.prior["activity"], "sum", "gaussian", sigma)
    evidence, q = oracle.log_evidence(table), oracle.posterior(table)
    np.testing.assert_array_equal(worst, np.argsort(evidence, kind="stable")[: int(WORST * len(evidence))])
    residuals = (given.rows - q @ oracle.all_states(3) @ W)[worst]
    assert np.abs(residuals - revived.components[2]).max(axis=1).min() < 1e-9
    np.testing.assert_array_equal(revived.components[:2], W[:2])
    np.testing.assert_allclose(revived.prior["activity"], [0.2, 0.4, 0.3])


def test_revived_causes_of_several_levels_have_the_mean_probabilities_of_the_others():
    rows = additive(60)[0]
    estimator = LinearCauses(4, prior=Graded((0, 1, 2)))
    with double_precision():
        data = Local().load(rows)
        model = estimator._wire(data)
        data = arrange(model, data, 4)
        probabilities = np.array([[0.5, 0.3, 0.2], [0.7, 0.1, 0.2], [0.9, 0.05, 0.05], [0.1, 0.1, 0.8]])
        noise = {"variance": np.array(1.0), "floor": np.array(1e-6), "origin": rows.mean(axis=0)}
        parameters = Parameters(rows[:4], {"level_probabilities": probabilities}, noise, model.posterior.initialize())
        dead = np.array([False, False, True, True])
        revived = revive(model, data, parameters, dead, np.arange(6), np.random.RandomState(0))
    found = revived.prior["level_probabilities"]
    np.testing.assert_array_equal(found[:2], probabilities[:2])
    np.testing.assert_allclose(found[2:], [[0.6, 0.2, 0.2]] * 2)


def test_causes_that_no_row_uses_come_back():
    """Five of eight components begin far from all data, so that plain EM never uses them."""
    X, causes = additive()
    init = np.concatenate([causes[:3], 1e3 * np.random.RandomState(1).normal(size=(5, 16))])
    settings = {"init": init, "max_iter": 120, "random_state": 0}
    dead = LinearCauses(8, repair=False, **settings).fit(X)
    alive = LinearCauses(8, **settings).fit(X)
    assert dead.outcome_ == "cause_died"
    assert alive.outcome_ != "cause_died"
    assert alive.score(X) > dead.score(X) + 5
