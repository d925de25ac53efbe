"""Runs of the command line that are stopped, resumed, refused, or still going on."""

import json
import os
import signal
import subprocess
import sys

import numpy as np
import pandas
import pytest

import multicause
from multicause.app.cli.lock import held
from multicause.app.cli.unfinished import unfinished
from multicause.callbacks import Checkpoint
from multicause.callbacks.adapter import FitSession
from multicause.datasets import make_bars
from tests.app.cli.calls import call, result_of

OPTIONS = ["--model", "mixture", "--components", 3, "--seed", 1, "--iterations", 9, "--set", "tol=0", "--no-report"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Data and a run that was not interrupted."""
    path = tmp_path_factory.mktemp("data")
    np.save(path / "rows.npy", make_bars(60, size=3, noise="gaussian", random_state=0).data)
    result_of("fit", path / "rows.npy", *OPTIONS, "--out", path / "run")
    return path


@pytest.fixture(params=[True, False], ids=["every iteration", "several at once"])
def press(monkeypatch, request):
    """Presses Ctrl-C at iterations that are added to a list; the fit tells each at once, or several together."""
    numbers, after = [], Checkpoint.after
    monkeypatch.setattr(FitSession, "every_iteration", request.param)

    def after_iteration(self, iteration):
        if iteration.number in numbers:
            signal.raise_signal(signal.SIGINT)
        after(self, iteration)

    monkeypatch.setattr(Checkpoint, "after", after_iteration)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield numbers
    signal.signal(signal.SIGINT, before)


def settings_of(run):
    """Settings but for the time that the fit took."""
    return {key: value for key, value in json.loads((run / "settings.json").read_text()).items() if key != "seconds"}


def test_a_run_that_was_stopped_goes_on_and_ends_as_if_it_had_not_been(folder, tmp_path, press):
    press += [3, 5]
    run = call("fit", folder / "rows.npy", *OPTIONS, "--out", tmp_path / "run")
    assert run.exit_code == 0
    assert f"Stopped by Ctrl-C. Resume with: multicause fit --resume {tmp_path / 'run'}" in " ".join(run.stdout.split())
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
    first = settings_of(tmp_path / "run")["n_iter"]
    assert first == 3 if FitSession.every_iteration else 3 <= first < 9
    assert result_of("fit", "--resume", tmp_path / "run")["outcome"] == "stopped"
    assert settings_of(tmp_path / "run")["n_iter"] == 5 if FitSession.every_iteration else first < 9
    assert result_of("sample", tmp_path / "run", "--out", tmp_path / "new.npy")["shape"] == [100, 9]
    assert result_of("fit", "--resume", tmp_path / "run")["outcome"] == "max_iter"
    models = [multicause.load(path / "run" / "model.multicause") for path in (folder, tmp_path)]
    for name in ("components_", "activity_", "noise_variance_", "lower_bounds_"):
        np.testing.assert_array_equal(getattr(models[0], name), getattr(models[1], name))
    assert (folder / "run" / "history.csv").read_text() == (tmp_path / "run" / "history.csv").read_text()
    assert settings_of(folder / "run") == settings_of(tmp_path / "run")
    assert sorted(path.name for path in tmp_path.rglob("*")) == [
        *("history.csv", "model.multicause", "new.npy", "run", "settings.json", "versions.json"),
    ]
    run = call("fit", "--resume", tmp_path / "run")
    assert run.exit_code == 2
    assert "is finished, with outcome 'max_iter'; to learn for longer, fit again with more --iterations" in run.stderr


def test_options_with_resume_must_be_those_of_the_run(folder, tmp_path, press):
    press += [3]
    call("fit", folder / "rows.npy", *OPTIONS, "--out", tmp_path / "run")
    for words, message in [
        (
            ["--iterations", 90],
            "--iterations is 90, but the resumed run has 9. A resumed run uses",
        ),
        (["--components", 3, "--starts", 2], "--starts is 2, but the resumed run has the default"),
        (["--set", "tol=1"], "--set is tol=1, but the resumed run has tol=0"),
        (["--patches", "2x2"], "--patches is 2x2, but the resumed run"),
        (["--dtype", "float32"], "--dtype is float32, but the resumed run"),
        ([folder / "run"], "DATA is "),
        (["--out", tmp_path / "other"], "leave out --out"),
    ]:
        run = call("fit", "--resume", tmp_path / "run", *words)
        assert run.exit_code == 2
        assert message in run.stderr
        assert settings_of(tmp_path / "run")["outcome"] == "stopped"
    same = [folder / "rows.npy", *OPTIONS, "--out", tmp_path / "run", "--checkpoint", 1, "--device", "cpu", "--report"]
    assert result_of("fit", "--resume", tmp_path / "run", *same)["outcome"] == "max_iter"
    assert (tmp_path / "run" / "report.html").exists()
    history = [pandas.read_csv(path / "run" / "history.csv") for path in (folder, tmp_path)]
    np.testing.assert_array_equal(history[0]["bound"], history[1]["bound"])


def test_a_run_that_is_still_going_on_is_not_touched(folder, tmp_path):
    out = tmp_path / "run"
    unfinished(out).mkdir()
    (unfinished(out) / "request.json").write_text("{}")
    words = ["fit", folder / "rows.npy", *OPTIONS, "--out", out]
    with held(unfinished(out)):
        for more in ([], ["--force"], ["--resume", out]):
            run = call(*words, *more)
            assert run.exit_code == 2
            assert f"run that is still active (process {os.getpid()} on " in run.stderr
            assert "--force" not in run.stderr
    assert (unfinished(out) / "request.json").read_text() == "{}"
    assert "holds the checkpoints of an interrupted run" in call(*words).stderr


def test_what_a_crash_has_left_is_removed_by_the_next_run_of_the_same_name(folder, tmp_path):
    left, others = f".run-{'0123456789abcdef' * 2}", [f".run2-{'0' * 32}", ".run-notes"]
    for name in (left, *others):
        (tmp_path / name).mkdir()
        (tmp_path / name / "model.multicause").write_text("half")
    result_of("fit", folder / "rows.npy", *OPTIONS, "--out", tmp_path / "run")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*others, "run"])


def test_what_can_be_refused_at_once_is_refused_before_slow_imports(folder, tmp_path):
    program = """
import sys
from multicause.app.cli import main
try:
    main()
except SystemExit as end:
    print(end.code, sorted({"jax", "sklearn", "pandas", "numpy"} & set(sys.modules)))
"""
    (tmp_path / "old.csv").write_text("x")
    for words in [
        ["fit", folder / "rows.npy", "--out", folder / "run"],
        ["fit", tmp_path / "nowhere.npy", "--out", tmp_path / "run"],
        ["fit", "--resume", tmp_path / "run"],
        ["transform", folder / "run", folder / "rows.npy", "--out", tmp_path / "old.csv"],
        ["reconstruct", folder / "run", tmp_path / "nowhere.png", "--out", tmp_path / "new.png"],
        ["sample", folder / "run", "--out", tmp_path / "new.mp3"],
        ["report", folder / "run", "--out", tmp_path / "old.csv"],
    ]:
        found = subprocess.run([sys.executable, "-c", program, *map(str, words)], capture_output=True, text=True)
        assert found.stdout == "2 []\n", found.stderr


def test_several_numbers_of_components_are_compared_and_the_best_is_learned(tmp_path):
    random = np.random.RandomState(0)
    centres = np.array([[0.0, 0.0, 0.0], [9.0, 0.0, 0.0], [0.0, 9.0, 0.0]])
    np.save(tmp_path / "rows.npy", centres[random.randint(3, size=90)] + random.normal(size=(90, 3)))
    options = ["--model", "mixture", "--components", "1,5,3", "--starts", 3]
    found = result_of("fit", tmp_path / "rows.npy", *options, "--out", tmp_path / "run")
    assert found["component_curve"]["numbers"] == [1, 3, 5]
    assert found["component_curve"]["best"] == found["parameters"]["n_components"] == 3
    assert len(multicause.load(tmp_path / "run" / "model.multicause").components_) == 3
    assert "by number of components" in (tmp_path / "run" / "report.html").read_text()


@pytest.mark.parametrize("text", ["0", "3,3", "2;4", "five", "5,", "1.5"])
def test_numbers_of_components_that_make_no_sense(folder, tmp_path, text):
    run = call("fit", folder / "rows.npy", "--components", text, "--out", tmp_path / "run")
    assert run.exit_code == 2
    assert f"--components must be a whole number of at least 1, or several such as 5,10,20; got '{text}'" in " ".join(
        run.stderr.split()
    )
