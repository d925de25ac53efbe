"""The command line, as a user calls it."""

import errno
import json
import os
import re
import shutil
import subprocess
import sys
from time import sleep

import numpy as np
import pandas
import pytest
from scipy.io import wavfile
from skimage.io import imread, imsave
from typer.testing import CliRunner

import multicause
from multicause.app.cli import reproduce
from multicause.app.cli.commands import app
from multicause.app.cli.models import make_model
from multicause.app.cli.output import Output
from multicause.app.experiments import experiment
from multicause.app.experiments.table import Line
from multicause.app.experiments.timing import Timing, _iteration, example_data, milliseconds, time_model
from multicause.datasets import make_bars
from multicause.metrics import reconstruction_quality
from multicause.plotting import draw_images
from multicause.posteriors import Preselected


def call(*words):
    """Run a command in this process."""
    return CliRunner().invoke(app, [str(word) for word in words])


def result_of(*words):
    """The JSON that a command prints, and nothing else on its standard output."""
    run = call(*words, "--json")
    assert run.exit_code == 0, run.output
    return json.loads(run.stdout)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Data of all kinds, and a run of a mixture on small images."""
    path = tmp_path_factory.mktemp("data")
    random = np.random.RandomState(0)
    rows = make_bars(60, noise="poisson", random_state=0).data
    np.save(path / "rows.npy", rows.reshape(60, 5, 5))
    pandas.DataFrame(rows[:, :4], columns=["a", "b", "c", "<d>"]).to_csv(path / "table.csv", index=False)
    (path / "photos").mkdir()
    for name in "xy":
        image = random.uniform(size=(12, 14)).cumsum(axis=0) * 20
        imsave(path / "photos" / f"{name}.png", image.astype(np.uint8), check_contrast=False)
    wavfile.write(path / "sound.wav", 8000, random.randint(-999, 999, 3000).astype(np.int16))
    run = call("fit", path / "rows.npy", "--model", "mixture", "--components", 3, "--out", path / "run", "--seed", 1)
    assert run.exit_code == 0, run.output
    return path


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


def test_transform_sample_and_reconstruct_are_those_of_the_model(folder, tmp_path):
    model = multicause.load(folder / "run" / "model.multicause")
    rows = np.load(folder / "rows.npy").reshape(60, 25)
    found = result_of("transform", folder / "run", folder / "rows.npy", "--out", tmp_path / "causes.csv")
    assert found["shape"] == [60, 3]
    table = pandas.read_csv(tmp_path / "causes.csv")
    assert list(table.columns) == list(model.get_feature_names_out())
    np.testing.assert_allclose(table.to_numpy(), model.transform(rows), rtol=1e-12)
    result_of("sample", folder / "run", "--count", 4, "--seed", 2, "--out", tmp_path / "new.npz")
    with np.load(tmp_path / "new.npz") as stored:
        np.testing.assert_array_equal(stored["rows"], model.sample(4, random_state=2)[0])
    result_of("sample", folder / "run", "--count", 4, "--out", tmp_path / "new.png")
    assert (tmp_path / "new.png").read_bytes().startswith(b"\x89PNG")
    found = result_of("reconstruct", folder / "run", folder / "rows.npy", "--out", tmp_path / "clean.npy")
    clean = np.load(tmp_path / "clean.npy")
    np.testing.assert_allclose(clean, model.reconstruct(rows))
    assert found["root_mean_square"] == pytest.approx(np.sqrt(np.mean((clean - rows) ** 2)))


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


def test_images_by_patches_and_back(folder, tmp_path):
    """As many components as pixels explain all, so that the image comes back as it was."""
    options = ["--patches", "3x2", "--count", 80, "--model", "pca", "--components", 6, "--no-report"]
    result_of("fit", folder / "photos", *options, "--out", tmp_path / "run")
    assert not (tmp_path / "run" / "report.html").exists()
    plainly = ["--step", 2, "--noise-level", "none"]  # the image is random, and would be taken for noise
    result_of("reconstruct", tmp_path / "run", folder / "photos" / "x.png", "--out", tmp_path / "x.png", *plainly)
    np.testing.assert_array_equal(imread(tmp_path / "x.png"), imread(folder / "photos" / "x.png"))
    result_of("reconstruct", tmp_path / "run", folder / "photos", "--out", tmp_path / "clean")
    again = ["reconstruct", tmp_path / "run", folder / "photos", "--out", tmp_path / "clean"]
    assert "already exists" in call(*again).stderr
    result_of(*again, "--force")
    run = call("reconstruct", tmp_path / "run", folder / "table.csv", "--out", tmp_path / "table.png")
    assert run.exit_code == 2
    assert "was fitted to patches, so it reconstructs images" in run.stderr
    run = call("reconstruct", tmp_path / "run", folder / "nowhere.png", "--out", tmp_path / "table.png")
    assert "There is no" in run.stderr
    run = call("reconstruct", tmp_path / "run", folder / "photos", "--out", tmp_path / "photos.png")
    assert "is a folder, so --out must be a folder, too" in run.stderr
    assert sorted(p.name for p in tmp_path.iterdir()) == ["clean", "run", "x.png"]
    assert [p.name for p in sorted((tmp_path / "clean").iterdir())] == ["00000-x.png", "00001-y.png"]


def test_several_images(folder, tmp_path):
    photos = [folder / "photos" / name for name in ("x.png", "y.png")]
    options = ["--patches", "3x2", "--count", 80, "--model", "pca", "--components", 6]
    found = result_of("fit", *photos, *options, "--out", tmp_path / "run")
    assert found["data"]["paths"] == [str(path) for path in photos]
    result_of("fit", folder / "photos", *options, "--out", tmp_path / "same", "--no-report")
    models = [multicause.load(tmp_path / name / "model.multicause") for name in ("run", "same")]
    np.testing.assert_array_equal(models[0].components_, models[1].components_)
    assert "x.png and 1 other" in (tmp_path / "run" / "report.html").read_text()
    result_of("transform", tmp_path / "run", *photos, "--out", tmp_path / "causes.csv")
    causes = pandas.read_csv(tmp_path / "causes.csv")
    assert causes.columns[:3].tolist() == ["file", "row", "column"]
    assert causes["file"].nunique() == 2
    assert causes.shape[1] == 3 + 6
    run = call("transform", tmp_path / "run", *photos, "--out", tmp_path / "causes.npy")
    assert run.exit_code == 2
    assert "A .npy file holds the maps of one image, and there are 2" in run.stderr
    words = ["reconstruct", tmp_path / "run", *photos, "--noise-level", "none", "--out", tmp_path / "clean"]
    assert result_of(*words)["images"] == 2
    np.testing.assert_array_equal(imread(tmp_path / "clean" / "00000-x.png"), imread(photos[0]))
    run = call("reconstruct", tmp_path / "run", *photos, "--out", tmp_path / "clean.png")
    assert "There are several paths, so --out must be a folder" in run.stderr
    result_of("report", tmp_path / "run", "--data", photos[0], "--data", photos[1], "--out", tmp_path / "page.html")
    run = call("fit", photos[0], folder / "table.csv", "--out", tmp_path / "mixed")
    assert run.exit_code == 2
    assert "are of different kinds" in run.stderr


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


def plain(text):
    """A message without the line breaks that depend on the width of the terminal."""
    return " ".join(text.split())


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


def bad_files(path):
    """Files that cannot be learned from."""
    (path / "empty").mkdir()
    for name, sizes in {"sizes": [(4, 5), (4, 6)], "small": [(4, 5)]}.items():
        (path / name).mkdir()
        for number, size in enumerate(sizes):
            image = np.arange(np.prod(size), dtype=np.uint8).reshape(size)
            imsave(path / name / f"{number}.png", image, check_contrast=False)
    (path / "broken.png").write_bytes(b"\x89PNG and no more")
    (path / "broken.npy").write_bytes(b"nothing")
    (path / "broken.wav").write_bytes(b"nothing")
    (path / "broken.parquet").write_bytes(b"nothing")
    (path / "blank.csv").write_text("")
    (path / "song.mp3").write_bytes(b"nothing")
    np.save(path / "pickle.npy", np.array([{}], dtype=object), allow_pickle=True)
    np.save(path / "flat.npy", np.arange(5.0))
    np.savez(path / "two.npz", a=np.ones(3), b=np.ones(3))
    (path / "text.csv").write_text("name,colour\nx,red\ny,blue\n")
    (path / "counted.csv").write_text("0,1,2\n3,5,4\n5,6,7\n")
    (path / "flat.csv").write_text("a,b\n1,2\n")
    (path / "names.csv").write_text("a,b\n")
    (path / "gap.csv").write_text("a,b\n1,2\n3,\n")
    (path / "headless.csv").write_text("1,2\n3,4\n5,6\n")
    wavfile.write(path / "stereo.wav", 8000, np.ones((2000, 2), np.int16))
    wavfile.write(path / "short.wav", 8000, np.arange(50, dtype=np.int16))
    wavfile.write(path / "silent.wav", 8000, np.zeros(5000, np.int16))
    (path / "file").write_text("x")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("nowhere.csv", "There is no 'nowhere.csv'."),
        ("empty", "holds no images or sounds, but 0 other files"),
        ("sizes", "'sizes/0.png' has 4×5 pixels and 'sizes/1.png' has 4×6. Resize them, or learn from patches"),
        ("small", "gives one row, and at least two are needed to learn from. A whole image is one row. Cut it into"),
        ("small/0.png --components 2", "Cut it into patches, such as --patches 8x8, or name more images"),
        ("flat.csv", "flat.csv gives one row, and at least two are needed to learn from. Name a table with more rows"),
        ("small --patches 9x9", "'small/0.png': A patch of 9×9 does not fit into the image of 4×5"),
        ("small --patches 9", "--patches must be a height and a width such as 10x10; got '9'"),
        ("broken.png --patches 2x2", "'broken.png' cannot be read as an image"),
        ("broken.npy", "'broken.npy' cannot be read as an array of numbers: it does not begin as a npy or npz file"),
        ("pickle.npy", "'pickle.npy' cannot be read as an array of numbers"),
        ("broken.wav", "'broken.wav' cannot be read as a wav file"),
        ("broken.parquet", "'broken.parquet' cannot be read as a parquet file"),
        ("blank.csv", "'blank.csv' is empty: it has no rows"),
        ("song.mp3", "has an unknown format. Known endings: .npy"),
        ("flat.npy", "must have shape (rows, columns) or (rows, height, width); got (5,)"),
        ("two.npz", "holds 2 arrays (a, b); expected one. Choose one with --array NAME"),
        ("two.npz --array c", "there is no 'c'"),
        ("text.csv", "has no column of numbers to learn from (texts: 'name', 'colour')"),
        ("gap.csv --model ica", "NaN: row 1, column 1. IndependentComponents whitens data, which takes complete rows"),
        ("gap.csv --drop z", "has no column 'z' to drop; it has 'a', 'b'"),
        ("counted.csv", "('0', '1', '2') may hold names of columns or data. Say which with --header or --no-header"),
        (
            "stereo.wav",
            "has 2 channels; expected one. Average them, for example",
        ),
        ("stereo.wav --channel 2", "there is no channel 2"),
        ("short.wav", "has 50 samples, too few for one piece of 1000"),
        ("silent.wav", "is silent"),
        ("short.wav --sound noise", "Unknown sound 'noise'. Known: spectrogram, waveform"),
        ("headless.csv --no-header --model magic", "Unknown model 'magic'. Known: auto, maximal, linear"),
        ("headless.csv --no-header --model kmeans --noise poisson", "The model 'kmeans' has no --noise; its settings"),
        ("headless.csv --no-header --set tol", "--set needs a name and a value"),
        (
            "headless.csv --no-header --set posterior__depth=2",
            "posterior=None stands for Preselected(keep=None) or Exa",
        ),
        ("headless.csv --no-header --memory much", "A memory size must be a positive number"),
        ("headless.csv --no-header --device abacus", "Unknown device 'abacus'. Known: auto, cpu, gpu"),
        ("headless.csv --no-header --dtype int", "dtype must be float32 or float64; got 'int'"),
        ("headless.csv --no-header --image-shape 2x2", "Images of 2×2 have 4 pixels, but 'headless.csv' has 2 columns"),
        ("names.csv", "'names.csv' is empty: 0 rows, 2 columns."),
        ("headless.csv --no-header --components 0", "--components must be a whole number of at least 1"),
        ("headless.csv --no-header --magic 3", "No such option: --magic"),
        (
            "headless.csv --no-header --model helmholtz --components 2",
            "Binary data are needed, with values 0 and 1",
        ),
    ],
)
def test_bad_data_give_one_line_exit_code_2_and_nothing_written(words, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    bad_files(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    run = call("fit", *words.split(), "--out", "new/run", "--json")
    assert run.exit_code == 2
    assert run.stderr.startswith("Error: ")
    assert run.stderr.count("\n") == 1
    # Paths of data are made whole on their way; what the user typed is enough here.
    assert message in run.stderr.replace(f"{tmp_path}/", "")
    assert json.loads(run.stdout)["exit_code"] == 2
    assert sorted(tmp_path.rglob("*")) == before


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


def test_a_folder_that_is_no_run_and_data_that_do_not_fit(folder, tmp_path):
    for words, message in [
        (
            ["transform", tmp_path, folder / "rows.npy"],
            "is not a folder written by 'multicause fit': it has no model.multicause",
        ),
        (["transform", tmp_path / "x", folder / "rows.npy"], "There is no"),
        (["transform", folder / "run", folder / "sound.wav"], "gives rows of 450 values, but the model was fitted"),
    ]:
        run = call(*words, "--out", tmp_path / "out.npy")
        assert run.exit_code == 2
        assert message in run.stderr
    assert call("sample", folder / "run", "--out", folder / "rows.npy").exit_code == 2  # exists already
    run = call("sample", folder / "run", "--count", 10**14, "--out", tmp_path / "out.npy")
    assert run.exit_code == 2
    assert "Not enough memory: 100,000,000,000,000 rows of 28 values need" in run.stderr


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


def test_parts_and_other_settings_can_be_set():
    texts = ["posterior__max_active=2", "annealing=null", "tol=1e-3", 'learn=["components"]']
    model = make_model("linear", {"n_components": 3, "posterior": "preselected", "noise": None}, texts)
    assert isinstance(model, multicause.LinearCauses)
    assert isinstance(model.posterior, Preselected)
    assert model.posterior.max_active == 2
    assert (model.annealing, model.tol, model.learn, model.noise) == (None, 1e-3, ("components",), "gaussian")
    assert make_model("linear", {"n_components": 12}, ["posterior__max_active=2"]).posterior.max_active == 2
    assert make_model("sparse", {}, ["prior__scale=0.1", "engine__memory_budget=1MiB"]).prior.scale == 0.1
    for text, message in [
        ("posterior__depth=2", "'preselected' has no 'depth'; its settings are candidates"),
        (
            "speed=2",
            "The model 'linear' has no speed; its settings are --components, --noise, .*and with --set comb",
        ),
    ]:
        with pytest.raises(ValueError, match=message):
            make_model("linear", {"posterior": "preselected"}, [text])


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


def test_benchmark_times_an_iteration_beside_matrix_products():
    found = result_of("benchmark", "--model", "kmeans", "--rows", 50, "--features", 4, "--components", 2)
    assert found["models"][0]["model"] == "kmeans"
    assert found["products_milliseconds"] > 0
    assert call("benchmark", "--model", "magic").exit_code == 2


def test_slow_fits_are_timed_once_after_a_warm_up():
    calls = []

    def slow():
        calls.append(len(calls))
        sleep(0.02)

    assert milliseconds(slow, repeats=5, most_seconds=0.01) >= 20
    assert calls == [0, 1]
    milliseconds(lambda: calls.append(len(calls)), repeats=5, most_seconds=10)
    assert len(calls) == 2 + 6


def test_benchmark_data_suit_every_model():
    """All features vary, also those that no cause has."""
    for shape in ((2000, 100, 10), (50, 20, 2)):
        assert (np.ptp(example_data(*shape, "float64"), axis=0) > 0).all()


def test_benchmark_times_models_of_binary_data_and_models_without_iterations():
    X = example_data(50, 4, 2, "float64")
    assert time_model("PrincipalComponents", X, 2, products=1.0).iteration > 0
    assert time_model("NoisyOrCauses", X, 2, products=1.0).name == "NoisyOrCauses"


def test_benchmark_makes_long_fits_where_iterations_are_cheap(monkeypatch):
    class Model:
        def __init__(self, n_components, max_iter):
            self.n_iter_ = max_iter

        def fit(self, X):
            made.append(self.n_iter_)

    def time(fit, **_):
        fit()
        return 10 + cost * made[-1]

    monkeypatch.setattr("multicause.app.experiments.timing.milliseconds", time)
    for cost, expected in ((0.1, [2, 12, 102]), (5.0, [2, 12])):
        made = []
        assert _iteration(Model, None, 2) == pytest.approx(cost)
        assert made == expected


def test_benchmark_tells_each_result_when_it_is_there_and_goes_on_after_a_failure(monkeypatch):
    told = []

    def time_model(name, X, n_components, products):
        if name == "KMeans":
            raise ValueError("No means.")
        return Timing(name, 1.0 + len(told), 2.0)

    monkeypatch.setattr("multicause.app.experiments.timing.time_model", time_model)
    monkeypatch.setattr("multicause.app.experiments.timing.time_products", lambda *_: 0.5)
    say = Output.say
    monkeypatch.setattr(Output, "say", lambda self, text, **style: (told.append(text), say(self, text, **style)))
    words = ["benchmark", "--model", "pca", "--model", "kmeans", "--model", "ica", "--rows", 10]
    run = call(*words)
    assert run.exit_code == 1
    assert told[1:] == ["pca: 2.000 ms, 2.0 times the products", "kmeans: failed: No means.", told[-1]]
    assert told[-1].startswith("ica: 4.000 ms")
    assert [one.get("error") for one in json.loads(call(*words, "--json").stdout)["models"]] == [
        None,
        "No means.",
        None,
    ]


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


def test_reproduce_lists_and_refuses(tmp_path):
    listed, names = call("reproduce", "--list").output, result_of("reproduce", "--list")["experiments"]
    assert "mca_ex" in names
    assert all(f" {name} " in listed for name in names)
    assert "Lücke & Eggert 2010, Expectation Truncation (ET10)" in listed
    run = call("reproduce", "nonsense")
    assert run.exit_code == 2
    assert "Unknown experiment 'nonsense'. Known: 'mca_ex'" in run.output
    assert call("reproduce", "mca_ex", "--trials", "0").exit_code == 2


def test_a_long_experiment_tells_each_line_as_it_is_found(monkeypatch):
    told = []

    def long(trials, *, jobs):
        return (Line(f"row {number}", "much", f"{len(told)} told", number < 1) for number in range(2))

    monkeypatch.setattr(reproduce, "experiment", lambda name: long)
    say = Output.say
    monkeypatch.setattr(Output, "say", lambda self, text, **style: (told.append(text), say(self, text, **style)))
    run = call("reproduce", "mca08", "--trials", 3)
    assert run.exit_code == 1
    assert told == ["row 0: 0 told", "row 1: 1 told"]
    assert run.stdout.startswith("row 0: 0 told\nrow 1: 1 told\nmca08, 3 trials")
    told.clear()
    run = call("reproduce", "mca08", "--json")
    assert [line["found"] for line in json.loads(run.stdout)["lines"]] == ["0 told", "1 told"]


def test_an_experiment_returns_what_was_asked_and_found():
    lines = experiment("mca_ex")(1)
    assert lines[0].found == "1 of 1"
    assert all(line.reached for line in lines)
    with pytest.raises(ValueError, match="Unknown setting 'quick'. Known: 'default', 'paper'"):
        experiment("mca_ex")(1, setting="quick")


def test_images_of_the_wrong_size():
    with pytest.raises(ValueError, match=r"image_shape=\(2, 3\) has 2·3 = 6 pixels, but rows have 5 features"):
        draw_images(None, [[1, 2, 3, 4, 5]], (2, 3))
    with pytest.raises(ValueError, match=r"two axes, \(n, n_features\); got shape \(0, 6\)"):
        draw_images(None, np.zeros((0, 6)), (2, 3))
