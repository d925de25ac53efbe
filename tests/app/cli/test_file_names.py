"""Folders and files of runs that exist, cannot be written to, or are damaged."""

import errno
import json
import shutil

from tests.app.cli.calls import call


def test_an_existing_folder_is_replaced_only_by_force_and_only_by_a_whole_one(folder, tmp_path, monkeypatch):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "settings.json").write_text("x")
    words = [
        "fit",
        folder / "rows.npy",
        "--model",
        "kmeans",
        "--components",
        2,
        "--no-report",
        "--out",
        tmp_path / "run",
    ]
    run = call(*words)
    assert run.exit_code == 2
    assert "already exists. Choose a new name, or overwrite it with --force" in run.stderr

    def interrupted(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("multicause.app.cli.fitting.write_run", interrupted)
        assert call(*words, "--force").exit_code == 130
    assert (tmp_path / "run" / "settings.json").read_text() == "x"
    assert call(*words, "--force").exit_code == 0
    assert json.loads((tmp_path / "run" / "settings.json").read_text())["model"] == "kmeans"
    assert [p.name for p in tmp_path.iterdir()] == ["run"]
    (tmp_path / "run" / "precious.txt").write_text("x")
    run = call(*words, "--force")
    assert run.exit_code == 2
    assert "holds other things, such as 'precious.txt', so it is not replaced, even with --force" in run.stderr
    assert (tmp_path / "run" / "precious.txt").exists()


def test_places_that_cannot_be_written_to(folder, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("x")
    run = call("fit", folder / "rows.npy", "--out", tmp_path / "file" / "run")
    assert run.exit_code == 2
    assert "it is a file, but a folder is needed" in run.stderr

    def forbidden(*_, **__):
        raise PermissionError(errno.EACCES, "Permission denied", "closed")

    with monkeypatch.context() as patched:
        patched.setattr("os.mkdir", forbidden)
        run = call("fit", folder / "rows.npy", "--out", tmp_path / "run")
    assert run.exit_code == 2
    assert run.stderr == "Error: 'closed': Permission denied.\n"
    for words in (["transform", folder / "run", folder / "rows.npy"], ["sample", folder / "run"]):
        run = call(*words, "--out", tmp_path / "file.txt")
        assert "must end in one of .npy" in run.stderr
        run = call(*words, "--out", tmp_path / "nowhere" / "x.npy")
        assert run.exit_code == 2
        assert "does not exist" in run.stderr


def test_damaged_settings_and_requests(folder, tmp_path):
    shutil.copytree(folder / "run", tmp_path / "run")
    settings = json.loads((tmp_path / "run" / "settings.json").read_text())
    for damage in ({"data": {}}, {"reading": None}, {"data": {**settings["data"], "image_shape": "wide"}}):
        (tmp_path / "run" / "settings.json").write_text(json.dumps({**settings, **damage}))
        run = call("sample", tmp_path / "run", "--out", tmp_path / "x.npy")
        assert run.exit_code == 2
        assert "settings.json' is damaged" in run.stderr
    (tmp_path / "new.unfinished").mkdir()
    for damage in ("{", "[1]", '{"path": "x"}'):
        (tmp_path / "new.unfinished" / "request.json").write_text(damage)
        run = call("fit", "--resume", tmp_path / "new")
        assert run.exit_code == 2
        assert "request.json' is damaged" in run.stderr
