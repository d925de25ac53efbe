"""Constraints of constructor arguments follow from the signature of an estimator."""

from __future__ import annotations

from inspect import signature

import pytest

import multicause
from multicause import posteriors
from multicause.estimators.base import BaseModel
from multicause.estimators.settings import Named

ESTIMATORS = [
    estimator
    for estimator in (getattr(multicause, name) for name in multicause.__all__)
    if isinstance(estimator, type) and issubclass(estimator, BaseModel)
]


class Annotated(BaseModel):
    """Arguments with names that all models share, with and without None and names of parts."""

    _constraints = {"own": [int]}

    def __init__(
        self,
        n_components: int | None = 3,
        posterior: posteriors.Posterior | None = None,
        noise: str = "gaussian",
        flag: bool = False,
        sizes: tuple[int, ...] | None = (),
        own: Missing | None = 1,  # noqa: F821
        free: float = 0.5,
    ) -> None:
        """Nothing is stored, because no object is made."""


class Plain(BaseModel):
    """Arguments without annotations."""

    def __init__(self, n_components=3, posterior=None, max_iter=None, flag=True):
        """Nothing is stored, because no object is made."""


def test_constraints_follow_from_names_types_and_none():
    found = Annotated._parameter_constraints
    assert set(found) == {"n_components", "posterior", "noise", "flag", "sizes", "own"}
    assert found["posterior"] == [posteriors.Posterior, None]
    assert (found["flag"], found["sizes"], found["own"]) == (["boolean"], [tuple, list, None], [int, None])
    assert None in found["n_components"]
    assert [type(constraint) for constraint in found["noise"][:1]] == [Named]
    plain = Plain._parameter_constraints
    assert set(plain) == {"n_components", "posterior", "max_iter"}
    assert None not in plain["n_components"]
    assert None in plain["max_iter"]
    assert isinstance(plain["posterior"][0], Named)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_all_arguments_of_all_models_have_constraints(estimator):
    assert set(estimator._parameter_constraints) == set(signature(estimator).parameters)
    own = {name for base in estimator.__mro__ for name in vars(base).get("_constraints", {})}
    assert own <= set(signature(estimator).parameters)


def test_parts_that_have_no_names_are_objects():
    with pytest.raises(ValueError, match=r"'posterior' parameter of HelmholtzMachine must be .*Posterior.* or None\."):
        multicause.HelmholtzMachine(2, posterior="exact").check_settings()


def test_names_stand_for_the_parts_of_the_model():
    sparse = multicause.SparseCoding(2, prior="cauchy").set_params(prior__scale=0.2)
    assert repr(sparse.prior) == "Cauchy(scale=0.2)"
    with pytest.raises(ValueError, match="Unknown prior 'sub_gaussian'. Known: 'cauchy', 'laplace', or an object."):
        multicause.SparseCoding(2, prior="sub_gaussian").set_params(prior__scale=0.2)
    network = multicause.TruncatedAutoencoder(2).set_params(posterior__population=8)
    assert network.posterior == posteriors.Evolved(8)
    energies = multicause.EnergyComponents(expert="student").set_params(expert__exponent=1.5)
    assert energies.expert.exponent == 1.5
