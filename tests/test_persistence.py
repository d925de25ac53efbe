"""Saved models: whole or refused, and never code."""

import pickle

import numpy as np
import pytest

import multicause
from multicause import MaximalCauses
from multicause.noises import Poisson

X = np.random.RandomState(0).poisson(3, (30, 4)).astype(float)
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


class MyNoise(Poisson):
    """A part that is not the library's."""


@pytest.fixture
def saved(tmp_path):
    model = MaximalCauses(2, noise="poisson", init=np.ones((2, 4)), activity=[0.2, 0.3], max_iter=3).fit(X)
    model.save(tmp_path / "model")
    return tmp_path / "model", model


def test_arrays_among_the_settings_come_back(saved):
    path, model = saved
    loaded = multicause.load(path)
    np.testing.assert_array_equal(loaded.init, model.init)
    assert list(loaded.activity) == [0.2, 0.3]
    assert loaded.learn == model.learn
    assert pickle.loads(pickle.dumps(model)).score(X) == loaded.score(X)


def test_every_changed_byte_is_noticed(saved, seed):
    path, _ = saved
    content = bytearray(path.read_bytes())
    random = np.random.RandomState(seed)
    for place in random.choice(len(content), 60, replace=False):
        damaged = content.copy()
        damaged[place] ^= random.randint(1, 256)
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match="is damaged|is not a model saved by"):
            multicause.load(path)


def test_truncated_and_foreign_files(saved):
    path, model = saved
    content = path.read_bytes()
    for size in (0, 5, 40, 100, len(content) - 1):
        path.write_bytes(content[:size])
        with pytest.raises(ValueError, match="is damaged|is not a model saved by"):
            multicause.load(path)
    path.write_bytes(pickle.dumps(model))
    with pytest.raises(ValueError, match="is not a model saved by"):
        multicause.load(path)
    with pytest.raises(FileNotFoundError):
        multicause.load(path.with_name("missing"))


def test_a_part_of_ones_own_must_be_named(tmp_path):
    model = MaximalCauses(2, noise=MyNoise(), max_iter=3, random_state=0).fit(X)
    model.save(tmp_path / "model")
    with pytest.raises(ValueError, match=r"which is not a part of multicause.*load\(path, parts=\[MyNoise\]\)"):
        multicause.load(tmp_path / "model")
    loaded = multicause.load(tmp_path / "model", parts=[MyNoise])
    np.testing.assert_array_equal(loaded.transform(X), model.transform(X))


def test_nothing_half_written(saved, monkeypatch):
    path, model = saved
    before = path.read_bytes()

    def fail(*_):
        raise OSError("No space left on device")

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(OSError, match="No space left"):
        model.save(path)
    assert path.read_bytes() == before
    assert [p.name for p in path.parent.iterdir()] == ["model"]
