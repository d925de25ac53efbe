"""Causal models are declarations: few functions of their settings, none of which changes the estimator."""

import re
from pathlib import Path

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

#: All that a model may override, besides methods that users call with data.
OVERRIDE_POINTS = {
    "_parts",
    "_preparer",
    "_solver",
    "_starts",
    "_derived",
    "value_labels",
    "_constraints",
    "_capabilities",
}
#: Public methods of which some models have a version with its own meaning.
PUBLIC = {"fit", "score_samples", "free_energy", "inverse_transform"}
#: Names that are set when a class is created.
GENERATED = re.compile("__|set_.*_request|_sklearn_auto_wrap_output_keys|_parameter_constraints")
DOCS = Path(__file__).parents[2] / "docs" / "developers" / "add_a_model.md"
CAUSAL = [
    model
    for model in (getattr(multicause, name) for name in multicause.__all__)
    if isinstance(model, type) and issubclass(model, CausalEstimator)
]


def test_all_causal_models_are_here():
    assert len(CAUSAL) == 15


@pytest.mark.parametrize("model", CAUSAL)
def test_a_model_overrides_few_methods_and_attributes(model):
    between = model.__mro__[: model.__mro__.index(CausalEstimator)]
    inherited = {name for base in CausalEstimator.__mro__ for name in vars(base)}
    overridden = {name for base in between for name in vars(base) if name in inherited and not GENERATED.match(name)}
    assert overridden - PUBLIC <= OVERRIDE_POINTS
    assert "_parts" in overridden


def test_there_are_at_most_eight_override_points_and_all_are_documented():
    assert len(OVERRIDE_POINTS) <= 8
    assert all(hasattr(CausalEstimator, name) for name in OVERRIDE_POINTS)
    documented = re.findall(r"^\| `(\w+)` \|", DOCS.read_text(), re.MULTILINE)
    assert sorted(documented) == sorted(OVERRIDE_POINTS)


@pytest.mark.parametrize("model", CAUSAL)
def test_constructor_arguments_are_no_class_attributes(model):
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
