"""Models of the automatic search: which posteriors its phases have."""

from dataclasses import replace

import pytest

from multicause.posteriors import Exact, Preselected, Truncated
from multicause.search.search_models import choose_models, search_posterior
from tests.search.problem import problem


@pytest.mark.parametrize(
    ("posterior", "n_components", "sizes"),
    [(Exact(), 20, (5, 3)), (Exact(), 4, (4, 3)), (Preselected(4, 2), 20, (4, 2)), (Truncated(3), 20, (5, 3))],
)
def test_the_search_uses_few_states_and_no_data_cut(posterior, n_components, sizes):
    found = search_posterior(replace(problem().model, posterior=posterior), n_components)
    assert found.numbers == sizes
    assert found.keep is None


def test_posteriors_that_ascend_no_bound_anneal_themselves_and_are_compared_by_an_exact_one():
    model = replace(problem().model, posterior=Truncated(2, empty_state=False, compensate=False))
    models = choose_models(model, 6)
    assert models.annealing is model
    assert models.search.posterior == Exact()
    assert models.final is model


def test_posteriors_whose_states_are_shared_by_all_rows_search_themselves():
    model = replace(problem().model, posterior=Exact())
    models = choose_models(model, 8)
    assert models.search is models.final is model
    assert models.annealing.posterior.max_active == 3
    assert choose_models(model, 4) == (model, model, model)
