"""``multicause demo``: its table, its pictures and its report."""

import re

from tests.app.cli.calls import call


def test_demo_prints_a_table_and_writes_a_picture_and_a_report(tmp_path):
    run = call("demo", "--out", tmp_path / "new" / "folder")
    assert run.exit_code == 0, run.output
    assert "bars with their own cause" in run.output
    picture = tmp_path / "new" / "folder" / "bars.png"
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert picture.stat().st_size > 5000
    assert (tmp_path / "new" / "folder" / "photo.png").read_bytes().startswith(b"\x89PNG")
    assert float(re.search(r"explain\s+(\d+\.\d)%", run.output)[1]) > 95
    assert "Bars that occlude each other" in (tmp_path / "new" / "folder" / "report.html").read_text()


def test_the_demo_needs_a_folder_it_can_write(tmp_path):
    (tmp_path / "file").write_text("")
    run = call("demo", "--out", tmp_path / "file")
    assert run.exit_code == 2
    assert "Error: cannot write to" in run.output
    assert call("demo", "--seed", "99999999999").exit_code == 2
