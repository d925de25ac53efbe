"""The report of a run, written again by ``multicause report``."""

import json
import shutil

from tests.app.cli.calls import call, result_of


def test_report_of_a_run_again_and_of_data_that_moved(folder, tmp_path):
    found = result_of("report", folder / "run", "--out", tmp_path / "again.html")
    assert found["bytes"] == (tmp_path / "again.html").stat().st_size
    assert (tmp_path / "again.html").read_text() == (folder / "run" / "report.html").read_text()
    (tmp_path / "precious.csv").write_text("1,2\n")
    for name, message in (("precious.csv", "must end in one of .html"), ("again.html", "already exists")):
        before = (tmp_path / name).read_bytes()
        run = call("report", folder / "run", "--out", tmp_path / name)
        assert run.exit_code == 2
        assert message in run.stderr
        assert (tmp_path / name).read_bytes() == before
    result_of("report", folder / "run", "--out", tmp_path / "again.html", "--force")
    shutil.copytree(folder / "run", tmp_path / "copy")
    settings = json.loads((tmp_path / "copy" / "settings.json").read_text())
    settings["data"]["paths"] = [str(tmp_path / "gone.npy")]
    (tmp_path / "copy" / "settings.json").write_text(json.dumps(settings))
    run = call("report", tmp_path / "copy")
    assert run.exit_code == 2
    assert "no longer at" in run.stderr
    assert "give their path with --data" in run.stderr
