"""Images without noise: how much is removed, units, colours, counts, and images that are refused."""

import numpy as np
import pytest

from multicause import SpikeAndSlabCauses
from multicause.restoration import denoise_image, restorer
from multicause.restoration.denoising import detail_of, noise_left_by_filter, sizes_for, with_model_for
from multicause.restoration.restorer import RestorationSettings
from tests.restoration.conftest import QUICK, psnr


@pytest.fixture(scope="module")
def denoised(noisy):
    return denoise_image(noisy, **QUICK)


def test_noise_is_removed(clean, noisy, denoised):
    assert psnr(denoised, clean) > psnr(noisy, clean) + 5


@pytest.mark.parametrize("few_patches_first", [True, False])
def test_with_little_noise_small_and_large_patches_are_combined(clean, monkeypatch, few_patches_first):
    if few_patches_first:  # as in larger images
        monkeypatch.setattr(restorer, "LEAST_PATCHES", 500)
    noisy = clean + 15 * np.random.RandomState(0).normal(size=clean.shape)
    settings = {**QUICK, "patch_size": None, "max_iter": 3}
    parts = []
    combined = denoise_image(noisy, **settings, progress=lambda part, text: parts.append(part))
    assert parts == sorted(parts)
    assert parts[-1] == 1
    single = [psnr(denoise_image(noisy, **{**settings, "patch_size": size}), clean) for size in (8, 12)]
    assert psnr(combined, clean) > np.mean(single)


def test_a_single_iteration_learns_from_all_patches(clean, monkeypatch):
    monkeypatch.setattr(restorer, "LEAST_PATCHES", 500)
    noisy = clean + 15 * np.random.RandomState(0).normal(size=clean.shape)
    found = denoise_image(noisy, **{**QUICK, "patch_size": None, "max_iter": 1})
    assert psnr(found, clean) > psnr(noisy, clean)


@pytest.mark.parametrize(
    ("side", "level", "detail", "expected"),
    [
        (96, 0.1, 0, (8, 12)),
        (96, 0.6, 0, (10,)),
        (96, 1.0, 0, (12,)),
        (96, 0.55, 1, (8,)),  # much detail in small patches
        (16, 0.1, 0, (8,)),  # 25 large patches, fewer than components
        (9, 1.0, 0, (8,)),  # no large one
    ],
)
def test_sizes_of_patches_follow_noise_detail_and_image(side, level, detail, expected):
    random = np.random.RandomState(0)
    ramp = np.linspace(-1.7, 1.7, side)[:, None] + np.zeros((side, side))
    image = random.normal(size=(side, side)) if detail else ramp
    noisy = (image + level * random.normal(size=image.shape))[..., None]
    assert sizes_for(noisy, level, RestorationSettings(n_components=64)) == expected


def test_a_linear_filter_leaves_the_noise_along_directions_of_the_signal():
    random = np.random.RandomState(0)
    # White signal: every direction but that of the mean of 64 pixels has the variance 4, so that 4 / (4 + 1) is left.
    noisy = (2 * random.normal(size=(200, 200, 1))) + random.normal(size=(200, 200, 1))
    assert noise_left_by_filter(noisy, 1.0) == pytest.approx(63 / 64 * 4 / 5, rel=0.02)
    smooth = np.linspace(0, 0.01, 200)[:, None, None] + random.normal(size=(200, 200, 1))
    assert noise_left_by_filter(smooth, 1.0) < 0.05


@pytest.mark.parametrize("side", [8, 12, 13])
def test_very_small_images_are_denoised(side):
    image = np.random.RandomState(0).normal(size=(side, side))
    if side == 8:
        with pytest.raises(ValueError, match="at least two patches"):
            denoise_image(image, n_components=4, max_iter=2, random_state=0)
    else:
        assert denoise_image(image, n_components=4, max_iter=2, random_state=0).shape == image.shape


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


def test_denoising_fills_missing_pixels_in(clean, noisy):
    few = np.random.RandomState(2).uniform(size=clean.shape) < 0.05
    found = denoise_image(np.where(few, np.nan, noisy), **QUICK)
    assert psnr(found, clean) > psnr(noisy, clean) + 3


def test_detail_is_the_variance_of_the_signal_within_patches_relative_to_the_noise():
    stripes = np.tile([1.0, -1.0], (160, 80))[..., None]  # a variance of one within any patch
    for level, expected in ((0.5, 4.0), (2.0, 0.25)):
        noisy = stripes + level * np.random.RandomState(0).normal(size=stripes.shape)
        # Variances of 400 patches of 64 pixels: the limit is five standard errors or more.
        assert detail_of(noisy, level) == pytest.approx(expected, abs=0.06 * (1 + expected))


def test_models_grow_with_detail_unless_their_size_is_given():
    stripes = np.tile([1.0, -1.0], (32, 16))[..., None]
    sizes = [with_model_for(stripes, level, RestorationSettings()) for level in (0.5, 0.66, 2.0)]
    found = [(each.n_components, each.search.max_active, each.second_search.max_active) for each in sizes]
    assert found == [(1024, 8, 8), (512, 5, 8), (512, 5, 5)]
    colours = with_model_for(np.repeat(stripes, 3, axis=2), 0.5, RestorationSettings())
    assert (colours.n_components, colours.second_search.max_active) == (512, 8)


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


def test_an_interrupted_fit_does_not_restore(noisy, monkeypatch):
    monkeypatch.setattr(SpikeAndSlabCauses, "outcome_", "stopped", raising=False)
    monkeypatch.setattr(SpikeAndSlabCauses, "fit", lambda self, X: self)
    with pytest.raises(KeyboardInterrupt):
        denoise_image(noisy, **QUICK)
