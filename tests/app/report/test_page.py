"""The page as text: it is safe, loads nothing, and needs data that suit the model."""

import re

import numpy as np
import pandas
import pytest
from sklearn.decomposition import PCA

import multicause
from multicause.app.report import write_report

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
NASTY = "</script><script>alert(1)</script>"


def test_names_and_titles_do_no_harm_and_nothing_is_loaded(tmp_path):
    X = pandas.DataFrame(np.random.RandomState(0).normal(size=(20, 2)), columns=[NASTY, "b"])
    model = multicause.KMeans(2, random_state=0).fit(X)
    text = write_report(model, X, tmp_path / "report.html", title=NASTY, warnings=[NASTY]).read_text()
    assert "<script>alert" not in text
    assert text.count("<script") == 2  # the contents and the script of the page
    assert not re.search(r"(src|href)=[\"'](?!data:)", text)
    assert "default-src 'none'" in text


def test_what_does_not_fit_is_refused(bars, causes, tmp_path):
    for settings, message in [
        ({"image_shape": (5, 4)}, r"image_shape=\(5, 4\) has 5·4 = 20 pixels, but rows have 25 features"),
        ({"image_shape": 25}, "image_shape must be a height and a width"),
        ({"kind": "patches"}, "kind='patches' needs an image_shape"),
        ({"kind": "film"}, "Unknown kind 'film'. Known: table"),
        ({"feature_names": ["a"]}, "feature_names must have 25 names; got 1"),
    ]:
        with pytest.raises(ValueError, match=message):
            write_report(causes, bars.data, tmp_path / "x.html", **settings)
    with pytest.raises(ValueError, match="X must have the 25 features"):
        write_report(causes, bars.data[:, :3], tmp_path / "x.html")
    with pytest.raises(TypeError, match="must be a fitted estimator of multicause; got PCA"):
        write_report(PCA(2).fit(bars.data), bars.data, tmp_path / "x.html")
    with pytest.raises(FileNotFoundError, match="does not exist"):
        write_report(causes, bars.data, tmp_path / "no" / "x.html")
    assert not list(tmp_path.iterdir())
