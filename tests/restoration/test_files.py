"""Image files that are read and written by restoration, of all kinds that users have."""

import numpy as np
import pytest
from PIL import Image, ImageOps
from scipy.io import wavfile

from multicause.restoration.files import (
    StoredPicture,
    check_can_be_written,
    filled_in,
    read_picture,
    read_recording,
    write_picture,
)


@pytest.mark.parametrize(
    ("pixels", "white"),
    [
        (np.eye(3, dtype=np.uint8), 255),
        (np.eye(3, dtype=np.uint16), 65535),
        (np.eye(3, dtype=bool), 1),
        (np.eye(3), 1),
        (200 * np.eye(3, dtype=np.int64), 255),
        (200.0 * np.eye(3), 255),
        (3000.0 * np.eye(3), 65535),
    ],
)
def test_white_of_pixels_of_any_units(tmp_path, pixels, white):
    values = np.full((3, 3), 0.5 * white)
    write_picture(tmp_path / "out.png", values, StoredPicture(pixels, None))
    written = read_picture(tmp_path / "out.png").pixels
    assert written.mean() == pytest.approx(0.5 * np.iinfo(written.dtype).max, rel=0.01)


@pytest.mark.parametrize("white", [1.0, 255.0])
def test_noise_beyond_white_does_not_change_its_value(tmp_path, white):
    """An image from 0 to 1 with noise has pixels above one; it must not be taken for a dark one from 0 to 255."""
    clean = white * np.tile([0.0, 0.5, 1.0], (3, 1))
    noisy = clean + 0.4 * white * np.eye(3)
    write_picture(tmp_path / "out.png", 1.03 * clean, StoredPicture(noisy, None))
    np.testing.assert_array_equal(read_picture(tmp_path / "out.png").pixels, np.tile([0, 131, 255], (3, 1)))


def test_floats_keep_their_units_in_tif_files(tmp_path):
    pixels = np.array([[-1.5, 0.0], [2.5, 4000.25]], np.float32)
    Image.fromarray(pixels).save(tmp_path / "in.tif")
    stored = read_picture(tmp_path / "in.tif")
    write_picture(tmp_path / "out.tif", stored.pixels + 0.5, stored)
    np.testing.assert_array_equal(read_picture(tmp_path / "out.tif").pixels, pixels + 0.5)


def test_pixels_that_no_image_file_can_hold(tmp_path):
    with pytest.raises(ValueError, match=r"values up to 1e\+06, which no image file can hold.*Write a .npy file"):
        write_picture(tmp_path / "out.png", 1e6 * np.eye(3), StoredPicture(1e6 * np.eye(3), None))


def test_several_frames_are_no_colours(tmp_path):
    """Readers return three grey frames as an array of the shape (height, width, 3)."""
    frames = [Image.fromarray(np.full((9, 9), grey, np.uint8)) for grey in (10, 20, 30)]
    for name in ("pages.tif", "animation.png", "animation.gif"):
        frames[0].save(tmp_path / name, save_all=True, append_images=frames[1:])
        with pytest.raises(ValueError, match="is an animation or a stack of 3 images; expected one image"):
            read_picture(tmp_path / name)


def test_colours_of_printing_are_not_taken_for_transparency(tmp_path):
    Image.fromarray(np.full((9, 9, 4), 40, np.uint8), "CMYK").save(tmp_path / "print.jpg")
    with pytest.raises(ValueError, match="has pixels of the kind CMYK; convert it to RGB or grey first"):
        read_picture(tmp_path / "print.jpg")


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "I;16"])
def test_pixels_of_usual_kinds_are_read(tmp_path, mode):
    grey = np.arange(81, dtype=np.uint8).reshape(9, 9)
    image = Image.fromarray(257 * grey.astype(np.uint16)) if mode == "I;16" else Image.fromarray(grey).convert(mode)
    image.save(tmp_path / "image.png")
    stored = read_picture(tmp_path / "image.png")
    assert stored.alpha is None  # all pixels are opaque
    assert stored.pixels.shape in ((9, 9), (9, 9, 3))
    if mode != "1":
        unit = 257 if mode == "I;16" else 1
        np.testing.assert_array_equal(stored.pixels.reshape(9, 9, -1)[..., 0], unit * grey.astype(int))


def test_only_pixels_that_were_completely_transparent_become_opaque():
    alpha = np.array([[0, 90, 255]], np.uint8)
    found = filled_in(StoredPicture(np.zeros((1, 3), np.uint8), alpha)).alpha
    np.testing.assert_array_equal(found, [[255, 90, 255]])
    assert filled_in(StoredPicture(np.zeros((1, 3), np.uint8), alpha[:, ::2][:, [0, 1, 1]])).alpha is None


def test_values_beyond_black_and_white_are_cut_off(tmp_path):
    pixels = np.array([[-0.5, 0.0], [0.5, 1.0]])
    write_picture(tmp_path / "out.png", np.array([[-0.5, 0.1], [0.5, 1.2]]), StoredPicture(pixels, None))
    np.testing.assert_array_equal(read_picture(tmp_path / "out.png").pixels, [[0, 26], [128, 255]])


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("name", ["photo.png", "photo.jpg"])
def test_photographs_are_turned_upright(tmp_path, name, orientation):
    image = Image.fromarray(np.repeat(np.arange(0, 240, 40, dtype=np.uint8).reshape(2, 3), 16, axis=0))
    exif = Image.Exif()
    exif[0x0112] = orientation
    image.save(tmp_path / name, exif=exif)
    with Image.open(tmp_path / name) as stored:
        np.testing.assert_array_equal(read_picture(tmp_path / name).pixels, np.asarray(ImageOps.exif_transpose(stored)))


def test_compression_of_jpg_files_adds_less_than_the_noise_that_was_removed(tmp_path):
    pixels = np.clip(np.random.RandomState(0).normal(128, 15, (64, 64)), 0, 255).astype(np.uint8)
    write_picture(tmp_path / "out.jpg", pixels.astype(float), StoredPicture(pixels, None))
    added = read_picture(tmp_path / "out.jpg").pixels - pixels.astype(float)
    assert np.std(added) < 3  # with the defaults of Pillow it is 9


@pytest.mark.parametrize("length", [0, 3, 6, 20, 30, 40])
def test_a_recording_that_was_cut_off(tmp_path, length):
    wavfile.write(tmp_path / "whole.wav", 8000, np.zeros(100, np.int16))
    (tmp_path / "cut.wav").write_bytes((tmp_path / "whole.wav").read_bytes()[:length])
    with pytest.raises(ValueError, match="cannot be read as a wav file"):
        read_recording(tmp_path / "cut.wav")


def test_whether_a_result_can_be_written_is_known_before(tmp_path):
    large = StoredPicture(np.full((3, 3), 10**6), None)
    with pytest.raises(ValueError, match=r"values up to 1e\+06, which no image file can hold"):
        check_can_be_written(tmp_path / "out.png", large, None)
    check_can_be_written(tmp_path / "out.npy", large, None)
    check_can_be_written(tmp_path / "out.tif", StoredPicture(np.full((3, 3), 1e6), None), None)
    few = np.where(np.eye(3), 10**6, 7)  # a large number that marks missing pixels
    check_can_be_written(tmp_path / "out.png", StoredPicture(few, None), few == 10**6)
