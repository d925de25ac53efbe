"""Causal models are declarations: few functions of their settings, none of which changes the estimator."""

from inspect import signature

import numpy as np
import pytest
from sklearn.base import clone

import multicause
from multicause.em.solver import Solver
from multicause.engines import Local
from multicause.estimators.causal import CausalEstimator
from multicause.estimators.settings import CONSTRAINTS
from multicause.model import Model
from multicause.preparation.base import Preparation

#: What a model may override, besides public methods and class attributes.
OVERRIDE_POINTS = {
    "_parts",
    "_preparer",
    "_solver",
    "_starts",
    "_check_data",
    "_derived",
    "_recognition_model",
}
CAUSAL = [
    model
    for model in (getattr(multicause, name) for name in multicause.__all__)
    if isinstance(model, type) and issubclass(model, CausalEstimator)
]


def test_all_causal_models_are_here():
    assert len(CAUSAL) == 15


@pytest.mark.parametrize("model", CAUSAL)
def test_a_model_overrides_few_methods(model):
    between = model.__mro__[: model.__mro__.index(CausalEstimator)]
    inherited = {name for name in dir(CausalEstimator) if callable(getattr(CausalEstimator, name))}
    overridden = {name for base in between for name in vars(base) if name in inherited and name.startswith("_")}
    overridden -= {name for name in overridden if name.startswith("__")} | {"_parameter_constraints"}
    assert overridden <= OVERRIDE_POINTS
    assert "_parts" in overridden


@pytest.mark.parametrize("model", CAUSAL)
def test_constructor_arguments_are_constrained_and_no_class_attributes(model):
    words = signature(model).parameters
    assert set(model._parameter_constraints) == set(words)
    own = {name for base in model.__mro__ for name in vars(base).get("_constraints", {})}
    assert own <= set(words)
    assert not [name for name in CONSTRAINTS if name in dir(model) and not callable(getattr(model, name))]


@pytest.mark.parametrize("model", CAUSAL)
def test_a_declaration_changes_nothing(model):
    estimator = model()
    before = dict(vars(estimator))
    assert isinstance(estimator._parts(), Model)
    assert isinstance(estimator._preparer(), Preparation)
    assert isinstance(estimator._solver(), Solver)
    assert estimator._wire(Local().load(np.ones((20, 12)))) == clone(estimator)._wire(Local().load(np.ones((20, 12))))
    assert vars(estimator) == before


def test_warnings_point_at_the_users_code():
    X = np.random.RandomState(0).poisson(3, (20, 3)).astype(float)
    with pytest.warns(UserWarning, match="max_iter") as caught:
        multicause.MixtureOfPoissons(2, max_iter=1, tol=0, random_state=0).fit(X)
    assert {record.filename for record in caught} == {__file__}
