"""The automatic search as a whole: the number of its iterations, and when its last phase repairs again."""

from types import SimpleNamespace

import numpy as np
import pytest

from multicause import MaximalCauses
from multicause.datasets import make_bars
from multicause.posteriors import Preselected
from multicause.search import automatic
from multicause.search.phases import Search


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("max_iter", [1, 2, 4, 30])
def test_all_stages_of_learning_together_take_no_more_than_max_iter(max_iter):
    X = make_bars(100, size=4, noise="gaussian", random_state=0).data
    assert MaximalCauses(8, posterior=Preselected(3, 2), max_iter=max_iter, random_state=0).fit(X).n_iter_ <= max_iter


@pytest.mark.parametrize(
    ("falls", "repaired"),
    [
        (np.full(16, 5.0), False),  # all are needed
        ([0.1] + 15 * [5.0], True),
        ([0.1, 0.2] + 14 * [5.0], True),
        ([0.1, 0.2, 0.3] + 13 * [5.0], False),  # enough are left over to find a cause that is missing
        ([0.1] + 5 * [5.0], True),
    ],
)
def test_the_last_phase_repairs_again_if_few_causes_are_not_needed(falls, repaired, monkeypatch):
    fit = SimpleNamespace(parameters=None)
    monkeypatch.setattr(automatic, "falls_without", lambda model, data, parameters: np.array(falls))
    monkeypatch.setattr(automatic, "repair", lambda *given, **settings: "repaired")
    plan = SimpleNamespace(
        models=SimpleNamespace(final=None, annealing=None),
        data=SimpleNamespace(n_features=25, n_rows=500),
        max_iter=9,
        tol=0.0,
        random=None,
        watch_phase=lambda model, phase: None,
        loop={},
    )
    assert (automatic.run_final_repair(plan, Search(fit=fit)).fit == "repaired") == repaired


def test_a_missing_cause_is_worth_more_than_the_fit_of_noise():
    """½ log N for each of D values of a component (BIC), per row."""
    data = SimpleNamespace(n_features=25, n_rows=500)
    assert automatic.rise_worth_a_cause(data) == pytest.approx(25 * np.log(500) / 1000)
