"""A model of bars and its report, which tests share, and what a page holds."""

import base64
import json
import re

import numpy as np
import pytest

import multicause
from multicause.annealing import LinearCooling
from multicause.app.report import write_report
from multicause.datasets import make_bars
from multicause.posteriors import Preselected


def contents_in(path):
    """What the script of a page reads."""
    return json.loads(re.search(r'id="contents">(.*?)</script>', path.read_text(), re.S)[1])


def decoded(source, text=None):
    """Rows from the bytes of a page, as its script reads them."""
    levels = np.frombuffer(base64.b64decode(source["bytes"] if text is None else text), np.uint8)
    low, high = np.array(source["low"])[:, None], np.array(source["high"])[:, None]
    return low + levels.reshape(len(low), -1) / 255 * (high - low)


@pytest.fixture(scope="session")
def bars():
    return make_bars(80, noise="poisson", random_state=0)


@pytest.fixture(scope="session")
def causes(bars):
    """Annealed, and at the end learned from those rows that two causes explain."""
    parts = {"annealing": LinearCooling(4.0, n_iter=8), "posterior": Preselected(3, 2), "noise": "poisson"}
    return multicause.MaximalCauses(4, **parts, max_iter=8, random_state=0).fit(bars.data)


@pytest.fixture(scope="session")
def written(bars, causes, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    return write_report(causes, bars.data, path, image_shape=(5, 5), title="Bars", warnings=["Mind the gap."])


@pytest.fixture(scope="session")
def contents(written):
    return contents_in(written)
