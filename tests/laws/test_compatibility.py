"""Which parts fit together: all are known, their table is true, and every other product is refused with reasons."""

import re
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from multicause import (
    HelmholtzMachine,
    IndependentComponents,
    LinearCauses,
    MaximalCauses,
    NonnegativeCauses,
    SparseCoding,
    SpikeAndSlabCauses,
    priors,
)
from multicause.combinations import Maximum, Sum
from multicause.compatibility import IncompatiblePartsError
from multicause.engines import Local
from multicause.model import Model
from multicause.posteriors import Exact
from multicause.updates import LeastSquares
from multicause.wiring import ROLES, check, fits, known_parts, unmet
from tests.laws.products import GROUPS, LEARN, PARTS, D, H, all_models


def test_the_law_covers_every_part():
    for role, known in known_parts().items():
        assert {type(part) for part in known} == {type(part) for part in PARTS[role]}, role


def test_counts():
    fitting, refused = all_models()
    assert (len(fitting), len(refused)) == (392, 73528)
    # All but the one of a recognition network, with all updates that serve each.
    assert sum(len(group) for group in GROUPS) == 391


def test_the_table_of_the_documentation_is_true():
    """All parts of a line combine with each other, and nothing else does."""
    text = (Path(__file__).parents[2] / "docs/developers/compatibility.md").read_text(encoding="utf-8")
    table = text.split("<!-- table of what combines -->")[1].split("<!-- end of table -->")[0]
    lines = [line.strip("| ").split(" | ") for line in table.strip().splitlines()[2:]]
    told = {parts for line in lines for parts in product(*(re.findall("`([^`]*)`", cell) for cell in line))}

    def names(parts):
        return tuple(repr(part) if role == "combination" else type(part).__name__ for role, part in parts.items())

    known = [dict(zip(ROLES, parts, strict=True)) for parts in product(*known_parts().values())]
    assert told == {names(parts) for parts in known if fits(Model(**parts, learn=LEARN))}


def test_every_refusal_has_reasons_and_one_error():
    """All refused products have reasons in words; the error is raised for some of them, as it takes longer."""
    refused = all_models()[1]
    for model in refused[::50]:
        reasons = [reason.text(model) for reason in unmet(model)]
        assert reasons
        assert all(" needs " in reason for reason in reasons)
    for model in refused[::3000]:
        reasons = [reason.text(model) for reason in unmet(model)]
        with pytest.raises(IncompatiblePartsError, match="These parts do not fit together") as caught:
            check(model)
        assert all(reason in str(caught.value) for reason in reasons)


@pytest.mark.parametrize(("kind", "n_wired"), [(LinearCauses, 18), (NonnegativeCauses, 19), (MaximalCauses, 15)])
def test_estimators_wire_what_fits_and_refuse_the_rest(kind, n_wired):
    """One part of a model at a time is replaced by every other part: it is wired, or refused by that one error."""
    wired = 0
    for role, parts in known_parts().items():
        for part in parts:
            if role == "combination" and not isinstance(part, Maximum if kind is MaximalCauses else Sum):
                continue
            if role == "combination" and kind is NonnegativeCauses and part == Sum():
                continue
            model, error = wire(kind(H, **{role: part}))
            if model is None:
                assert f"These parts of {kind.__name__} do not fit together: (1) " in error
                assert "use one of these: " in error or " would serve" in error
            else:
                assert fits(model, kind)
                wired += 1
    assert wired == n_wired


def wire(estimator):
    """The model of an estimator and no error, or none and the error."""
    try:
        return estimator._wire(Local().load(np.eye(D), np.ones(D))), ""
    except IncompatiblePartsError as error:
        return None, str(error)


def test_a_subclass_may_wire_what_its_base_may():
    class Machine(HelmholtzMachine):
        pass

    assert fits(wire(Machine(2))[0], Machine)
    with pytest.raises(IncompatiblePartsError, match="needs wake-sleep learning, .*; LinearCauses does not"):
        LinearCauses(2, prior=priors.Layered()).fit(np.eye(4))


@pytest.mark.parametrize(
    "model",
    [
        SpikeAndSlabCauses(3, posterior="preselected"),
        SparseCoding(3, posterior=Exact()),
        IndependentComponents(3, update=LeastSquares()),
        HelmholtzMachine(3, posterior=Exact()),
    ],
    ids=lambda model: type(model).__name__,
)
def test_remedies_are_arguments_of_the_estimator(model):
    """And with a remedy, the model is wired."""
    with pytest.raises(IncompatiblePartsError) as refused:
        model.check_settings()
    named = set(re.findall(r"(\w+)=[A-Z]\w*\(", str(refused.value).partition("use one of these: ")[2]))
    assert named
    assert named <= set(model.get_params(deep=False))
