"""What all commands have: help, version, details of errors and a device."""

import os
import subprocess
import sys

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
