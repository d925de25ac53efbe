"""Compiled programs on disk: a second process loads them, and the user's own settings are left alone."""

import os
import subprocess
import sys

import pytest

from multicause.runtime.compilation_cache import VARIABLE, default_folder, enable_in_environment

FIT = """
import sys, warnings
import numpy as np
import jax.monitoring
from multicause import LinearCauses, enable_compilation_cache

hits = []
jax.monitoring.register_event_listener(lambda event, **_: hits.append(event) if event.endswith("cache_hits") else None)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    folder = enable_compilation_cache(sys.argv[1])
    X = np.random.RandomState(0).normal(size=(20, 4))
    LinearCauses(3, annealing=None, max_iter=2, tol=0, random_state=0).fit(X)
print(folder, len(hits), *[w.message for w in caught if "compiled programs" in str(w.message)])
"""


def fit(folder, **environment):
    settings = {name: value for name, value in os.environ.items() if not name.startswith("JAX_")} | environment
    run = subprocess.run(
        [sys.executable, "-c", FIT, str(folder)], capture_output=True, text=True, env=settings, check=True
    )
    return run.stdout.split()


def test_a_second_process_loads_what_the_first_has_compiled(tmp_path):
    folder = tmp_path / "new" / "cache"
    assert fit(folder) == [str(folder), "0"]
    assert any(folder.iterdir())
    name, hits = fit(folder)
    assert name == str(folder)
    assert int(hits) > 0


def test_a_setting_of_the_users_own_goes_first(tmp_path):
    (tmp_path / "mine").mkdir()
    assert fit(tmp_path / "ours", JAX_COMPILATION_CACHE_DIR=str(tmp_path / "mine")) == ["None", "0"]
    assert not (tmp_path / "ours").exists()


def test_without_a_place_to_write_learning_goes_on_with_one_warning(tmp_path):
    (tmp_path / "file").touch()
    name, hits, *warning = fit(tmp_path / "file")
    assert (name, hits) == ("None", "0")
    assert " ".join(warning).startswith(f"Cannot cache compiled programs in {tmp_path / 'file'} (")
    assert " ".join(warning).count("compiled programs") == 1


def test_the_command_line_uses_the_users_cache_folder(tmp_path, monkeypatch):
    monkeypatch.setenv(VARIABLE, "mine")
    assert enable_in_environment() == ""
    assert os.environ[VARIABLE] == "mine"
    monkeypatch.delenv(VARIABLE)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(sys, "platform", "linux")
    assert default_folder() == tmp_path / "multicause"
    assert enable_in_environment() == ""
    assert os.environ[VARIABLE] == str(tmp_path / "multicause")
    monkeypatch.delenv(VARIABLE)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "multicause" / "file"))
    (tmp_path / "multicause" / "file").touch()
    assert "set JAX_COMPILATION_CACHE_DIR to another one" in enable_in_environment()
    assert VARIABLE not in os.environ


@pytest.mark.parametrize("name", ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"])
def test_a_threshold_of_the_users_own_is_kept(name, tmp_path, monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setenv(name, "7")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    enable_in_environment()
    assert os.environ[name] == "7"
    monkeypatch.setenv(VARIABLE, "restored by the fixture")
