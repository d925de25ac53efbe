"""Fitted models on the command line: ``transform``, ``sample`` and ``reconstruct``."""

import numpy as np
import pandas
import pytest
from skimage.io import imread

import multicause
from tests.app.cli.calls import call, result_of


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
