"""The chapter's figures: each part of ``multicause reproduce tn10`` says what it found and leaves its pictures."""

from collections.abc import Iterator

import pytest

from multicause.app.experiments import NAMES, experiment

PARTS = tuple(name for name in NAMES if name.startswith("tn10_"))
PICTURES = {
    "tn10_clustering": {"tn10_1_clustering.png"},
    "tn10_factors": {"tn10_3_factors.png"},
    "tn10_sparseness": {"tn10_4_sparseness.png"},
    "tn10_codes": {"tn10_9_filters.png", "tn10_10_decomposition.png", "tn10_11_bow_tie.png"},
}


@pytest.mark.parametrize("name", PICTURES)
def test_numbers_are_reached_and_figures_drawn(name, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    if name in ("tn10_sparseness", "tn10_codes"):
        pytest.importorskip("pywt", reason="PyWavelets is not installed")
    monkeypatch.chdir(tmp_path)
    lines = experiment(name)()
    assert [line for line in lines if not line.reached] == []
    drawn = {path.name for path in (tmp_path / "out/reproduce").iterdir()}
    assert drawn == PICTURES[name]
    for path in (tmp_path / "out/reproduce").iterdir():
        assert path.read_bytes().startswith(b"\x89PNG")
    shown = [line.found for line in lines if line.what == "picture"]
    assert {path.rsplit("/", 1)[-1] for path in shown} == PICTURES[name]  # every picture is named in the table


@pytest.mark.parametrize("name", ["tn10", *PARTS])
def test_unknown_settings_are_errors(name):
    with pytest.raises(ValueError, match="Unknown setting 'paper'. Known: 'default', 'quick'"):
        experiment(name)(1, setting="paper")


def test_one_command_runs_all_parts(monkeypatch):
    """What a part is asked for is what the command was asked for."""
    from multicause.app.experiments import tn10 as module

    asked = []
    for name in PARTS:
        function = name.removeprefix("tn10_")
        monkeypatch.setattr(module, function, lambda trials, *, setting, f=function: [(f, trials, setting)])
    asked = module.tn10(3, setting="quick")
    assert sorted(asked) == sorted((name.removeprefix("tn10_"), 3, "quick") for name in PARTS)


def test_each_line_is_told_when_it_is_found(monkeypatch):
    """Nothing of the later parts is computed before the lines of the first one are there."""
    from multicause.app.experiments import tn10 as module

    begun = []
    for name in PARTS:
        function = name.removeprefix("tn10_")
        monkeypatch.setattr(module, function, lambda trials, *, setting, f=function: begun.append(f) or [f])
    assert next(module.tn10(3)) == "clustering"
    assert begun == ["clustering"]
    assert isinstance(experiment("tn10_bars")(1), Iterator)
