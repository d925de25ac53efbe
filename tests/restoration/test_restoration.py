"""Images and sounds without noise and with missing values filled in, from Python and from the command line."""

import json

import numpy as np
import pytest
from PIL import Image
from scipy.io import wavfile
from skimage.io import imread, imsave
from typer.testing import CliRunner

from multicause import SpikeAndSlabCauses
from multicause.app.cli.commands import app
from multicause.restoration import denoise_image, denoise_sound, estimate_noise_level, inpaint_image
from multicause.restoration.counts import expected_counts, stabilize_counts
from multicause.restoration.denoising import Settings, detail_of, with_model_for
from multicause.restoration.inpainting import fill_smoothly
from multicause.restoration.patches import PatchGrid
from tests.conftest import optimizations

# All calls share these, and with them their compiled programs.
QUICK = {"patch_size": 6, "n_components": 24, "max_iter": 8, "random_state": 0}
N_SAMPLES = 9000  # of recordings
WORDS = ("--patch-size", 6, "--components", 24, "--iterations", 8)


def synthetic_image(side=48):
    """Return stripes beside a disc on a ramp, between 60 and 220."""
    y, x = np.mgrid[:side, :side] / side
    stripes = np.where(np.sin(12 * np.pi * y) > 0, 60, 200)
    disc = np.where((x - 0.7) ** 2 + (y - 0.5) ** 2 < 0.04, 220, 60 + 60 * y)
    return np.where(x < 0.45, stripes, disc).astype(float)


def psnr(image, clean):
    """Return the peak signal-to-noise ratio in dB for a range of 255."""
    return 10 * np.log10(255**2 / np.mean((image - clean) ** 2))


@pytest.fixture(autouse=True, scope="module")
def _optimized():
    """Restoring an image runs for longer than it takes to compile its programs well."""
    with optimizations():
        yield


@pytest.fixture(scope="module")
def clean():
    return synthetic_image()


@pytest.fixture(scope="module")
def noisy(clean):
    return clean + 25 * np.random.RandomState(0).normal(size=clean.shape)


@pytest.fixture(scope="module")
def denoised(noisy):
    return denoise_image(noisy, **QUICK)


@pytest.fixture(scope="module")
def lost(clean):
    return np.random.RandomState(1).uniform(size=clean.shape) < 0.4


def call(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def test_noise_is_removed(clean, noisy, denoised):
    assert psnr(denoised, clean) > psnr(noisy, clean) + 5


def test_a_seed_gives_the_same_image_again(noisy, denoised):
    np.testing.assert_array_equal(denoise_image(noisy, **QUICK), denoised)


def test_units_and_offsets_do_not_matter(noisy, denoised):
    other = denoise_image(1e4 + 0.01 * noisy, **QUICK)
    np.testing.assert_allclose((other - 1e4) / 0.01, denoised, atol=1.0)


def test_images_of_whole_numbers_give_floats_in_their_units(clean, noisy):
    stored = np.clip(np.rint(noisy), 0, 255).astype(np.uint8)
    found = denoise_image(stored, **QUICK)
    assert found.dtype == np.float64
    assert found.shape == stored.shape
    assert psnr(found, clean) > psnr(stored.astype(float), clean) + 4


def test_colours_are_restored_together(clean):
    colours = np.stack([clean, 255 - clean, np.full_like(clean, 90)], axis=2)
    noisy = colours + 25 * np.random.RandomState(0).normal(size=colours.shape)
    found = denoise_image(noisy, **QUICK)
    assert found.shape == colours.shape
    assert psnr(found, colours) > psnr(noisy, colours) + 5


def test_small_strips_of_patches_give_the_same_image(noisy, denoised):
    # Each pass goes over the image in strips of at least one line of patches, with those nearby around them.
    found = denoise_image(noisy, **QUICK, memory_budget="256KiB")
    np.testing.assert_allclose(found, denoised, atol=0.05)


def test_counts_are_restored(clean):
    rate = clean / 25
    counts = np.random.RandomState(0).poisson(rate)
    found = denoise_image(counts, noise="poisson", **QUICK)
    assert found.min() >= 0
    assert np.mean((found - rate) ** 2) < 0.3 * np.mean((counts - rate) ** 2)


@pytest.mark.parametrize("rate", [0.5, 2.0, 30.0])
def test_rates_follow_from_expected_stabilized_counts(rate):
    # The false-alarm rate of five standard errors is below 1e-6.
    counts = np.random.RandomState(0).poisson(rate, 200_000)
    values = stabilize_counts(counts)
    slope = np.sqrt(rate) + 0.5  # at least the derivative of the inverse
    assert expected_counts(values.mean()) == pytest.approx(rate, abs=5 * slope * values.std() / 447 + 0.02)


def test_missing_pixels_are_filled_in_and_others_kept(clean, lost):
    found = inpaint_image(clean, lost, **QUICK)
    np.testing.assert_array_equal(found[~lost], clean[~lost])
    smooth = fill_smoothly(np.where(lost, np.nan, clean)[..., None])[..., 0]
    assert psnr(found, clean) > psnr(smooth, clean) + 3


def test_strips_of_patches_leave_no_seams_in_filled_images(clean, lost):
    whole = inpaint_image(clean, lost, **QUICK)
    strips = inpaint_image(clean, lost, **QUICK, memory_budget="256KiB")  # a line of patches each
    # A seam would be a step between two lines that the whole image does not have.
    steps = np.abs(np.diff(strips, axis=0) - np.diff(whole, axis=0))
    assert steps.max() < 0.1
    np.testing.assert_allclose(strips, whole, atol=0.05)


def test_an_image_without_missing_pixels_is_returned_as_it_is(clean):
    np.testing.assert_array_equal(inpaint_image(clean), clean)


def test_nan_and_masks_say_the_same(clean, lost):
    by_mask = inpaint_image(clean, lost, **QUICK)
    np.testing.assert_array_equal(inpaint_image(np.where(lost, np.nan, clean), **QUICK), by_mask)
    masked = np.ma.masked_array(clean, lost)
    np.testing.assert_array_equal(inpaint_image(masked, **QUICK), by_mask)


def test_denoising_fills_missing_pixels_in(clean, noisy):
    few = np.random.RandomState(2).uniform(size=clean.shape) < 0.05
    found = denoise_image(np.where(few, np.nan, noisy), **QUICK)
    assert psnr(found, clean) > psnr(noisy, clean) + 3


def test_a_constant_image_stays(lost):
    image = np.full(lost.shape, 7, dtype=np.uint16)
    np.testing.assert_array_equal(denoise_image(image, **QUICK), image)
    np.testing.assert_array_equal(inpaint_image(image, lost, **QUICK), image)


def test_noise_level_of_white_noise_with_missing_pixels():
    # The median of n values has a relative standard error of about 1.2/√n here; the limit is six of them.
    noise = 3 * np.random.RandomState(0).normal(size=(200, 200))
    noise[::7, ::5] = np.nan
    assert estimate_noise_level(noise) == pytest.approx(3, rel=0.05)


def test_detail_is_the_variance_of_the_signal_within_patches_relative_to_the_noise():
    stripes = np.tile([1.0, -1.0], (160, 80))[..., None]  # a variance of one within any patch
    for level, expected in ((0.5, 4.0), (2.0, 0.25)):
        noisy = stripes + level * np.random.RandomState(0).normal(size=stripes.shape)
        # Variances of 400 patches of 64 pixels: the limit is five standard errors or more.
        assert detail_of(noisy, level) == pytest.approx(expected, abs=0.06 * (1 + expected))


def test_models_grow_with_detail_unless_their_size_is_given():
    stripes = np.tile([1.0, -1.0], (32, 16))[..., None]
    sizes = [with_model_for(stripes, level, Settings()) for level in (0.5, 0.66, 2.0)]
    found = [(each.n_components, each.search.max_active, each.second_search.max_active) for each in sizes]
    assert found == [(1024, 8, 8), (512, 5, 8), (512, 5, 5)]
    colours = with_model_for(np.repeat(stripes, 3, axis=2), 0.5, Settings())
    assert (colours.n_components, colours.second_search.max_active) == (512, 8)


@pytest.mark.parametrize("step", [1, 3])
def test_an_image_is_the_mean_of_its_patches(step):
    image = np.random.RandomState(0).normal(size=(17, 23, 3))
    grid = PatchGrid(image.shape, 5, step)
    sums, total = np.zeros(image.shape), np.zeros((*image.shape[:2], 1))
    for begin in range(0, grid.shape[0], 4):
        part = grid.strip(begin, begin + 4)
        part.add(part.extract(image), np.ones(len(part)), sums, total)
    np.testing.assert_allclose(sums / total, image)
    some = np.array([0, 7, len(grid) - 1])
    np.testing.assert_array_equal(grid.extract(image, some), grid.extract(image)[some])


def test_means_of_values_nearby():
    grid = PatchGrid((9, 8, 1), 3)
    values = np.random.RandomState(0).uniform(size=(len(grid), 2))
    found = grid.average_nearby(values, 2).reshape(*grid.shape, 2)
    images = values.reshape(*grid.shape, 2)
    for y, x in ((0, 0), (3, 2), (6, 5)):
        expected = images[max(0, y - 2) : y + 3, max(0, x - 2) : x + 3].mean(axis=(0, 1))
        np.testing.assert_allclose(found[y, x], expected, rtol=1e-5)


@pytest.mark.parametrize(
    ("image", "settings", "message"),
    [
        (np.zeros((5, 30)) + np.arange(30), {}, "does not fit into the image of 5×30"),
        (np.full((20, 20), np.nan), {}, "All pixels of the image are missing"),
        (np.zeros((20, 20, 4)), {}, "4 channels, of which the last is probably its transparency"),
        (np.zeros((3, 20, 20, 3)), {}, "must be one image; got 3 frames"),
        (np.zeros(20), {}, "must have the shape"),
        (np.zeros((0, 20)), {}, "has no pixels"),
        (np.full((20, 20), "a"), {}, "must hold real numbers"),
        (np.where(np.eye(20) > 0, np.inf, 1.0), {}, "20 infinite values"),
        (np.eye(20), {"noise": "salt"}, "noise must be one of"),
        (-np.eye(20), {"noise": "poisson"}, "Counts are not negative; the least pixel is -1"),
        (np.eye(20), {"patch_size": 1}, "patch_size must be a whole number of at least 2"),
        (np.eye(20), {"n_components": 2.5}, "n_components must be a whole number"),
        (np.eye(20), {"patch_size": 4, "step": 5}, "step must be at most patch_size"),
        (np.eye(20), {"memory_budget": "much"}, "memory size"),
    ],
)
def test_images_that_cannot_be_denoised(image, settings, message):
    with pytest.raises(ValueError, match=message):
        denoise_image(image, **settings)


@pytest.mark.parametrize(
    ("mask", "message"),
    [
        (np.zeros((20, 21), bool), r"mask must have the height and width of the image, \(20, 20\)"),
        (np.ones((20, 20), bool), "All pixels of the image are missing"),
        (np.full((20, 20), np.nan), "mask must hold truth values or finite numbers"),
    ],
)
def test_masks_that_do_not_fit(mask, message):
    with pytest.raises(ValueError, match=message):
        inpaint_image(np.eye(20), mask)


def test_noise_level_of_whole_numbers():
    noise = np.rint(np.random.RandomState(0).normal(128, 10, (100, 100)))
    assert estimate_noise_level(noise.astype(np.uint8)) == estimate_noise_level(noise)


def test_small_images_with_many_missing_pixels_say_which_patch_does_not_fit():
    image = np.where(np.random.RandomState(0).uniform(size=(10, 10)) < 0.75, np.nan, np.eye(10))
    with pytest.raises(ValueError, match="A patch of 12×12 does not fit into the image of 10×10"):
        inpaint_image(image)


def test_an_interrupted_fit_does_not_restore(noisy, monkeypatch):
    monkeypatch.setattr(SpikeAndSlabCauses, "outcome_", "stopped", raising=False)
    monkeypatch.setattr(SpikeAndSlabCauses, "fit", lambda self, X: self)
    with pytest.raises(KeyboardInterrupt):
        denoise_image(noisy, **QUICK)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"window": 2}, "window must be a whole number of at least 4; got 2"),
        ({"window": 8}, "A window of 8 samples has 5 frequencies, fewer than the 8 of a patch"),
        ({"patch_size": None}, "patch_size must be a whole number of at least 2; got None"),
        ({"max_iter": 0}, "max_iter must be a whole number of at least 1; got 0"),
    ],
)
def test_settings_of_recordings_that_make_no_sense(settings, message):
    with pytest.raises(ValueError, match=message):
        denoise_sound(np.ones(9000), **settings)


def test_steady_noise_of_a_recording_is_removed():
    # As long as the recording of the command line's test, so that both share their programs.
    rate, random = 4000, np.random.RandomState(0)
    time = np.arange(N_SAMPLES) / rate
    tones = np.sin(2 * np.pi * 440 * time) * (time % 0.5 < 0.25) + np.sin(2 * np.pi * 1300 * time) * (time % 0.7 > 0.4)
    noisy = tones + 0.3 * random.normal(size=len(time))
    found = denoise_sound(noisy, **QUICK)
    assert found.shape == noisy.shape
    assert np.mean((found - tones) ** 2) < 0.3 * np.mean((noisy - tones) ** 2)


@pytest.mark.parametrize(
    ("samples", "message"),
    [
        (np.zeros(100), "The recording has 100 samples; at least 4096"),
        (np.where(np.arange(9000) == 5, np.nan, 0.1), "1 values that are NaN or infinite"),
        (np.zeros((9000, 2, 2)), "samples must be real numbers of shape"),
    ],
)
def test_recordings_that_cannot_be_denoised(samples, message):
    with pytest.raises(ValueError, match=message):
        denoise_sound(samples)


def test_silence_stays():
    np.testing.assert_array_equal(denoise_sound(np.zeros(9000, np.int16)), np.zeros(9000))


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
