"""The page that compares an image before and after its restoration."""

import base64
import io
import re

import numpy as np
import pytest
from PIL import Image

from multicause.app.report.comparison import write_comparison
from multicause.restoration.patch_posterior import LearnedComponents
from multicause.restoration.restorer import Restoration


@pytest.fixture
def found():
    """A restoration with posterior means of 100 at every pixel, and two components of 2×2 pixels."""
    components = np.array([[1.0, 0, 0, 0], [0, -1, 0, 0]])
    learned = LearnedComponents(components, np.array([0.1, 0.3]), np.ones(2), 4.0)
    return Restoration(np.full((6, 8), 100.0), 2.0, learned, 2)


def pictures(path):
    """Return the text of a page, and its images: after, before, difference, components."""
    text = path.read_text(encoding="utf-8")
    found = re.findall(r"data:image/png;base64,([^\"]+)", text)
    return text, [np.asarray(Image.open(io.BytesIO(base64.b64decode(each)))) for each in found]


def test_a_denoised_image_shows_what_was_taken_away(tmp_path, found):
    before = found.image + np.where(np.arange(8) % 2, 10.0, -10.0)
    write_comparison(tmp_path / "page.html", before, found.image, found, title="image", white=200.0)
    text, (after, shown, difference, components) = pictures(tmp_path / "page.html")
    assert "What was taken away, from −30 (black) to 30 (white)" in text  # three standard deviations
    assert "<dd>2</dd>" in text  # estimated noise
    assert 'type="range"' in text
    assert (after == 128).all()
    np.testing.assert_array_equal(np.unique(shown), [115, 140])  # 90 and 110 of 200
    np.testing.assert_array_equal(np.unique(difference), [85, 170])  # a third of the range beside grey
    assert components.shape == (3 * 4, 6 * 4)  # the more active component is the first
    assert components[0, 4] == 0


def test_an_inpainted_image_shows_what_is_unexplained_of_known_pixels(tmp_path, found):
    """Known pixels are the same before and after, so that their difference would be empty."""
    known = found.image + np.where(np.arange(8) % 2, 10.0, -10.0)
    lost = np.zeros((6, 8), bool)
    lost[2:4, 3] = True
    after = np.where(lost, found.image, known)
    write_comparison(tmp_path / "page.html", np.where(lost, np.nan, known), after, found, title="image", white=200.0)
    text, (_, shown, difference, _) = pictures(tmp_path / "page.html")
    assert "What components leave unexplained of known pixels" in text
    assert f"{2 / 48:.1%} of all pixels" in text
    for image in (shown, difference):
        assert (image[lost] == (255, 0, 255)).all()
    assert len(np.unique(difference[~lost])) == 2
