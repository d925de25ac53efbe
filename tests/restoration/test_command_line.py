"""Images and recordings restored by ``multicause denoise`` and ``multicause inpaint``."""

import json

import numpy as np
import pytest
from PIL import Image
from scipy.io import wavfile
from skimage.io import imread, imsave

from multicause.app.cli.restore import missing_values
from multicause.restoration.files import StoredPicture
from tests.app.cli.calls import call
from tests.restoration.conftest import N_SAMPLES, WORDS, psnr

# Several images are restored by the same programs: that takes longer than to compile them well.
pytestmark = pytest.mark.usefixtures("optimized")


def test_the_command_line_denoises_an_image(tmp_path, clean, noisy):
    imsave(tmp_path / "noisy.png", np.clip(np.rint(noisy), 0, 255).astype(np.uint8), check_contrast=False)
    out, page = tmp_path / "clean.png", tmp_path / "page.html"
    run = call("denoise", tmp_path / "noisy.png", "--out", out, "--report", page, *WORDS, "--json")
    assert run.exit_code == 0, run.output
    result = json.loads(run.stdout)
    assert result["patch_size"] == 6
    assert result["noise_level"] == pytest.approx(25, rel=0.2)
    found = imread(out)
    assert found.dtype == np.uint8
    assert psnr(found.astype(float), clean) > psnr(noisy, clean) + 4
    text = page.read_text(encoding="utf-8")
    assert "data:image/png" in text
    assert "http://" not in text
    assert "https://" not in text
    again = call("denoise", tmp_path / "noisy.png", "--out", out, *WORDS)
    assert again.exit_code == 2
    assert "--force" in again.stderr


def test_the_command_line_fills_in_what_a_mask_a_colour_transparency_or_nan_marks(tmp_path, clean, lost):
    pixels = np.rint(clean).astype(np.uint8)
    damaged = np.where(lost, 0, pixels).astype(np.uint8)
    imsave(tmp_path / "damaged.png", damaged, check_contrast=False)
    imsave(tmp_path / "mask.png", (255 * lost).astype(np.uint8), check_contrast=False)
    opaque = (255 * ~lost).astype(np.uint8)
    imsave(tmp_path / "transparent.png", np.stack([damaged] * 3 + [opaque], axis=2), check_contrast=False)
    np.save(tmp_path / "nan.npy", np.where(lost, np.nan, pixels))
    np.save(tmp_path / "marked.npy", np.where(lost, -999, pixels.astype(int)))  # whole numbers with a marker
    calls = {
        "mask.out.png": ("damaged.png", "--mask", tmp_path / "mask.png"),
        "colour.out.png": ("damaged.png", "--missing-color", "0"),
        "transparent.out.png": ("transparent.png",),
        "nan.out.npy": ("nan.npy",),
        "marked.out.npy": ("marked.npy", "--missing-color", "-999"),
    }
    found = {}
    for out, (name, *words) in calls.items():
        run = call("inpaint", tmp_path / name, "--out", tmp_path / out, *words, *WORDS)
        assert run.exit_code == 0, run.output
        found[out] = np.load(tmp_path / out) if out.endswith(".npy") else imread(tmp_path / out)
        shown = found[out] if found[out].ndim == 2 else found[out][..., 0]
        np.testing.assert_array_equal(shown[~lost], pixels[~lost])
        assert psnr(shown.astype(float), clean) > psnr(damaged.astype(float), clean) + 10
    assert found["transparent.out.png"].shape == (*clean.shape, 3)
    np.testing.assert_array_equal(found["mask.out.png"], found["colour.out.png"])
    np.testing.assert_array_equal(found["nan.out.npy"], found["marked.out.npy"])


def test_which_values_a_mask_a_colour_or_nan_mark(tmp_path):
    large = StoredPicture(np.where(np.eye(3), -999, 2_000_000), None)  # values that no image file can hold
    np.testing.assert_array_equal(missing_values(large, None, "-999"), np.eye(3, dtype=bool))
    coloured = np.zeros((3, 3, 3))
    coloured[0, 1, 2] = np.nan  # the other channels of that pixel are known
    np.testing.assert_array_equal(missing_values(StoredPicture(coloured, None), None, None), np.isnan(coloured))
    drawn = np.full((3, 3, 4), 255, np.uint8)
    drawn[1:, :, 3] = 0  # a line on a transparent page
    imsave(tmp_path / "mask.png", drawn, check_contrast=False)
    found = missing_values(StoredPicture(coloured[..., 0], None), tmp_path / "mask.png", None)
    np.testing.assert_array_equal(found, drawn[..., 3] > 0)
    np.save(tmp_path / "mask.npy", np.full((3, 3), np.nan))
    with pytest.raises(ValueError, match="has values that are NaN or infinite; expected finite numbers"):
        missing_values(large, tmp_path / "mask.npy", None)


def test_sixteen_bits_and_transparency_are_kept(tmp_path, clean, noisy):
    deep = np.clip(np.rint(257 * noisy), 0, 65535).astype(np.uint16)
    imsave(tmp_path / "deep.png", deep, check_contrast=False)
    run = call("denoise", tmp_path / "deep.png", "--out", tmp_path / "deep.out.png", *WORDS)
    assert run.exit_code == 0, run.output
    found = imread(tmp_path / "deep.out.png")
    assert found.dtype == np.uint16
    assert psnr(found / 257, clean) > psnr(noisy, clean) + 4
    alpha = np.full(clean.shape, 255, np.uint8)
    alpha[:5] = 90
    shown = np.clip(np.rint(noisy), 0, 255).astype(np.uint8)
    imsave(tmp_path / "alpha.png", np.stack([shown] * 3 + [alpha], axis=2), check_contrast=False)
    run = call("denoise", tmp_path / "alpha.png", "--out", tmp_path / "alpha.out.png", *WORDS)
    assert run.exit_code == 0, run.output
    np.testing.assert_array_equal(imread(tmp_path / "alpha.out.png")[..., 3], alpha)


def test_the_command_line_denoises_a_recording(tmp_path):
    samples = np.random.RandomState(0).randint(-3000, 3000, (N_SAMPLES, 2)).astype(np.int16)
    wavfile.write(tmp_path / "noisy.wav", 8000, samples)
    run = call("denoise", tmp_path / "noisy.wav", "--out", tmp_path / "clean.wav", *WORDS)
    assert run.exit_code == 0, run.output
    rate, found = wavfile.read(tmp_path / "clean.wav")
    assert (rate, found.dtype, found.shape) == (8000, np.int16, samples.shape)
    assert found.std() < samples.std()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("denoise", "none.png", "--out", "out.png"), "There is no"),
        (("denoise", "broken.png", "--out", "out.png"), "cannot be read as an image"),
        (("denoise", "small.png", "--out", "out.txt"), "must end in one of"),
        (("denoise", "small.png", "--out", "out.png"), "does not fit into the image of 5×5"),
        (("denoise", "frames.npy", "--out", "out.png"), "an animation or a stack of images"),
        (("denoise", "pages.tif", "--out", "out.png"), "is an animation or a stack of 3 images; expected one image"),
        (("denoise", "alpha.npy", "--out", "out.npy"), "the last is probably its transparency"),
        (("denoise", "broken.wav", "--out", "out.wav"), "cannot be read as a wav file"),
        (("denoise", "nan.wav", "--out", "out.wav"), "1 values that are NaN or infinite; cut them off or replace them"),
        (
            ("inpaint", "marked.npy", "--missing-color", "-999", "--out", "out.npy"),
            "All pixels of the image are missing",
        ),
        (("inpaint", "image.png", "--out", "out.png"), "No pixel of"),
        (
            ("inpaint", "image.png", "--mask", "nan.wav", "--out", "out.png"),
            "cannot be read as an image: it is damaged, or of another kind. Expected a png",
        ),
        (("inpaint", "nan.wav", "--out", "out.wav"), "is a recording; only images can be filled in"),
        (
            ("inpaint", "gaps.csv", "--out", "out.csv"),
            "then 'multicause reconstruct run gaps.csv --impute --out whole.csv'",
        ),
        (
            ("inpaint", "image.png", "--mask", "small.png", "--out", "out.png"),
            "The mask must have the size of the image",
        ),
        (("inpaint", "image.png", "--missing-color", "red", "--out", "out.png"), "--missing-color must be a colour"),
    ],
)
def test_files_that_cannot_be_restored(tmp_path, monkeypatch, words, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "broken.png").write_bytes(b"no image")
    (tmp_path / "broken.wav").write_bytes(b"no sound")
    imsave(tmp_path / "small.png", np.arange(25, dtype=np.uint8).reshape(5, 5), check_contrast=False)
    imsave(tmp_path / "image.png", np.arange(1, 226, dtype=np.uint8).reshape(15, 15), check_contrast=False)
    np.save(tmp_path / "frames.npy", np.zeros((2, 9, 9, 3)))
    np.save(tmp_path / "alpha.npy", np.zeros((20, 20, 4)))
    np.save(tmp_path / "marked.npy", np.full((20, 20), -999))
    pages = [Image.fromarray(np.full((20, 20), grey, np.uint8)) for grey in (10, 20, 30)]
    pages[0].save(tmp_path / "pages.tif", save_all=True, append_images=pages[1:])
    wavfile.write(tmp_path / "nan.wav", 8000, np.where(np.arange(9000) == 5, np.nan, 0.1).astype(np.float32))
    run = call(*words)
    assert run.exit_code == 2, run.output
    assert message in " ".join(run.stderr.split())
    assert not (tmp_path / "out.png").exists()
