"""Warnings about data that a model cannot explain."""

import warnings

import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

from multicause import LinearCauses, MaximalCauses
from multicause.datasets import make_bars

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def test_centred_data_and_components_that_cannot_be_negative():
    X = make_bars(100, size=3, noise="gaussian", random_state=0).data
    settings = {"annealing": None, "max_iter": 2, "random_state": 0}
    centred = StandardScaler().fit_transform(X)
    with pytest.warns(ConvergenceWarning, match=r"9 of 9 columns of X have no mean above zero.*without StandardScaler"):
        MaximalCauses(2, **settings).fit(centred)
    for model, rows in ((MaximalCauses(2, **settings), X), (LinearCauses(2, **settings), centred)):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.fit(rows)
        assert not any("no mean above zero" in str(warning.message) for warning in caught)
