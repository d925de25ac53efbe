"""Models by their names and settings on the command line."""

import pytest

import multicause
from multicause.app.cli.models import make_model
from multicause.posteriors import Preselected


def test_parts_and_other_settings_can_be_set():
    texts = ["posterior__max_active=2", "annealing=null", "tol=1e-3", 'learn=["components"]']
    model = make_model("linear", {"n_components": 3, "posterior": "preselected", "noise": None}, texts)
    assert isinstance(model, multicause.LinearCauses)
    assert isinstance(model.posterior, Preselected)
    assert model.posterior.max_active == 2
    assert (model.annealing, model.tol, model.learn, model.noise) == (None, 1e-3, ("components",), "gaussian")
    assert make_model("linear", {"n_components": 12}, ["posterior__max_active=2"]).posterior.max_active == 2
    assert make_model("sparse", {}, ["prior__scale=0.1", "engine__memory_budget=1MiB"]).prior.scale == 0.1
    for text, message in [
        ("posterior__depth=2", "'preselected' has no 'depth'; its settings are candidates"),
        (
            "speed=2",
            "The model 'linear' has no speed; its settings are --components, --noise, .*and with --set comb",
        ),
    ]:
        with pytest.raises(ValueError, match=message):
            make_model("linear", {"posterior": "preselected"}, [text])
