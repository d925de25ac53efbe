"""Data that stay on disk: the same results as in memory, and errors that name the rows."""

import errno
import os
import signal
from functools import partial

import numpy as np
import pytest
from sklearn.base import clone

from multicause import (
    EnergyComponents,
    FactorAnalysis,
    HelmholtzMachine,
    KMeans,
    LinearCauses,
    MaximalCauses,
    MixtureOfPoissons,
    SoftmaxNetwork,
    SparseCoding,
    SpikeAndSlabCauses,
)
from multicause.callbacks import Checkpoint, IterationCallback
from multicause.datasets import make_bars
from multicause.engines import Local
from multicause.engines.array_sources import as_source
from multicause.engines.streamed import StreamedData
from multicause.metrics import recovered_causes
from multicause.runtime.parallel import in_order, read_ahead
from tests.engines.conftest import PLAIN, import_or_skip

# Less than the rows take, so that they are read again in every pass.
SMALL = Local(memory_budget="2MiB", n_jobs=2)


@pytest.fixture(scope="module")
def rows():
    return make_bars(24_000, noise="poisson", random_state=0).data.astype(np.float32)


@pytest.fixture(scope="module")
def stored(rows, tmp_path_factory):
    """The same rows as a memory map, a part of one, an HDF5 and a zarr array."""
    h5py, zarr = import_or_skip("h5py"), import_or_skip("zarr")
    folder = tmp_path_factory.mktemp("stored")
    np.save(folder / "rows.npy", rows)
    np.save(folder / "more.npy", np.concatenate([rows[:10], rows]))
    with h5py.File(folder / "rows.h5", "w") as file:
        file.create_dataset("rows", data=rows, chunks=(1000, 25))
    array = zarr.create_array(folder / "rows.zarr", shape=rows.shape, chunks=(1000, 25), dtype=rows.dtype)
    array[:] = rows
    with h5py.File(folder / "rows.h5") as file:
        yield {
            "memory map": np.load(folder / "rows.npy", mmap_mode="r"),
            "part of a memory map": np.load(folder / "more.npy", mmap_mode="r")[10:],
            "h5py": file["rows"],
            "zarr": zarr.open(folder / "rows.zarr", mode="r"),
        }


def fit_both(model, rows, stored, **settings):
    """Return the model fitted in memory and from disk, in blocks of about the same size."""
    return (clone(model).set_params(engine=SMALL).fit(X, **settings) for X in (rows, stored))


@pytest.mark.parametrize("kind", ["memory map", "part of a memory map", "h5py", "zarr"])
def test_a_fit_to_rows_on_disk_equals_one_in_memory(rows, stored, kind):
    assert SMALL.source(stored[kind]) is not None
    here, there = fit_both(MaximalCauses(6, noise="poisson", **PLAIN), rows, stored[kind])
    np.testing.assert_allclose(there.lower_bounds_, here.lower_bounds_, rtol=1e-6)
    np.testing.assert_allclose(there.components_, here.components_, rtol=2e-4, atol=1e-5)
    np.testing.assert_allclose(there.transform(stored[kind]), here.transform(rows), atol=1e-4)
    assert there.score(stored[kind]) == pytest.approx(here.score(rows), rel=1e-6)


@pytest.mark.parametrize(
    "model",
    [
        LinearCauses(6, posterior="preselected", **PLAIN),
        FactorAnalysis(4, max_iter=4, random_state=0),
        KMeans(4, max_iter=3, init="data", random_state=0),
        MixtureOfPoissons(4, max_iter=3, random_state=0),
        SpikeAndSlabCauses(4, annealing=None, max_iter=4, tol=0, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_every_model_of_sums_reads_from_disk(rows, stored, model, seed):
    if hasattr(model, "init") and not isinstance(model, LinearCauses | FactorAnalysis):
        model = clone(model).set_params(init=rows[:4] + 0.5)  # starts must not depend on which rows are looked at
    weights = np.random.RandomState(seed).uniform(0.5, 2, len(rows))
    here, there = fit_both(model, rows, stored["memory map"], sample_weight=weights)
    np.testing.assert_allclose(there.components_, here.components_, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("kind", [SparseCoding, HelmholtzMachine])
def test_models_of_small_batches_read_blocks_in_random_order(rows, stored, kind, tmp_path, monkeypatch):
    np.save(tmp_path / "binary.npy", (rows > 4).astype(np.float32))
    stored = np.load(tmp_path / "binary.npy", mmap_mode="r")
    model, visited = kind(3, max_iter=2, tol=0, batch_size=500, random_state=0), []
    for module in ("local_data", "streamed"):  # the same blocks in memory and on disk
        monkeypatch.setattr(f"multicause.engines.{module}.block_shape", lambda *_, **__: (3000, 8))
    read = StreamedData._block
    monkeypatch.setattr(StreamedData, "_block", lambda data, number: visited.append(number) or read(data, number))
    here, there = fit_both(model, np.asarray(stored), stored, sample_weight=np.arange(len(rows)) % 3)
    np.testing.assert_allclose(there.components_, here.components_, rtol=1e-3, atol=1e-3)
    passes = [visited[start : start + 8] for start in range(len(visited) - 7)]
    assert any(sorted(order) == list(range(8)) != order for order in passes)


@pytest.mark.parametrize("kind", [SoftmaxNetwork, EnergyComponents])
def test_models_of_single_rows_learn_from_a_sample(stored, kind):
    model = kind(3, max_iter=1, random_state=0, engine=Local(memory_budget="1MiB"))
    with pytest.warns(
        UserWarning, match=r"holds a random sample of 10,485 rows, of 24,000.*Local\(memory_budget="
    ) as caught:
        model.fit(stored["memory map"])
    assert {record.filename for record in caught} == {__file__}
    found = model.transform(stored["memory map"])
    np.testing.assert_allclose(found, model.transform(np.asarray(stored["memory map"])), rtol=1e-3, atol=1e-4)


def test_a_search_from_disk_finds_all_bars(tmp_path):
    bars = make_bars(16_000, size=3, noise="poisson", random_state=0)
    np.save(tmp_path / "rows.npy", bars.data.astype(np.float32))
    stored, engine = np.load(tmp_path / "rows.npy", mmap_mode="r"), Local(memory_budget="450KiB", n_jobs=2)
    model = MaximalCauses(6, noise="poisson", engine=engine, random_state=0, max_iter=150).fit(stored)
    assert recovered_causes(model, bars.causes).all_found


@pytest.mark.parametrize("gaps", [False, True])
def test_the_overview_is_that_of_numpy(rows, gaps, tmp_path):
    X = rows.astype(float) + 1e6
    X[5, 2] += 0.5
    X[:, 4] = 1
    if gaps:
        X[::3, 1] = np.nan
    weights = np.random.RandomState(0).randint(0, 3, len(X)).astype(float)
    np.save(tmp_path / "rows.npy", X)
    for data in (
        Local().load(X, weights),
        SMALL.load(as_source(np.load(tmp_path / "rows.npy", mmap_mode="r")), weights),
    ):
        found, observed = data.overview, ~np.isnan(X)
        assert found.missing.n_missing == (~observed).sum()
        np.testing.assert_array_equal(found.lowest, np.nanmin(X, axis=0))
        np.testing.assert_array_equal(found.highest, np.nanmax(X, axis=0))
        assert found.unusual[1] == X[5, 2]  # the only one that is no whole number
        assert found.weight == weights.sum()
        means = np.ma.average(np.ma.masked_invalid(X), axis=0, weights=weights)
        np.testing.assert_allclose(found.mean, means, rtol=1e-12)
        variances = np.ma.average((np.ma.masked_invalid(X) - means) ** 2, axis=0, weights=weights)
        assert found.spread == pytest.approx(variances.mean(), rel=1e-8)


def _method(function):
    return lambda *arguments: function(*arguments)


def test_rows_are_read_once_before_the_first_iteration(stored, monkeypatch):
    n_passes = {"_parts": 0, "_run": 0}

    def counted(name, method, data, *arguments):
        n_passes[name] += 1
        return method(data, *arguments)

    for name in n_passes:
        monkeypatch.setattr(StreamedData, name, _method(partial(counted, name, getattr(StreamedData, name))))
    model = MaximalCauses(4, noise="poisson", engine=SMALL, **PLAIN).fit(stored["memory map"])
    # One pass for checks and moments, one for each of four iterations, and one for the bound at the end.
    assert n_passes == {"_parts": 1, "_run": 5}
    model.transform(stored["memory map"])
    assert n_passes == {"_parts": 2, "_run": 6}


def test_small_maps_are_loaded(stored):
    assert Local().source(stored["memory map"]) is None
    assert Local().source(np.zeros((3, 2))) is None


def test_a_fit_from_disk_is_resumed(rows, stored, tmp_path):
    model = LinearCauses(4, engine=SMALL, **PLAIN).set_callbacks(Checkpoint(tmp_path, every=1))
    whole = model.fit(stored["memory map"])
    for path in sorted(tmp_path.glob("*.checkpoint"))[1:]:
        path.unlink()
    again = clone(model).fit(stored["memory map"], resume=tmp_path)
    np.testing.assert_array_equal(again.components_, whole.components_)
    with pytest.raises(ValueError, match="data"):
        clone(model).fit(np.asarray(stored["memory map"]) + 1, resume=tmp_path)


def test_a_bad_value_is_named(rows, tmp_path):
    bad = rows.copy()
    bad[20_123, 7] = np.inf
    np.save(tmp_path / "bad.npy", bad)
    with pytest.raises(ValueError, match=r"infinity: row 20,123, column 7 of the memory map of .*bad\.npy"):
        LinearCauses(3, engine=SMALL, **PLAIN).fit(np.load(tmp_path / "bad.npy", mmap_mode="r"))


def test_a_file_that_shrinks_is_named(rows, tmp_path):
    path = tmp_path / "rows.npy"
    np.save(path, rows)
    source = as_source(np.load(path, mmap_mode="r"))
    os.truncate(path, path.stat().st_size // 2)
    with pytest.raises(OSError, match=r"Rows 23,000 to 23,999 of .* has become smaller"):
        source.read(23_000, 24_000)


def test_a_file_that_grows_is_named(rows, tmp_path):
    path = tmp_path / "rows.npy"
    np.save(path, rows)
    source = as_source(np.load(path, mmap_mode="r"))
    with path.open("ab") as file:
        file.write(b"more")
    with pytest.raises(
        OSError, match=r"Rows 5 to 8 of the memory map of .*rows\.npy cannot be read: it has become larger"
    ):
        source.read(5, 9)


def test_a_file_that_shrinks_while_learning_ends_the_fit(rows, tmp_path):
    path = tmp_path / "rows.npy"
    np.save(path, rows)

    class Shrink(IterationCallback):
        def after(self, iteration):
            os.truncate(path, path.stat().st_size // 2)

    model = LinearCauses(4, engine=SMALL, **PLAIN).set_callbacks(Shrink())
    with pytest.raises(OSError, match=r"has become smaller since it was opened"):
        model.fit(np.load(path, mmap_mode="r"))


def test_an_interrupted_fit_from_disk_is_resumed(stored, tmp_path, ctrl_c):
    class Interrupt(IterationCallback):
        def after(self, iteration):
            if iteration.number == 2:
                os.kill(os.getpid(), signal.SIGINT)

    model = LinearCauses(4, engine=SMALL, **PLAIN)
    whole = clone(model).fit(stored["memory map"])
    stopped = clone(model).set_callbacks(Interrupt(), Checkpoint(tmp_path, every=1)).fit(stored["memory map"])
    assert (stopped.outcome_, stopped.n_iter_) == ("stopped", 2)
    resumed = clone(model).fit(stored["memory map"], resume=tmp_path)
    np.testing.assert_array_equal(resumed.components_, whole.components_)


def test_a_file_that_vanishes_can_be_read_on(rows, tmp_path):
    path = tmp_path / "rows.npy"
    np.save(path, rows)
    source = as_source(np.load(path, mmap_mode="r"))
    path.unlink()
    np.testing.assert_array_equal(source.read(5, 9), rows[5:9])


def test_shapes_and_dtypes_that_cannot_be_learned_from(tmp_path):
    np.save(tmp_path / "cube.npy", np.zeros((4, 3, 2)))
    with pytest.raises(ValueError, match=r"two dimensions.*\(4, 3, 2\)"):
        as_source(np.load(tmp_path / "cube.npy", mmap_mode="r"))
    np.save(tmp_path / "text.npy", np.array([["a", "b"]]))
    with pytest.raises(ValueError, match="real numbers"):
        as_source(np.load(tmp_path / "text.npy", mmap_mode="r"))


def test_samples_are_rows_of_the_data(rows, stored):
    data = SMALL.load(as_source(stored["memory map"]))
    assert isinstance(data, StreamedData)
    sample = data.sample(500, np.random.RandomState(0))
    known = {row.tobytes() for row in rows}
    assert sample.n_rows == 500
    assert all(row.tobytes() in known for row in sample.rows())
    np.testing.assert_array_equal(data.rows(np.array([3, 4, 5, 900])), rows[[3, 4, 5, 900]])


def test_results_come_in_order_and_errors_come_through():
    assert list(in_order(lambda k: k * k, ((k,) for k in range(20)), 3)) == [k * k for k in range(20)]
    assert list(read_ahead(range(50), 2)) == list(range(50))

    def failing():
        yield 1
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk is gone"):
        list(in_order(lambda k: k, ((k,) for k in read_ahead(failing(), 2)), 2))


# -------------------------------------------------------------------------------------- results that are written


@pytest.fixture(scope="module")
def fitted(rows):
    return FactorAnalysis(3, max_iter=2, random_state=0, engine=SMALL).fit(rows)


def test_results_are_written_block_by_block(rows, stored, fitted, tmp_path, monkeypatch):
    expected = fitted.transform(stored["memory map"])
    monkeypatch.setattr(StreamedData, "collect", None)  # all results would be in memory
    found = fitted.transform(stored["memory map"], out=tmp_path / "causes.npy")
    assert isinstance(found, np.memmap)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(np.load(tmp_path / "causes.npy"), expected)
    array = np.zeros((24_000, 3))
    assert fitted.transform(stored["memory map"], out=array) is array
    np.testing.assert_array_equal(array, expected)
    mapped = np.lib.format.open_memmap(tmp_path / "map.npy", "w+", np.float32, (24_000, 3))
    fitted.transform(stored["memory map"], out=mapped)
    np.testing.assert_array_equal(np.load(tmp_path / "map.npy"), expected)


def test_reconstructions_and_imputed_rows_are_written_block_by_block(rows, fitted, tmp_path, monkeypatch):
    gaps = rows.copy()
    gaps[::7, 3] = np.nan
    np.save(tmp_path / "gaps.npy", gaps)
    stored = np.load(tmp_path / "gaps.npy", mmap_mode="r")
    expected = {method: getattr(fitted, method)(gaps) for method in ("reconstruct", "impute")}
    np.testing.assert_array_equal(expected["impute"][~np.isnan(gaps)], gaps[~np.isnan(gaps)])
    assert not np.isnan(expected["impute"]).any()
    for method, result in expected.items():
        np.testing.assert_allclose(getattr(fitted, method)(stored), result, rtol=1e-4, atol=1e-3)
    monkeypatch.setattr(StreamedData, "collect", None)  # all results would be in memory
    for method, result in expected.items():
        found = getattr(fitted, method)(stored, out=tmp_path / f"{method}.npy")
        assert isinstance(found, np.memmap)
        np.testing.assert_allclose(found, result, rtol=1e-4, atol=1e-3)


def test_results_of_rows_in_memory_are_written(rows, fitted, tmp_path):
    for model in (fitted, EnergyComponents(3, max_iter=1, random_state=0).fit(rows[:50])):
        found = model.transform(rows[:100], out=str(tmp_path / "causes.npy"))
        np.testing.assert_array_equal(found, model.transform(rows[:100]))
    assert [path.name for path in tmp_path.iterdir()] == ["causes.npy"]


@pytest.mark.parametrize(
    ("out", "error", "message"),
    [
        (np.zeros((5, 3)), ValueError, r"out must have the shape \(24000, 3\) of the results; got \(5, 3\)"),
        (np.zeros((24_000, 3), int), ValueError, "out must hold float32, or .*; got int64"),
        (np.broadcast_to(0.0, (24_000, 3)), ValueError, "out is read-only"),
        ([0], TypeError, "out must be an array or the name of a file that ends in .npy; got list"),
        ("causes.csv", ValueError, "ends in .npy; got 'causes.csv'"),
        ("nowhere/causes.npy", FileNotFoundError, "the folder 'nowhere' does not exist"),
    ],
)
def test_places_that_results_cannot_be_written_to(stored, fitted, out, error, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error, match=message):
        fitted.transform(stored["memory map"], out=out)
    assert not list(tmp_path.iterdir())


def test_a_limit_on_the_size_of_files_leaves_none(stored, fitted, tmp_path):
    resource = pytest.importorskip("resource", reason="this system has no limits on the size of files")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, before[1]))
    try:
        with pytest.raises(OSError, match=r"Cannot write to .*causes.npy: the file would be larger than this process"):
            fitted.transform(stored["memory map"], out=tmp_path / "causes.npy")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("when", ["before", "while writing"])
def test_a_full_disk_leaves_no_half_written_file(stored, fitted, when, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    (tmp_path / "causes.npy").write_text("what was there before")
    monkeypatch.setattr("os.posix_fallocate" if when == "before" else "os.fsync", full)
    with pytest.raises(OSError, match=r"Cannot write to .*causes.npy: there is no space left on the device; free some"):
        fitted.transform(stored["memory map"], out=tmp_path / "causes.npy")
    assert (tmp_path / "causes.npy").read_text() == "what was there before"
    assert len(list(tmp_path.iterdir())) == 1


def test_a_file_system_that_cannot_reserve_space(stored, fitted, tmp_path, monkeypatch):
    def unsupported(*_):
        raise OSError(errno.EOPNOTSUPP, "Operation not supported")

    monkeypatch.setattr("os.posix_fallocate", unsupported)
    assert fitted.transform(stored["memory map"], out=tmp_path / "causes.npy").shape == (24_000, 3)
