"""Rows from the user's own files."""

import sys

import numpy as np
import pandas
import pytest
import scipy.sparse
from PIL import Image
from scipy.io import wavfile
from skimage.io import imsave

from multicause.datasets import tables
from multicause.datasets.overlap import reconstruct_image
from multicause.datasets.reading import Reading, read_data


def test_tables_have_the_same_rows_in_every_format(tmp_path):
    numbers = np.random.RandomState(0).normal(size=(6, 3))
    frame = pandas.DataFrame(numbers, columns=["a", "b", "c"])
    np.save(tmp_path / "t.npy", numbers)
    np.savez(tmp_path / "one.npz", rows=numbers)
    np.savez(tmp_path / "two.npz", rows=numbers, more=numbers[:1])
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_csv(tmp_path / "t.tsv", index=False, sep="\t")
    frame.to_csv(tmp_path / "plain.csv", index=False, header=False, sep=";")
    frame.assign(word="x").to_parquet(tmp_path / "t.parquet")
    settings = {
        "t.npy": {},
        "one.npz": {},
        "two.npz": {"array": "rows"},
        "t.csv": {},
        "t.tsv": {},
        "plain.csv": {"header": False, "separator": ";"},
        "t.parquet": {"drop": ("word",)},
    }
    for name, setting in settings.items():
        data = read_data(tmp_path / name, Reading(**setting))
        np.testing.assert_allclose(data.rows, numbers, rtol=1e-14)
        assert data.kind == "table"
    assert read_data(tmp_path / "t.npy", Reading(count=4)).remarks == (
        "The count is only for patches of images and pieces of sound; all rows are used.",
    )
    swapped = read_data(tmp_path / "t.csv", Reading(columns=("c", "a"), dtype="float32"))
    np.testing.assert_array_equal(swapped.rows, numbers[:, [2, 0]].astype(np.float32))
    assert swapped.names == ["c", "a"]


@pytest.mark.parametrize("kind", ["csr", "csc", "coo"])
def test_sparse_matrices_of_scipy_are_tables(kind, tmp_path, monkeypatch):
    counts = np.random.RandomState(0).poisson(0.5, size=(6, 4))
    scipy.sparse.save_npz(tmp_path / "counts.npz", scipy.sparse.csr_matrix(counts).asformat(kind))
    np.testing.assert_array_equal(read_data(tmp_path / "counts.npz").rows, counts)
    monkeypatch.setattr(tables, "LARGEST_DENSE", 100)
    with pytest.raises(ValueError, match=r"^'.*counts.npz' is a sparse matrix of 6×4, which would take .* In Python"):
        read_data(tmp_path / "counts.npz")


def test_a_missing_package_is_named_with_its_extra(tmp_path, monkeypatch):
    (tmp_path / "t.parquet").write_bytes(b"")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    message = r"pyarrow is needed for reading parquet files .* pip install 'multicause\[parquet\]'"
    with pytest.raises(ImportError, match=message):
        read_data(tmp_path / "t.parquet")


def test_images_are_grey_and_scaled(tmp_path):
    random = np.random.RandomState(0)
    colour = random.randint(0, 256, (4, 3, 3)).astype(np.uint8)
    grey = random.randint(0, 256, (4, 3)).astype(np.uint8)
    imsave(tmp_path / "a.png", grey, check_contrast=False)
    imsave(tmp_path / "b.png", colour, check_contrast=False)
    (tmp_path / "notes.txt").write_text("x")
    (tmp_path / ".hidden.png").write_text("x")
    data = read_data(tmp_path, Reading(scale=2.0))
    np.testing.assert_allclose(data.rows, [2 * (grey / 255).ravel(), 2 * colour.mean(axis=2).ravel() / 255])
    assert data.image_shape == (4, 3)
    assert data.remarks == (
        "Files of other kinds were left out: 1, such as 'notes.txt'.",
        "Colours were averaged to grey in 1 of 2 images.",
    )


def test_a_gif_is_an_image_unless_it_is_an_animation(tmp_path):
    grey = np.random.RandomState(0).randint(0, 256, (4, 3)).astype(np.uint8)
    Image.fromarray(grey).save(tmp_path / "still.gif")
    np.testing.assert_allclose(read_data(tmp_path / "still.gif", Reading(scale=255)).rows, [grey.ravel()])
    Image.fromarray(grey).save(tmp_path / "moving.gif", save_all=True, append_images=[Image.fromarray(255 - grey)])
    with pytest.raises(
        ValueError, match=r"moving.gif' is an animation of 2 frames; expected one image. Save each frame"
    ):
        read_data(tmp_path / "moving.gif")


def test_several_paths_of_one_kind_give_their_rows_one_after_the_other(tmp_path):
    random = np.random.RandomState(0)
    (tmp_path / "more").mkdir()
    for name in ("b.png", "a.png", "more/c.png"):
        imsave(tmp_path / name, random.randint(0, 256, (4, 3)).astype(np.uint8), check_contrast=False)
    images = read_data([tmp_path / "b.png", tmp_path / "more", tmp_path / "a.png"])
    every = read_data(tmp_path).rows  # sorted by name
    np.testing.assert_array_equal(images.rows, every[[1, 2, 0]])
    assert [file.name for file in images.files] == ["b.png", "c.png", "a.png"]
    frame = pandas.DataFrame(random.normal(size=(4, 2)), columns=["a", "b"])
    frame[:3].to_csv(tmp_path / "1.csv", index=False)
    frame[3:][["b", "a"]].to_csv(tmp_path / "2.csv", index=False)
    table = read_data([str(tmp_path / "1.csv"), str(tmp_path / "2.csv")])
    np.testing.assert_allclose(table.rows, frame.to_numpy())
    np.save(tmp_path / "1.npy", random.normal(size=(2, 5, 6)))
    np.save(tmp_path / "2.npy", random.normal(size=(5, 6)))
    patches = read_data([tmp_path / "1.npy", tmp_path / "2.npy"], Reading(patches=(2, 2), count=9))
    assert len(patches.files) == 3
    assert patches.rows.shape == (9, 4)


def test_several_paths_that_do_not_fit_together(tmp_path):
    imsave(tmp_path / "a.png", np.eye(3, dtype=np.uint8), check_contrast=False)
    np.save(tmp_path / "wide.npy", np.ones((2, 3)))
    np.save(tmp_path / "narrow.npy", np.ones((2, 2)))
    np.save(tmp_path / "gap.npy", np.full((2, 3), np.inf))
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "a.csv.gz").write_bytes(b"")
    for names, message in [
        (
            ["a.png", "wide.npy"],
            r"a.png' \(image\) and .*wide.npy' \(table\) are of different kinds; give paths of one",
        ),
        (["wide.npy", "narrow.npy"], r"must have the same columns, but .*wide.npy' has 3 and .*narrow.npy' has 2"),
        (["wide.npy", "gap.npy"], r"gap.npy' has values that are infinite"),
        (["a.png", "none.png"], r"There is no .*none.png'"),
        ([], "Name at least one file or folder"),
        (["tables"], r"tables' holds no images or sounds, but 1 other files. Of a folder .*: .*/tables/\*\.csv\.gz\.$"),
    ]:
        with pytest.raises((ValueError, FileNotFoundError), match=message):
            read_data([tmp_path / name for name in names])


def test_patches_come_from_all_images_and_again_the_same(tmp_path):
    """Every patch is found in its image, which fills [0, 10]."""
    random = np.random.RandomState(1)
    images = [random.permutation(9 * 8).reshape(9, 8), random.permutation(30).reshape(5, 6)]
    for number, image in enumerate(images):
        imsave(tmp_path / f"{number}.png", image.astype(np.uint8), check_contrast=False)
    data = read_data(tmp_path, Reading(patches=(3, 2), count=11))
    np.testing.assert_array_equal(data.rows, read_data(tmp_path, Reading(patches=(3, 2), count=11)).rows)
    assert len(data.rows) == 11
    for number, image in enumerate(images):
        filled = 10 * (image - image.min()) / (image.max() - image.min())
        windows = np.lib.stride_tricks.sliding_window_view(filled, (3, 2)).reshape(-1, 6)
        own = data.rows[:5] if number == 0 else data.rows[5:]
        assert all(np.isclose(windows, row).all(axis=1).any() for row in own)


def test_sounds_become_spectrograms_or_waveforms(tmp_path):
    """A tone lights up its channel; a quieter recording read as the first one keeps its level."""
    frequencies = np.geomspace(100, 4000, 50)
    wave = (20000 * np.sin(2 * np.pi * frequencies[30] * np.arange(4000) / 8000)).astype(np.int16)
    wavfile.write(tmp_path / "tone.wav", 8000, wave)
    wavfile.write(tmp_path / "soft.wav", 8000, wave // 10)
    wavfile.write(tmp_path / "stereo.wav", 8000, np.stack([wave // 2, wave], axis=1))
    loud = read_data(tmp_path / "tone.wav", Reading(frames=3))
    assert loud.rows.shape == (19, 150)  # pieces of 400 samples, 200 apart
    assert loud.image_shape == (50, 3)
    assert (loud.rows.reshape(-1, 50, 3).argmax(axis=1) == 30).all()
    assert loud.rows.max() == pytest.approx(10)
    soft = read_data(tmp_path / "soft.wav", loud.reading)
    assert soft.rows.max() == pytest.approx(10 * (1 - 20 / 42.8), abs=1e-3)  # 20 dB below
    right = read_data(tmp_path / "stereo.wav", Reading(frames=3, channel=1))
    np.testing.assert_array_equal(right.rows, loud.rows)
    pieces = read_data(tmp_path / "tone.wav", Reading(sound="waveform", length=10, count=7))
    assert pieces.rows.shape == (7, 10)
    assert not pieces.remarks
    few = read_data(tmp_path / "tone.wav", Reading(frames=3, count=20))
    assert few.remarks == ("The recording has 19 pieces, fewer than the 20 requested; all of them are used.",)
    every = read_data(tmp_path / "tone.wav", Reading(sound="waveform", length=10)).rows
    np.testing.assert_allclose(every[3], wave[15:25] / wave.std())


def test_an_array_of_images_gives_the_patches_that_their_files_give(tmp_path):
    levels = np.random.RandomState(0).randint(0, 256, (2, 6, 7)).astype(np.uint8)
    for number, image in enumerate(levels):
        imsave(tmp_path / f"{number}.png", image, check_contrast=False)
    np.save(tmp_path / "images.npy", levels)
    reading = Reading(patches=(3, 2), count=11)
    again = read_data(tmp_path / "images.npy", reading)
    np.testing.assert_allclose(again.rows, read_data(tmp_path, reading).rows, rtol=1e-12)
    assert (again.kind, again.image_shape) == ("patches", (3, 2))


def test_overlapping_patches_of_a_model_that_explains_all_make_the_image_again():
    random = np.random.RandomState(0)
    image = random.uniform(3, 4, (9, 7))
    patches = np.lib.stride_tricks.sliding_window_view(image, (3, 2)).reshape(-1, 6)

    class Everything:
        def reconstruct(self, X):
            assert all(np.isclose(patches, patch).all(axis=1).any() for patch in image.min() + X / 10 * np.ptp(image))
            return X

    for step in (1, 2):
        np.testing.assert_allclose(reconstruct_image(Everything(), image, (3, 2), step=step), image)

    class Ones:
        def reconstruct(self, X):
            return np.ones_like(X)

    means = reconstruct_image(Ones(), image, (3, 2), scale=2.0)
    np.testing.assert_allclose(means, image.min() + (image.max() - image.min()) / 2)
    with pytest.raises(ValueError, match="step must be from 1 to 2, so that patches of 3×2 leave no gap; got 3"):
        reconstruct_image(Ones(), image, (3, 2), step=3)
    with pytest.raises(ValueError, match="The image is constant"):
        reconstruct_image(Ones(), np.ones((5, 5)), (3, 2))
    with pytest.raises(ValueError, match="patch of 3×2 does not fit into the image of 2×2"):
        reconstruct_image(Ones(), np.eye(2), (3, 2))
