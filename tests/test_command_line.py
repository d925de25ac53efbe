"""The command line, as a user calls it."""

import pytest
from typer.testing import CliRunner

from multicause.cli.commands import app
from multicause.experiments import experiment
from multicause.plotting import draw_images


def test_demo_prints_a_table_and_writes_a_picture(tmp_path):
    run = CliRunner().invoke(app, ["demo", "--out", str(tmp_path / "new" / "folder")])
    assert run.exit_code == 0, run.output
    assert "bars with a cause of their own" in run.output
    picture = tmp_path / "new" / "folder" / "bars.png"
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert picture.stat().st_size > 5000


def test_reproduce_lists_and_refuses(tmp_path):
    assert "mca_ex" in CliRunner().invoke(app, ["reproduce", "--list"]).output
    run = CliRunner().invoke(app, ["reproduce", "nonsense"])
    assert run.exit_code == 2
    assert "Unknown experiment 'nonsense'. Known: 'mca_ex'" in run.output
    assert CliRunner().invoke(app, ["reproduce", "mca_ex", "--trials", "0"]).exit_code == 2


def test_an_experiment_returns_what_was_asked_and_found():
    lines = experiment("mca_ex")(1)
    assert lines[0].found == "1 of 1"
    assert all(line.reached for line in lines)
    with pytest.raises(ValueError, match="Unknown setting 'quick'. Known: 'default', 'paper'"):
        experiment("mca_ex")(1, setting="quick")


def test_images_of_the_wrong_size():
    with pytest.raises(ValueError, match=r"shape \(n, 6\) for images of 2×3; got \(1, 5\)"):
        draw_images(None, [[1, 2, 3, 4, 5]], (2, 3))
