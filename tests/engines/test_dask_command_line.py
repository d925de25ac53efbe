"""Engines on the command line: a run on a Dask cluster, and settings that are refused."""

import numpy as np
import pytest

from multicause.app.cli.engines import EngineChoice
from multicause.engines import Dask
from tests.app.cli.calls import call, result_of
from tests.engines.conftest import import_or_skip

import_or_skip("distributed")

OPTIONS = ["--model", "mixture", "--components", 3, "--seed", 1, "--iterations", 6, "--set", "tol=0", "--no-report"]


def test_a_run_on_a_cluster_may_go_on_in_this_process(client, rows, tmp_path, monkeypatch):
    np.save(tmp_path / "rows.npy", rows[:300])
    words = ["fit", tmp_path / "rows.npy", *OPTIONS, "--scheduler", client.scheduler.address, "--checkpoint", 0]

    def interrupted(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("multicause.app.cli.fitting.write_run", interrupted)
        assert call(*words, "--out", tmp_path / "run").exit_code == 130
    assert result_of("fit", "--resume", tmp_path / "run", "--engine", "local")["engine"]["engine"] == "local"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--engine magic", "Unknown engine 'magic'. Known: local, dask."),
        (
            "--engine local --scheduler tcp://x:1",
            "but the engine is local. Use --engine dask, or leave out --scheduler",
        ),
        ("--engine dask --n-jobs 2", "--n-jobs requires --engine local"),
        ("--scheduler tcp://x:1 --devices all", "--devices requires --engine local"),
        ("--devices some", "--devices must be 'all' or a positive number of devices; got 'some'"),
        ("--n-jobs 0", "n_jobs must be a positive number of threads"),
        ("--scheduler tcp://127.0.0.1:9", "No Dask scheduler answers at 'tcp://127.0.0.1:9'"),
    ],
)
def test_engines_that_the_command_line_refuses(words, message, tmp_path, monkeypatch):
    monkeypatch.setattr(Dask.__init__, "__kwdefaults__", {"memory_budget": "2GiB", "timeout": 0.5})
    np.save(tmp_path / "rows.npy", np.eye(4))
    run = call("fit", tmp_path / "rows.npy", "--model", "kmeans", *words.split(), "--out", tmp_path / "run")
    assert run.exit_code == 2
    assert message in run.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["rows.npy"]


@pytest.mark.parametrize(("words", "message"), [("--set tol=x", "tol"), ("--noise loud", "Unknown noise 'loud'")])
@pytest.mark.parametrize("model", ["linear", "auto"])
def test_settings_are_checked_before_a_cluster_is_started(words, message, model, tmp_path, monkeypatch):
    monkeypatch.setattr(Dask, "client", lambda engine: pytest.fail("A cluster was started."))
    np.save(tmp_path / "rows.npy", np.eye(4) - 0.5)
    options = ["--model", model, *words.split(), "--engine", "dask", "--components", 2, "--out", tmp_path / "run"]
    run = call("fit", tmp_path / "rows.npy", *options)
    assert run.exit_code == 2
    assert message in run.stderr


def test_devices_of_the_command_line_are_a_setting_of_the_engine(monkeypatch):
    made = []
    monkeypatch.setattr("multicause.engines.Local", lambda **settings: made.append(settings))
    EngineChoice(devices="all").make("1GiB")
    EngineChoice(devices="4", n_jobs=2).make("1GiB")
    assert [settings["devices"] for settings in made] == ["all", 4]


def test_the_time_limit_of_the_command_line_is_a_setting_of_the_engine():
    assert EngineChoice("dask", timeout=2.5).make("1GiB").timeout == 2.5
    assert EngineChoice("dask").make("1GiB").timeout == Dask().timeout
    with pytest.raises(ValueError, match="--timeout is a time limit of a Dask cluster. Use --engine dask"):
        EngineChoice(timeout=1.0).check()
