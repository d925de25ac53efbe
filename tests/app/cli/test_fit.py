"""``multicause fit``: its help, what it writes for data of all kinds, and what a full disk leaves."""

import errno
import json
import re
from typing import get_type_hints

import numpy as np
import pandas
import pytest

import multicause
from multicause import noises, posteriors
from multicause.app.cli.fit import fit
from multicause.metrics import reconstruction_quality
from tests.app.cli.calls import call, plain, result_of


@pytest.mark.parametrize(
    ("option", "names", "end"), [("noise", noises.NAMES, ", if "), ("posterior", posteriors.NAMES, "; by default")]
)
def test_help_lists_all_names_of_parts(option, names, end):
    """They are written out, so that help need not import the parts."""
    text = get_type_hints(fit, include_extras=True)[option].__metadata__[0].help
    listed = text.partition(end)[0]
    assert re.split(", | or ", listed) == list(names)


def test_a_run_has_model_history_settings_versions_and_report(folder):
    model = multicause.load(folder / "run" / "model.multicause")
    rows = np.load(folder / "rows.npy").reshape(60, 25)
    again = multicause.MixtureOfGaussians(3, random_state=1).fit(rows)
    np.testing.assert_array_equal(model.components_, again.components_)
    history = pandas.read_csv(folder / "run" / "history.csv")
    np.testing.assert_array_equal(history["bound"], again.lower_bounds_)
    settings = json.loads((folder / "run" / "settings.json").read_text())
    assert settings["data"]["image_shape"] == [5, 5]
    assert settings["outcome"] == again.outcome_
    assert json.loads((folder / "run" / "versions.json").read_text())["numpy"] == np.__version__
    assert (folder / "run" / "report.html").read_text().startswith("<!DOCTYPE html>")
    assert sorted(p.name for p in folder.iterdir()) == ["photos", "rows.npy", "run", "sound.wav", "table.csv"]


def test_the_end_of_a_fit_says_what_its_numbers_are(folder, tmp_path):
    words = ["fit", folder / "rows.npy", "--components", 2, "--iterations", 2, "--no-report", "--out"]
    said = " ".join(call(*words, tmp_path / "a", "--model", "kmeans").output.split())
    assert "mean log probability together with the most probable cause" in said
    assert "mean log evidence" not in said
    found = result_of(*words, tmp_path / "b", "--model", "kmeans")
    rows = np.load(folder / "rows.npy").reshape(60, 25)
    quality = reconstruction_quality(multicause.load(tmp_path / "b" / "model.multicause"), rows)
    assert (found["r2"], found["r2_without_row_means"]) == quality
    assert f"variance explained, R² │ {found['r2']:.3f}" in said
    assert f"R² without row means │ {found['r2_without_row_means']:.3f}" in said
    assert result_of(*words, tmp_path / "c", "--model", "energy")["r2"] is None


def test_a_decoder_network_is_learned_applied_and_reported(folder, tmp_path):
    words = ["fit", folder / "rows.npy", "--model", "autoencoder", "--components", 2, "--iterations", 2, "--seed", 0]
    result_of(*words, "--set", "layers=[3]", "--out", tmp_path / "run")
    model = multicause.load(tmp_path / "run" / "model.multicause")
    assert [weight.shape for weight in model.parameters_["weights"]] == [(2, 3), (3, 25)]
    result_of("transform", tmp_path / "run", folder / "rows.npy", "--out", tmp_path / "causes.npy")
    rows = np.load(folder / "rows.npy").reshape(60, 25)
    np.testing.assert_allclose(np.load(tmp_path / "causes.npy"), model.transform(rows), atol=1e-6)
    assert "TruncatedAutoencoder" in (tmp_path / "run" / "report.html").read_text()


def test_sound_and_table_to_a_run(folder, tmp_path):
    options = ["--model", "kmeans", "--components", 2, "--iterations", 2, "--no-report"]
    found = result_of("fit", folder / "sound.wav", "--frames", 2, *options, "--out", tmp_path / "sound")
    assert found["data"]["image_shape"] == [50, 2]
    assert found["reading"]["level"] > 0
    assert (
        result_of("transform", tmp_path / "sound", folder / "sound.wav", "--out", tmp_path / "s.npy")["shape"][1] == 2
    )
    found = result_of("fit", folder / "table.csv", "--drop", "b", *options, "--out", tmp_path / "table")
    assert found["data"]["names"] == ["a", "c", "<d>"]
    # The same columns in another order, among others.
    pandas.read_csv(folder / "table.csv")[["<d>", "b", "a", "c"]].to_csv(tmp_path / "other.csv", index=False)
    for name in ("table.csv", "other.csv"):
        path = (folder if name == "table.csv" else tmp_path) / name
        result_of("transform", tmp_path / "table", path, "--out", tmp_path / f"{name}.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "table.csv.npy"), np.load(tmp_path / "other.csv.npy"))


def test_empty_cells_are_missing_values_that_can_be_imputed(tmp_path):
    rows = two_columns_with_gaps()
    lines = [",".join("" if np.isnan(value) else f"{value:.3f}" for value in row) for row in rows]
    (tmp_path / "gaps.csv").write_text("a,b\n" + "\n".join(lines) + "\n")
    words = ("fit", tmp_path / "gaps.csv", "--model", "kmeans", "--components", 2, "--out", tmp_path / "run")
    run = call(*words)
    assert run.exit_code == 0
    assert "2 of 40 values (5 %) are missing (empty or NaN), in columns 'a', 'b'." in plain(run.output)
    found = result_of("reconstruct", tmp_path / "run", tmp_path / "gaps.csv", "--impute", "--out", tmp_path / "a.npy")
    assert found["n_missing"] == 2
    whole = np.load(tmp_path / "a.npy")
    assert np.isfinite(whole).all()
    np.testing.assert_allclose(whole[~np.isnan(rows)], rows[~np.isnan(rows)], atol=1e-3)


def two_columns_with_gaps():
    rows = np.random.RandomState(0).normal([[0, 5]] * 10 + [[5, 0]] * 10, 0.3)
    rows[3, 0] = rows[12, 1] = np.nan
    return rows


def test_a_full_disk_leaves_checkpoints_and_resume_ends_as_if_nothing_had_been(folder, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device", "x")

    words = ["fit", folder / "rows.npy", "--model", "mixture", "--components", 3, "--seed", 1, "--checkpoint", 0]
    with monkeypatch.context() as patched:
        patched.setattr("multicause.app.cli.unfinished.asdict", full)
        assert call(*words, "--out", tmp_path / "run").stderr == "Error: 'x': No space left on device.\n"
    assert not list(tmp_path.iterdir())
    with monkeypatch.context() as patched:
        patched.setattr("multicause.app.cli.fitting.write_run", full)
        run = call(*words, "--out", tmp_path / "run")
    assert run.exit_code == 2
    assert run.stderr.startswith(
        "Error: 'x': No space left on device. Checkpoints are kept; resume with: multicause fit"
    )
    assert run.stderr.count("\n") == 1
    assert [p.name for p in tmp_path.iterdir()] == ["run.unfinished"]
    refused = call(*words, "--out", tmp_path / "run")
    assert refused.exit_code == 2
    assert "Resume it with --resume" in refused.stderr
    result_of("fit", "--resume", tmp_path / "run")
    assert [p.name for p in tmp_path.iterdir()] == ["run"]
    models = [multicause.load(path / "run" / "model.multicause") for path in (folder, tmp_path)]
    np.testing.assert_array_equal(models[0].components_, models[1].components_)
    assert "is finished" in call("fit", "--resume", tmp_path / "run").stderr
