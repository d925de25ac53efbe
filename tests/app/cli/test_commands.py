"""What all commands have: help, version, details of errors and a device."""

import json
import os
import subprocess
import sys

import pytest

import multicause
from tests.app.cli.calls import call


def test_verbose_shows_where_and_help_has_examples(tmp_path):
    run = call("fit", tmp_path / "nowhere", "--out", tmp_path / "run", "--verbose")
    assert "Traceback" in run.stderr
    assert run.stderr.endswith(f"Error: There is no {str(tmp_path / 'nowhere')!r}.\n")
    assert call("--version").output == f"multicause {multicause.__version__}\n"
    for command in ("demo", "fit", "transform", "sample", "reconstruct", "report", "reproduce", "benchmark"):
        text = call(command, "--help").output
        assert f"multicause {command}" in text, command
        assert "--json" in text
        assert "--verbose" in text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nonsense"], "Error: No such command 'nonsense'. See {} --help.\n"),
        (["--nonsense"], "Error: No such option: --nonsense. See {} --help.\n"),
        (["demo", "--zzz"], "Error: No such option: --zzz. See {} demo --help.\n"),
    ],
)
def test_errors_of_usage_are_one_line(words, message):
    run = call(*words)
    name = run.stderr.partition("See ")[2].split()[0]  # of the program that runs the command
    assert (run.exit_code, run.stdout, run.stderr) == (2, "", message.format(name))
    if not words[0].startswith("--"):
        run = call(*words, "--json")
        assert json.loads(run.stdout) == {"error": run.stderr[len("Error: ") : -1], "exit_code": 2}


def test_without_arguments_the_help_is_shown():
    run = call()
    assert "multicause demo" in run.output
    assert "Error" not in run.output


def test_help_shows_no_type_of_flags():
    for words in (["--help"], ["fit", "--help"], ["transform", "--help"]):
        text = call(*words).stdout
        assert "--help" in text
        assert "bool" not in text.lower()
        assert "BOOLEAN" not in text


def test_a_device_that_is_not_there(tmp_path, folder):
    """Said in one line, with the devices that are there and what to install."""
    words = ["sample", folder / "run", "--device", "gpu", "--out", tmp_path / "new.npy"]
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "ROCR_VISIBLE_DEVICES": ""}
    found = subprocess.run(
        [sys.executable, "-m", "multicause", *map(str, words)], capture_output=True, text=True, env=environment
    )
    assert found.returncode == 2
    *_, line = found.stderr.splitlines()  # before it, JAX may say something of its own
    assert line.startswith("Error: JAX cannot use a gpu here")
    assert "available devices: cpu:0. Use one of them (device 'auto')" in line
    assert "pip install 'multicause[cuda]'" in line
