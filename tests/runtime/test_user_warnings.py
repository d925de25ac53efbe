"""Warnings point at the line of the user's code, however deep in the package they arise."""

import numpy as np
import pytest
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from multicause import KMeans
from multicause.runtime.user_warnings import warn_user

X = np.random.RandomState(0).normal(size=(30, 2))


def called_from(module, function, *arguments):
    """Return a function that belongs to a module of this name and calls the given one."""
    space = {"__name__": module, "function": function, "arguments": arguments}
    exec("def call():\n    return function(*arguments)", space)
    return space["call"]


@pytest.mark.parametrize(
    "modules", [["multicause.em"], ["multicause.em", "multicause.estimators", "sklearn", "joblib"]]
)
def test_frames_of_the_package_and_of_its_callers_are_skipped(modules):
    function = called_from(modules[0], warn_user, "Look here.")
    for module in modules[1:]:
        function = called_from(module, function)
    with pytest.warns(UserWarning, match="Look here") as caught:
        function()
    assert [record.filename for record in caught] == [__file__]


def test_without_a_message_there_is_no_warning(recwarn):
    warn_user("")
    assert not recwarn


def test_warnings_of_fits_within_scikit_learn_point_at_the_users_line():
    short = make_pipeline(StandardScaler(), KMeans(3, max_iter=1, tol=0, random_state=0))
    for fit in (lambda: short.fit(X), lambda: cross_val_score(short, X, cv=2)):
        with pytest.warns(UserWarning, match="max_iter") as caught:
            fit()
        assert {record.filename for record in caught} == {__file__}
