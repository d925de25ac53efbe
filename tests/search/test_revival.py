"""Dead causes come back where data are explained worst."""

import numpy as np
import pytest

from multicause import LinearCauses
from multicause.em.results import dead_causes

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


def test_all_dead_causes_come_back_at_once():
    """Five of eight causes begin at zero, and there is time for one or two attempts."""
    X, causes = additive()
    init = np.concatenate([causes[:3], np.zeros((5, 16))])
    model = LinearCauses(8, init=init, max_iter=120, random_state=0).fit(X)
    assert model.outcome_ != "cause_died"
    assert model.score(X) > LinearCauses(8, init=causes, random_state=0).fit(X).score(X) - 0.1
