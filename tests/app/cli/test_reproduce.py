"""``multicause reproduce`` with a single experiment."""

import json
import warnings

import pytest
from sklearn.exceptions import ConvergenceWarning

from multicause.app.cli import reproduce
from multicause.app.cli.output import Output
from multicause.app.experiments import experiment
from multicause.app.experiments.table import Line
from tests.app.cli.calls import call, result_of


def test_reproduce_lists_and_refuses(tmp_path):
    listed, names = call("reproduce", "--list").output, result_of("reproduce", "--list")["experiments"]
    assert "mca_ex" in names
    assert all(f" {name} " in listed for name in names)
    assert "Lücke & Eggert 2010, Expectation Truncation (ET10)" in listed
    run = call("reproduce", "nonsense")
    assert run.exit_code == 2
    assert "Unknown experiment 'nonsense'. Known: 'mca_ex'" in run.output
    assert call("reproduce", "mca_ex", "--trials", "0").exit_code == 2


def test_a_long_experiment_tells_each_line_as_it_is_found(monkeypatch):
    told = []

    def long(trials, *, jobs):
        return (Line(f"row {number}", "much", f"{len(told)} told", number < 1) for number in range(2))

    monkeypatch.setattr(reproduce, "experiment", lambda name: long)
    say = Output.say
    monkeypatch.setattr(Output, "say", lambda self, text, **style: (told.append(text), say(self, text, **style)))
    run = call("reproduce", "mca08", "--trials", 3)
    assert run.exit_code == 1
    assert told == ["row 0: 0 told", "row 1: 1 told"]
    assert run.stdout.startswith("row 0: 0 told\nrow 1: 1 told\nmca08, 3 trials")
    told.clear()
    run = call("reproduce", "mca08", "--json")
    assert [line["found"] for line in json.loads(run.stdout)["lines"]] == ["0 told", "1 told"]


def test_fits_that_lose_a_cause_are_counted_and_not_warned_of(monkeypatch, recwarn):
    def warning(trials, *, jobs):
        for _ in range(2):
            warnings.warn("cause_died", ConvergenceWarning, stacklevel=1)
            yield Line("row", "much", "little", True)

    monkeypatch.setattr(reproduce, "experiment", lambda name: warning)
    assert call("reproduce", "mca08").exit_code == 0
    assert not [caught for caught in recwarn if caught.category is ConvergenceWarning]


def test_an_experiment_returns_what_was_asked_and_found():
    lines = experiment("mca_ex")(1)
    assert lines[0].found == "1 of 1"
    assert all(line.reached for line in lines)
    with pytest.raises(ValueError, match="Unknown setting 'quick'. Known: 'default', 'paper'"):
        experiment("mca_ex")(1, setting="quick")
