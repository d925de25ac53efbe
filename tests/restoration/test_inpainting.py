"""Missing pixels that are filled in, however they are marked, and masks that are refused."""

import numpy as np
import pytest

from multicause.restoration import denoise_image, inpaint_image
from multicause.restoration.inpainting import fill_smoothly
from tests.restoration.conftest import QUICK, psnr

# Images are restored several times, and in strips: that takes longer than to compile programs well.
pytestmark = pytest.mark.usefixtures("optimized")


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


def test_a_constant_image_stays(lost):
    image = np.full(lost.shape, 7, dtype=np.uint16)
    np.testing.assert_array_equal(denoise_image(image, **QUICK), image)
    np.testing.assert_array_equal(inpaint_image(image, lost, **QUICK), image)


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


def test_small_images_with_many_missing_pixels_say_which_patch_does_not_fit():
    image = np.where(np.random.RandomState(0).uniform(size=(10, 10)) < 0.75, np.nan, np.eye(10))
    with pytest.raises(ValueError, match="A patch of 12×12 does not fit into the image of 10×10"):
        inpaint_image(image)
