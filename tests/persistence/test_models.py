"""Saved models: whole or refused, and never code."""

import errno
import hashlib
import json
import os
import pickle

import numpy as np
import pytest
import safetensors.numpy

import multicause
from multicause import MaximalCauses, MixtureOfPoissons, PrincipalComponents, SoftmaxNetwork
from multicause.annealing import LinearCooling
from multicause.noises import Poisson
from multicause.persistence import ModelFileError, container
from multicause.updates import CreditMean

X = np.random.RandomState(0).poisson(3, (30, 4)).astype(float)
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


class Bomb:
    """Unpickled, it would leave a trace."""

    def __init__(self, trace):
        self.trace = trace

    def __reduce__(self):
        return os.mkdir, (str(self.trace),)


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


def test_the_arrays_are_open_to_other_programs(saved):
    path, model = saved
    arrays = safetensors.numpy.load(path.read_bytes())
    np.testing.assert_array_equal(arrays["state/components"], model.components_)


def test_two_hundred_damaged_files(saved, tmp_path, seed):
    """A file with changed bytes, a truncated one and a pickle: each is refused in one sentence, and none runs code."""
    path, model = saved
    content, random = path.read_bytes(), np.random.RandomState(seed)
    trace = tmp_path / "trace"
    for kind in range(200):
        if kind % 4 < 2:
            damaged = bytearray(content)
            for place in random.choice(len(content), random.randint(1, 9), replace=False):
                damaged[place] ^= random.randint(1, 256)
        elif kind % 4 == 2:
            damaged = content[: random.randint(len(content))]
        else:
            damaged = pickle.dumps([model.components_, Bomb(trace)], protocol=random.randint(2, 6))
        path.write_bytes(damaged)
        with pytest.raises(
            ModelFileError, match="damaged|truncated|is a pickle|is empty|has format|is not a model file"
        ):
            multicause.load(path)
    assert not trace.exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (pickle.dumps(1), "is a pickle, which could run any code"),
        (b"PK\x03\x04", "zip archive"),
        (b"\x93NUMPY", "an array of NumPy"),
        (safetensors.numpy.save({"a": np.ones(3)}), "is not a model file of multicause"),
    ],
    ids=["empty", "pickle", "zip", "npy", "safetensors"],
)
def test_other_files(tmp_path, content, message):
    (tmp_path / "model").write_bytes(content)
    with pytest.raises(ModelFileError, match=message):
        multicause.load(tmp_path / "model")


def test_truncated_files_say_how_much_is_missing(saved):
    path, _ = saved
    content = path.read_bytes()
    for size in (200, len(content) - 1):
        path.write_bytes(content[:size])
        with pytest.raises(ModelFileError, match=f"truncated or damaged: .* and has {size:,}"):
            multicause.load(path)


def test_a_newer_format_names_both(saved, monkeypatch):
    path, model = saved
    monkeypatch.setattr(container, "FORMAT", 3)
    model.save(path)
    monkeypatch.undo()
    with pytest.raises(ModelFileError, match=r"has format 3, and this version of multicause reads formats up to 2"):
        multicause.load(path)


def test_files_of_format_1_are_read(saved):
    """They have the checksum of the whole file, computed with zeros in its place."""
    path, model = saved
    header, arrays = container.read(path)
    text = f"format 1 sha256 {'0' * 64} {json.dumps(header)}"
    content = safetensors.numpy.save(arrays, {"multicause": text})
    digest = hashlib.sha256(content).hexdigest().encode()
    path.write_bytes(content.replace(b"0" * 64, digest, 1))
    np.testing.assert_array_equal(multicause.load(path).components_, model.components_)
    path.write_bytes(content.replace(b"0" * 64, digest[::-1], 1))
    with pytest.raises(ModelFileError, match="do not match its checksum"):
        multicause.load(path)


def test_attributes_that_older_files_repeat_are_read(tmp_path):
    """Files had the mean both as a fitted attribute and in the record of the preparation, from which it follows."""
    model = PrincipalComponents(1).fit(X)
    model.save(tmp_path / "model")
    header, arrays = container.read(tmp_path / "model")
    header["history"]["dict"]["mean_"] = {"array": "history/mean_"}
    container.write(tmp_path / "model", header, {**arrays, "history/mean_": model.mean_})
    np.testing.assert_array_equal(multicause.load(tmp_path / "model").mean_, model.mean_)


def a_part(name):
    return lambda header, arrays: header["state"]["dict"]["parts"]["dict"].update(noise={"part": name, "settings": {}})


def set_in(*keys, value):
    def change(header, arrays):
        for key in keys[:-1]:
            header = header[key]
        header[keys[-1]] = value

    return change


def nested(header, arrays):
    value = 1
    for _ in range(300):
        value = {"tuple": [value]}
    header["history"] = value


FORGERIES = {
    "a function of Python": set_in("estimator", value="os:system"),
    "the command line": set_in("estimator", value="multicause.__main__:main"),
    "another module": set_in("estimator", value="multicause.app.cli.commands:app"),
    "a name inside": set_in("estimator", value="multicause.models.maximal_causes:MaximalCauses.fit"),
    "no text": set_in("estimator", value=["os", "system"]),
    "a part for a model": set_in("estimator", value="multicause.noises.poisson:Poisson"),
    "a foreign part": a_part("subprocess:Popen"),
    "a part of another kind": a_part("multicause.priors.bernoulli:Bernoulli"),
    "a model for a part": a_part("multicause.models.maximal_causes:MaximalCauses"),
    "a foreign record": set_in("history", value={"record": "subprocess:Popen", "fields": {"args": "true"}}),
    "an unknown setting": set_in("settings", "dict", "shell", value=True),
    "an impossible setting": set_in("settings", "dict", "n_components", value=-1),
    "an attribute that runs": set_in("history", "dict", "__class__", value=1),
    "a method replaced": set_in("history", "dict", "transform", value=1),
    "no state": lambda header, arrays: header.pop("state"),
    "an array that is not there": set_in("state", "dict", "components", value={"array": "nowhere"}),
    "components of another shape": lambda header, arrays: arrays.update({"state/components": np.ones((2, 9))}),
    "components of three axes": lambda header, arrays: arrays.update({"state/components": np.ones((2, 4, 1))}),
    "activities of another shape": lambda header, arrays: arrays.update({"state/prior/activity": np.ones(3)}),
    "another number of features": set_in("history", "dict", "n_features_in_", value=3),
    "lists": set_in("state", value=[1, 2]),
    "depth": nested,
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_forged_file_with_a_valid_checksum(saved, forgery, monkeypatch):
    """Contents that somebody has changed on purpose run nothing and end in a clear error too."""
    path, _ = saved
    for name in ("os.system", "subprocess.Popen", "multicause.app.cli.main"):
        monkeypatch.setattr(name, lambda *_, **__: pytest.fail("code of a file was run"))
    header, arrays = container.read(path)
    FORGERIES[forgery](header, arrays)
    container.write(path, header, arrays)
    with pytest.raises(ModelFileError, match=str(path)) as error:
        multicause.load(path)
    assert "\n" not in str(error.value)


def test_files_of_version_0_1_name_modules_that_have_moved(tmp_path):
    schedule = LinearCooling(2.0, n_iter=3)
    model = MaximalCauses(2, noise="poisson", annealing=schedule, update=CreditMean(), max_iter=4).fit(X)
    model.save(tmp_path / "model")
    header, arrays = container.read(tmp_path / "model")
    text = json.dumps(header).replace("multicause.annealing.linear:", "multicause.learning.annealing:")
    text = text.replace("multicause.updates.", "multicause.learning.updates.").replace(
        "multicause.em.", "multicause.learning."
    )
    assert text.count("multicause.learning.") >= 4
    container.write(tmp_path / "model", json.loads(text), arrays)
    loaded = multicause.load(tmp_path / "model")
    assert (loaded.annealing, loaded.update) == (schedule, CreditMean())
    np.testing.assert_array_equal(loaded.transform(X), model.transform(X))


def test_a_part_of_ones_own_must_be_named(tmp_path):
    model = MaximalCauses(2, noise=MyNoise(), max_iter=3, random_state=0).fit(X)
    model.save(tmp_path / "model")
    with pytest.raises(ModelFileError, match=r"which is not a part of multicause.*load\(path, parts=\[MyNoise\]\)"):
        multicause.load(tmp_path / "model")
    loaded = multicause.load(tmp_path / "model", parts=[MyNoise])
    np.testing.assert_array_equal(loaded.transform(X), model.transform(X))


def test_a_model_that_starts_from_another_one(tmp_path):
    start = SoftmaxNetwork(2, temperature=2.0, max_iter=1, n_init=1, random_state=0)
    MaximalCauses(2, noise="poisson", init=start, max_iter=2).fit(X).save(tmp_path / "model")
    assert multicause.load(tmp_path / "model").init.get_params() == start.get_params()


def test_arrays_that_do_not_lie_in_order(tmp_path):
    """safetensors takes memory as it lies; transposed, strided and swapped arrays must come back as they are."""
    arrays = {
        "transposed": np.arange(12.0).reshape(3, 4).T,
        "strided": np.arange(12)[::2],
        "swapped": np.arange(3, dtype=">f8"),
        "scalar": np.array(2.5),
        "empty": np.empty((0, 3), dtype=np.float32),
        "bools": np.array([True, False]),
    }
    container.write(tmp_path / "file", {}, arrays)
    for name, array in container.read(tmp_path / "file")[1].items():
        np.testing.assert_array_equal(array, arrays[name])
        assert array.shape == arrays[name].shape
        assert array.dtype == arrays[name].dtype.newbyteorder("=")


@pytest.mark.parametrize(
    ("number", "message"),
    [
        (errno.ENOSPC, "Cannot save to .*: there is no space left on the device; free some"),
        (errno.EACCES, "Cannot save to .*: permission denied"),
        (errno.EROFS, "the file system is read-only"),
    ],
)
def test_nothing_half_written(saved, monkeypatch, number, message):
    path, model = saved
    before = path.read_bytes()

    def fail(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(OSError, match=message) as error:
        model.save(path)
    assert error.value.errno == number
    assert path.read_bytes() == before
    assert [p.name for p in path.parent.iterdir()] == ["model"]


def test_folders_and_missing_files(saved):
    path, model = saved
    with pytest.raises(FileNotFoundError, match="Cannot read .*: there is no such file"):
        multicause.load(path.with_name("missing"))
    with pytest.raises(IsADirectoryError, match="Cannot read .*: it is a folder"):
        multicause.load(path.parent)
    with pytest.raises(IsADirectoryError, match="Cannot save to .*: it is a folder"):
        model.save(path.parent)
    with pytest.raises(FileNotFoundError, match="the folder .* does not exist"):
        model.save(path.parent / "nowhere" / "model")
    with pytest.raises(FileNotFoundError, match="the folder .* does not exist"):
        model.save(path / "model")


def test_no_permission_to_read(saved, monkeypatch):
    path, _ = saved

    def refuse(*_, **__):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr("pathlib.Path.read_bytes", refuse)
    with pytest.raises(PermissionError, match="Cannot read .*: permission denied"):
        multicause.load(path)


def test_files_from_before_mixtures_had_a_file_each(tmp_path):
    model = MixtureOfPoissons(2, max_iter=4, random_state=0).fit(X)
    model.save(tmp_path / "model")
    header, arrays = container.read(tmp_path / "model")
    text = json.dumps(header).replace("multicause.models.mixture_of_poissons:", "multicause.models.mixtures:")
    container.write(tmp_path / "model", json.loads(text), arrays)
    np.testing.assert_array_equal(multicause.load(tmp_path / "model").transform(X), model.transform(X))


class Mine(MaximalCauses):
    """A model that is not the library's."""


def test_a_subclass_is_loaded_if_it_is_named(tmp_path):
    Mine(2, max_iter=1, random_state=0).fit(X).save(tmp_path / "model")
    with pytest.raises(ValueError, match=r"load\(path, parts=\[Mine\]\)"):
        multicause.load(tmp_path / "model")
    assert type(multicause.load(tmp_path / "model", parts=[Mine])) is Mine


def test_saving_into_a_missing_folder(tmp_path):
    with pytest.raises(FileNotFoundError, match="the folder .*missing does not exist"):
        MaximalCauses(2, max_iter=1).fit(X).save(tmp_path / "missing" / "model")
