"""Ctrl-C and other signals: how a process ends, and what it leaves behind."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time

import numpy as np
import pytest

from multicause.app.cli.quitting import fits_may_stop, install, interrupted_by_exception
from multicause.app.writing import new_folder, parents_of
from multicause.runtime.interruption import STOPPING, clean_up, interruptible

# A program that presses Ctrl-C some times, one by one, when a condition holds in its main thread.
PRESS = r"""
import faulthandler, signal, sys, tempfile, threading, time
signal.signal(signal.SIGINT, signal.default_int_handler)
MAIN = threading.main_thread().ident

def is_compiling():
    # faulthandler reads all frames without giving way to their threads. A walk along f_back could be interrupted, and
    # could then meet frames that have ended.
    with tempfile.TemporaryFile("w+") as file:
        faulthandler.dump_traceback(file)
        file.seek(0)
        stacks = file.read().split("\n\n")
    # A thread that is about to start has the number of the thread that starts it, and no frames.
    main = "".join(stack for stack in stacks if f"{{MAIN:x}}" in stack.partition("\n")[0]).replace("\\", "/")
    return "jax/_src/compiler.py" in main and "multicause/em/loop.py" in main

def compiles_for_long():
    return is_compiling() and time.sleep(0.1) is None and is_compiling()

def press():
    while not {condition}:
        time.sleep(0.001)
    for _ in range({times}):
        signal.pthread_kill(MAIN, signal.SIGINT)
        time.sleep(0.3)  # signals that come faster may be taken for one

threading.Thread(target=press, daemon=True).start()
"""
FIT = """
import numpy as np
from multicause import MaximalCauses
from multicause.posteriors import Preselected

try:
    # Many states of many candidates take long to compile.
    posterior = Preselected(12, 8, keep=None)
    MaximalCauses(12, posterior=posterior, annealing=None, max_iter=3, random_state=0).fit(np.load(sys.argv[1]))
except KeyboardInterrupt:
    print("interrupted")
"""
COMMAND = """
from multicause.app.cli import main
main()
"""


def run(program, *words, condition, times):
    """Run a program until it has been interrupted, with an empty compilation cache, so that it compiles for long."""
    command = [sys.executable, "-c", PRESS.format(condition=condition, times=times) + program, *map(str, words)]
    with tempfile.TemporaryDirectory() as cache:
        environment = os.environ | {"JAX_COMPILATION_CACHE_DIR": cache}
        return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120)


@pytest.fixture
def rows(tmp_path):
    np.save(tmp_path / "rows.npy", np.abs(np.random.RandomState(0).normal(size=(40, 6))))
    return tmp_path / "rows.npy"


def test_ctrl_c_twice_while_a_fit_compiles(rows):
    """Without a crash at the end of the interpreter, whose compiler would still be at work."""
    found = run(FIT, rows, condition="compiles_for_long()", times=2)
    assert (found.returncode, found.stdout, found.stderr) == (0, "interrupted\n", f"{STOPPING}\n")


def test_ctrl_c_twice_on_the_command_line(rows, tmp_path):
    words = ["fit", rows, "--components", 10, "--out", tmp_path / "new" / "run"]
    found = run(COMMAND, *words, condition="compiles_for_long()", times=2)
    assert found.returncode == 130
    assert found.stderr == f"{STOPPING}\nError: Interrupted; no result was written.\n"
    assert list(tmp_path.iterdir()) == [rows]


@pytest.mark.parametrize("module", ["pathlib", "typer", "numpy", "sklearn", "jax"])
def test_ctrl_c_while_modules_are_imported(rows, tmp_path, module):
    words = ["fit", rows, "--out", tmp_path / "run", "--json"]
    found = run(COMMAND, *words, condition=f"{module!r} in sys.modules", times=1)
    assert found.returncode == 130
    assert found.stderr == "Error: Interrupted; no result was written.\n"
    assert found.stdout == '{"error": "Interrupted; no result was written.", "exit_code": 130}\n'


def test_an_interruption_that_waits_for_a_compiler_is_raised_at_the_end_of_the_fit(monkeypatch):
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    monkeypatch.setattr("multicause.runtime.interruption._is_compiling", lambda frame: True)
    with pytest.raises(KeyboardInterrupt), interruptible() as interruption:  # noqa: PT012
        for _ in range(3):
            signal.raise_signal(signal.SIGINT)
        assert interruption.requested
    time.sleep(0.2)  # a retry that came too late would be raised here
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    signal.signal(signal.SIGINT, before)


def test_an_experiment_in_several_processes_gets_an_exception_and_no_fit_of_it_goes_on():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    install(as_json=False)
    handler = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt), interrupted_by_exception(), interruptible() as interruption:
        signal.raise_signal(signal.SIGINT)
    assert not interruption.requested
    assert signal.getsignal(signal.SIGINT) is handler
    with interruptible():  # as in a benchmark, whose first Ctrl-C ends it
        assert signal.getsignal(signal.SIGINT) is handler
    with fits_may_stop(), interruptible() as interruption:
        signal.raise_signal(signal.SIGINT)
    assert interruption.requested
    signal.signal(signal.SIGINT, before)


def test_a_process_that_quits_leaves_nothing_half_written(tmp_path):
    run = tmp_path / "new" / "run"
    with pytest.raises(FileNotFoundError), parents_of(run), new_folder(run):  # noqa: PT012
        clean_up()
        assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("renamed", [1, 2])
def test_a_process_that_quits_while_it_replaces_a_folder_leaves_the_old_or_the_new_one(tmp_path, monkeypatch, renamed):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "x").write_text("old")
    found, rename = [], os.rename

    def quit_after(source, target):
        rename(source, target)
        found.append(target)
        if len(found) == renamed:
            clean_up()
            raise SystemExit

    with monkeypatch.context() as patched, pytest.raises(SystemExit):  # noqa: PT012
        patched.setattr("os.rename", quit_after)
        with new_folder(tmp_path / "run", force=True, files=["x"]) as folder:
            (folder / "x").write_text("new")
    assert (tmp_path / "run" / "x").read_text() == ("old", "new")[renamed - 1]
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_a_process_that_is_ended_while_it_writes_leaves_nothing(tmp_path, name):
    number = getattr(signal, name)
    program = """
import os, signal, sys, time
from pathlib import Path
from multicause.app.cli.quitting import install
from multicause.app.writing import new_folder
signal.signal(int(sys.argv[2]), signal.SIG_DFL)  # the tests themselves may run with nohup
install(as_json=True)
with new_folder(Path(sys.argv[1])) as folder:
    (folder / "x").write_text("half")
    os.kill(os.getpid(), int(sys.argv[2]))
    time.sleep(60)
"""
    words = [sys.executable, "-c", program, str(tmp_path / "run"), str(int(number))]
    found = subprocess.run(words, capture_output=True, text=True)
    assert found.returncode == 128 + number
    assert found.stderr == "Error: Interrupted; no result was written.\n"
    assert json.loads(found.stdout)["exit_code"] == 128 + number
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_a_signal_that_is_ignored_stays_ignored():
    """A command that is run with nohup goes on after its terminal is closed."""
    before = {number: signal.getsignal(number) for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGINT)}
    try:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        install(as_json=False)
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
        assert signal.getsignal(signal.SIGTERM) not in (signal.SIG_IGN, signal.SIG_DFL)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def test_a_second_interruption_that_is_lost_on_its_way_takes_effect_at_the_end_of_the_fit():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    with pytest.raises(KeyboardInterrupt), interruptible():  # noqa: PT012
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):  # as somebody who catches everything
            signal.raise_signal(signal.SIGINT)
    signal.signal(signal.SIGINT, before)
