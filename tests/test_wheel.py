"""The package outside its clone: a wheel, installed into an environment of its own, with and without the extras."""

import json
import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

import multicause
from multicause.version import __version__

ROOT = Path(__file__).parents[1]
#: Modules of the extras, which a plain installation does not have.
EXTRAS = ("typer", "rich", "matplotlib", "pandas", "jinja2", "PIL", "skimage", "pywt", "pyarrow", "dask", "distributed")
WITHOUT = f"""
import sys
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {EXTRAS!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Hidden())
"""


def run(*words, cwd, check=True):
    """Run a program that knows nothing of this clone."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "MULTICAUSE"))}
    words = [str(word) for word in words]
    found = subprocess.run(words, cwd=cwd, env=environment, capture_output=True, text=True)
    assert not check or found.returncode == 0, found.stderr
    return found


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    pytest.importorskip("hatchling", reason="hatchling, which builds the wheel, is not installed")
    folder = tmp_path_factory.mktemp("wheel")
    options = ["--quiet", "--no-deps", "--no-build-isolation", "--disable-pip-version-check"]
    run(sys.executable, "-m", "pip", "wheel", *options, "--wheel-dir", folder, ROOT, cwd=folder)
    (found,) = folder.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def installed(wheel):
    """The program Python of an environment with the wheel, whose dependencies are those of this environment."""
    folder = wheel.parent / "environment"
    run(sys.executable, "-m", "venv", "--without-pip", folder, cwd=wheel.parent)
    program = folder / "bin" / "python"
    options = ["--quiet", "--no-deps", "--disable-pip-version-check"]
    run(sys.executable, "-m", "pip", "--python", program, "install", *options, wheel, cwd=wheel.parent)
    own = run(program, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=wheel.parent).stdout.strip()
    # Path files of the folders that are added here are not read, so that an editable installation is not seen.
    paths = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    (Path(own) / "dependencies.pth").write_text("\n".join(paths) + "\n")
    return program


def test_a_wheel_has_every_file_of_the_package(wheel):
    source = Path(multicause.__file__).parent
    with zipfile.ZipFile(wheel) as files:
        packed = {name for name in files.namelist() if name.startswith("multicause/")}
        (metadata,) = (files.read(name).decode() for name in files.namelist() if name.endswith("/METADATA"))
    expected = {f"multicause/{path.relative_to(source).as_posix()}" for path in source.rglob("*") if path.is_file()}
    assert packed == {name for name in expected if "__pycache__" not in name}
    assert f"Version: {multicause.__version__}" in metadata
    assert "License-Expression: BSD-3-Clause" in metadata


def test_the_version_is_the_same_everywhere():
    assert multicause.__version__ == __version__
    assert f"version: {__version__}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"## {__version__}" in (ROOT / "CHANGELOG.md").read_text()


def test_a_plain_installation_learns(installed, tmp_path):
    program = (
        "import json, multicause; from multicause.datasets import make_bars; "
        "bars = make_bars(50, size=3, random_state=0); "
        "model = multicause.PrincipalComponents(3).fit(bars.data); model.save('model'); "
        "print(json.dumps([multicause.__file__, multicause.load('model').transform(bars.data).shape]))"
    )
    found = run(installed, "-c", WITHOUT + program, cwd=tmp_path)
    place, shape = json.loads(found.stdout)
    assert str(installed.parents[1]) in place
    assert shape == [50, 3]
    run_cli = WITHOUT + "from multicause.app.cli import main; main()"
    found = run(installed, "-c", run_cli, "--version", cwd=tmp_path, check=False)
    assert found.returncode == 1
    assert "pip install 'multicause[app]'" in found.stderr


def test_an_installation_with_extras_has_the_command_line(installed, tmp_path):
    command = installed.parent / "multicause"
    assert run(command, "--version", cwd=tmp_path).stdout == f"multicause {multicause.__version__}\n"
    (tmp_path / "table.csv").write_text("a,b\n" + "".join(f"{i % 7},{i * i % 11}.5\n" for i in range(40)))
    words = ["fit", "table.csv", "--model", "pca", "--components", "1", "--out", "run", "--json"]
    found = json.loads(run(command, *words, cwd=tmp_path).stdout)
    assert found["estimator"] == "PrincipalComponents"
    assert (tmp_path / "run" / "report.html").read_text().startswith("<!DOCTYPE html>")
