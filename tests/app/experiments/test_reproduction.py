"""All experiments on one page."""

import json
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from multicause.app import experiments
from multicause.app.cli import reproduce as command
from multicause.app.experiments import et10
from multicause.app.experiments.ebm01_filters import _statistics
from multicause.app.experiments.table import Line
from tests.app.cli.calls import call, result_of


def test_every_experiment_is_listed_with_its_duration():
    found = result_of("reproduce", "--list")
    assert set(found["durations"]) == set(found["experiments"]) == set(experiments.NAMES)
    assert set(experiments.QUICK) == set(experiments.NAMES) - {"tn10"}  # which runs the others of its name
    assert found["quick_seconds"] == {name: short.seconds for name, short in experiments.QUICK.items()}
    assert min(found["quick_seconds"].values()) > 0
    assert sum(found["quick_seconds"].values()) < 2 * 25 * 60  # at most 25 minutes of two cores


def test_all_experiments_make_one_page(monkeypatch, tmp_path):
    """With experiments that stand in for those of the papers, one of which fails."""
    picture = tmp_path / "drawn.png"
    picture.write_bytes(b"\x89PNG")
    asked = {}

    def experiment(name):
        def run(trials, *, jobs, setting=None):
            asked[name] = (trials, setting)
            if name == "et10":
                raise ValueError("The data are not there.")
            if name == "peers":
                raise ZeroDivisionError("division by zero")
            return [Line("<rate>", "90 %", f"{name}: 88 %", False), Line("picture", "", str(picture), True)]

        return run

    monkeypatch.setattr(command, "experiment", experiment)
    run = call("reproduce", "all", "--quick", "--out", tmp_path / "new" / "all.html", "--json")
    assert run.exit_code == 1
    found = json.loads(run.stdout)
    assert found["experiments"] == list(experiments.QUICK)
    assert found["failed"] == ["et10", "peers"]
    assert found["results"]["mca08"] | {"seconds": 0} == {"reached": 1, "lines": 2, "seconds": 0, "problem": None}
    assert asked["ebm01_fig1"] == (1, "quick")
    page = (tmp_path / "new" / "all.html").read_text()
    assert page.count("&lt;rate&gt;") == len(experiments.QUICK) - 2
    assert page.count("data:image/png;base64,") == len(experiments.QUICK) - 2
    assert "ValueError: The data are not there." in page
    assert "ZeroDivisionError: division by zero" in page
    assert "24 of 24 experiments" in page


@pytest.mark.parametrize(
    ("words", "asked"),
    [
        ("peers --quick", (1, "quick")),
        ("tn10 --quick", (1, "quick")),
        ("mca08_patches --quick --trials 3", (3, "paper")),
        ("peers --quick --setting paper", (1, "paper")),
        ("peers", (20, None)),
    ],
)
def test_a_single_experiment_may_be_short(words, asked, monkeypatch):
    def run(trials, *, jobs, setting=None):
        return [Line("trials", "", "", (trials, setting) == asked)]

    monkeypatch.setattr(command, "experiment", lambda name: run)
    assert result_of("reproduce", *words.split())["reached"]


def test_quick_settings_are_known_to_the_experiments():
    for name in ("et10_digits", "et10_patches", "et10_speech"):
        with pytest.raises(ValueError, match="Unknown setting 'slow'. Known: 'paper', 'quick'"):
            experiments.experiment(name)(1, setting="slow")


def test_a_real_experiment_fits_the_page(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(command, "QUICK", {"tn10_factors": experiments.Quick(1, "quick", 5)})
    result_of("reproduce", "all", "--quick", "--out", "all.html")
    page = (tmp_path / "all.html").read_text()
    assert "tn10_factors" in page
    assert np.char.count(page, "data:image/png") >= 1


def test_statistics_of_filters_invent_no_numbers():
    angles = np.radians([0, 5, 90, 45])
    lines = _statistics(np.array([0.1, 0.2, 0.3, 0.4]), angles)
    assert [line.found for line in lines] == ["0.13 to 0.37 per pixel", "75%"]
    assert all(line.reached for line in lines)
    without = _statistics(np.zeros(0), np.zeros(0))
    assert [(line.found, line.reached) for line in without] == [("none", False)] * 2


def test_one_trial_can_miss_what_is_expected():
    """A success rate of 90 % is no number of trials from zero, and an error that nothing has is not small enough."""
    missed = et10._lines_of_default("MCA", "gaussian", [et10.Result(False, 0.5, 0.1)])
    assert [(line.found, line.reached) for line in missed] == [("0 of 1", False), ("none", False)]
    assert missed[0].expected == ">= 1 of 1"
    found = et10._lines_of_default("MCA", "gaussian", [et10.Result(True, 0.1, 0.1)])
    assert all(line.reached for line in found)
    paper = et10._line_of_paper(et10.PAPER[0], [et10.Result(False, 0.5, 0.1)])
    assert (paper.found, paper.reached) == ("0 of 1", False)


def test_the_page_has_a_name_that_browsers_know(tmp_path):
    run = call("reproduce", "all", "--quick", "--out", tmp_path / "page")
    assert run.exit_code == 2
    assert "must end in one of .html, .htm" in run.stderr
    assert not (tmp_path / "page").exists()


def test_warnings_of_single_fits_are_not_printed(monkeypatch, tmp_path, recwarn):
    def run(trials, *, jobs, setting=None):
        warnings.warn("A cause died.", ConvergenceWarning, stacklevel=1)
        return [Line("rate", "90 %", "88 %", False)]

    monkeypatch.setattr(command, "experiment", lambda name: run)
    result_of("reproduce", "all", "--quick", "--out", tmp_path / "all.html")
    assert not [caught for caught in recwarn if caught.category is ConvergenceWarning]


def test_subjects_of_the_list_are_aligned_as_text():
    text = call("reproduce", "--list").stdout
    assert "Times of full runs are estimates" in text
    lines = [line.split("│") for line in text.splitlines() if "│" in line]
    assert len(lines) > len(experiments.NAMES)
    assert all(
        cell.startswith(" ") and not cell.startswith("  ") for line in lines for cell in line[2:4] if cell.strip()
    )
