"""Plan of the automatic search: its iterations, and when it anneals."""

from dataclasses import replace

import numpy as np
import pytest

from multicause.records import Parameters
from multicause.search.search_models import SearchModels
from multicause.search.search_plan import SearchPlan
from tests.search.problem import problem


def plan(max_iter, *, model=None, other_rows=False):
    given = problem()
    model = model or given.model
    rows = object() if other_rows else given.data
    starts = Parameters(np.ones((1, 3, 6)), {}, {})
    settings = (starts, max_iter, 0.0, np.random.RandomState(0), None, None, None)
    return SearchPlan(SearchModels(model, model, model), given.data, rows, *settings)


@pytest.mark.parametrize(
    ("max_iter", "annealing", "search_iterations"), [(300, 60, 250), (60, 20, 40), (29, 9, 20), (2, 0, 2)]
)
def test_phases_share_the_iterations(max_iter, annealing, search_iterations):
    """A third for annealing and for the last phase, at most 60 and 50; nothing is reserved for a phase that is not."""
    shared = plan(max_iter, other_rows=True)
    assert shared.annealing_iterations == annealing
    assert shared.search_iterations == search_iterations
    assert plan(max_iter).search_iterations == max_iter
    assert shared.can_anneal == (annealing >= 10)


def test_components_that_are_not_learned_are_not_annealed():
    fixed = replace(problem().model, learn=frozenset({"activity"}))
    assert plan(300).can_anneal
    assert not plan(300, model=fixed).can_anneal
