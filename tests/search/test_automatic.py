"""The automatic search as a whole: the number of its iterations."""

import pytest

from multicause import MaximalCauses
from multicause.datasets import make_bars
from multicause.posteriors import Preselected


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("max_iter", [1, 2, 4, 30])
def test_all_stages_of_learning_together_take_no_more_than_max_iter(max_iter):
    X = make_bars(100, size=4, noise="gaussian", random_state=0).data
    assert MaximalCauses(8, posterior=Preselected(3, 2), max_iter=max_iter, random_state=0).fit(X).n_iter_ <= max_iter
