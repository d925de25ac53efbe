"""Sets of files that are learned from without being loaded: npy, parquet, HDF5 and zarr."""

import json
import os
import pickle
import warnings

import numpy as np
import pandas
import pytest
from sklearn.base import clone

import multicause
from multicause import FactorAnalysis, IndependentComponents, LinearCauses, SoftmaxNetwork
from multicause.datasets import make_bars, open_rows
from multicause.datasets.reading import Reading, read_data
from multicause.engines import Local
from multicause.engines.streamed import StreamedData
from tests.app.cli.calls import call, result_of
from tests.engines.conftest import import_or_skip

parquet = import_or_skip("pyarrow.parquet")
PLAIN = {"annealing": None, "repair": False, "max_iter": 3, "tol": 0, "random_state": 0}
NAMES = [f"f{number}" for number in range(25)]
# Less than the rows take.
SMALL = Local(memory_budget="1MiB", n_jobs=2)


@pytest.fixture(scope="module")
def rows():
    return make_bars(12_000, noise="poisson", random_state=0).data


@pytest.fixture(scope="module")
def folder(rows, tmp_path_factory):
    """The same rows in files of several kinds."""
    h5py, zarr = import_or_skip("h5py"), import_or_skip("zarr")
    path = tmp_path_factory.mktemp("files")
    for number, part in enumerate(np.split(rows, [5000, 5700])):
        np.save(path / f"part{number}.npy", part)
        frame = pandas.DataFrame(part, columns=NAMES)
        # Columns are matched by name.
        frame[NAMES[::-1] if number == 1 else NAMES].to_parquet(path / f"part{number}.parquet", row_group_size=900)
    with h5py.File(path / "rows.h5", "w") as file:
        file.create_dataset("group/rows", data=rows)
    with h5py.File(path / "two.h5", "w") as file:
        file["a"], file["b"] = rows, rows[:7]
    zarr.create_array(path / "rows.zarr", data=rows, chunks=(1000, 25))
    np.save(path / "columns.npy", np.asfortranarray(rows))
    np.save(path / "images.npy", rows.reshape(-1, 5, 5))
    np.save(path / "single.npy", rows.astype(np.float32))
    return path


@pytest.mark.parametrize(
    "name",
    ["part*.npy", "part*.parquet", "rows.h5", "two.h5::a", "rows.zarr", "columns.npy", "images.npy", "single.npy"],
)
def test_any_rows_of_any_files_can_be_read(rows, folder, name):
    source = open_rows(folder / name)
    assert source.shape == rows.shape
    assert source.dtype == (np.float32 if name == "single.npy" else np.float64)
    for start, stop in [(0, 10), (4990, 5010), (4999, 5701), (11_990, 12_000), (899, 1801)]:
        np.testing.assert_array_equal(source.read(start, stop), rows[start:stop])
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(source)).read(4990, 5010), rows[4990:5010])
    np.testing.assert_array_equal(np.asarray(open_rows(folder / name, dtype="float32")), rows.astype(np.float32))


def test_files_of_different_kinds_can_follow_each_other(rows, folder):
    source = open_rows(folder / "part0.npy", folder / "rows.h5", folder / "rows.zarr")
    np.testing.assert_array_equal(source.read(4990, 5010), np.concatenate([rows[4990:5000], rows[:10]]))
    assert "part0.npy' and 2 other files" in source.name
    # Columns could be mistaken for each other.
    with pytest.raises(ValueError, match="part0.npy' has no column names, but .*part1.parquet' has"):
        open_rows(folder / "part0.npy", folder / "part1.parquet")


@pytest.mark.parametrize("name", ["part*.npy", "part*.parquet"])
def test_a_fit_to_files_equals_one_in_memory(rows, folder, name):
    source = open_rows(folder / name)
    assert isinstance(SMALL.load(SMALL.source(source)), StreamedData)
    here, there = (LinearCauses(4, engine=SMALL, **PLAIN).fit(X) for X in (rows, source))
    np.testing.assert_allclose(there.components_, here.components_, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(there.transform(source), here.transform(rows), atol=1e-4)


def test_what_fits_into_the_budget_is_loaded(rows, folder):
    assert Local().source(open_rows(folder / "part*.npy")) is None
    here, there = (
        FactorAnalysis(2, max_iter=3, random_state=0).fit(X) for X in (rows, open_rows(folder / "part*.npy"))
    )
    np.testing.assert_array_equal(there.components_, here.components_)


def bad_files(path, rows):
    frame = pandas.DataFrame(rows[:20], columns=NAMES)
    frame.to_parquet(path / "good.parquet")
    frame.drop(columns="f3").to_parquet(path / "lacks.parquet")
    frame.assign(more=1.0).to_parquet(path / "more.parquet")
    frame.assign(word="x").to_parquet(path / "text.parquet")
    frame[["f0"]].astype(str).to_parquet(path / "only_text.parquet")
    frame.assign(f3=np.where(np.arange(20) == 7, np.inf, 1)).to_parquet(path / "gap.parquet")
    frame.iloc[:0].to_parquet(path / "empty.parquet")
    (path / "broken.parquet").write_bytes(b"nothing")
    (path / "broken.h5").write_bytes(b"nothing")
    (path / "broken.npy").write_bytes(b"nothing")
    np.save(path / "good.npy", rows[:20])
    np.save(path / "narrow.npy", rows[:20, :24])
    np.save(path / "words.npy", np.array([["a"]]))


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["nowhere.npy"], "There is no .*nowhere.npy"),
        (["nowhere*.npy"], "No file matches .*nowhere"),
        (["good.npy", "narrow.npy"], "good.npy' has 25 columns and .*narrow.npy' has 24"),
        (["good.parquet", "lacks.parquet"], "lacks.parquet' has other ones than .*good.parquet': it lacks 'f3'"),
        (["good.parquet", "more.parquet"], "more.parquet' has other ones than .*good.parquet' lacks 'more'"),
        (
            ["good.parquet", "text.parquet"],
            "'word' of .*text.parquet' holds values of type .*string, not numbers.*drop=",
        ),
        (["broken.parquet"], "broken.parquet' cannot be read as a parquet file"),
        (["broken.h5"], "broken.h5' cannot be read as a HDF5 file"),
        (["broken.npy"], "broken.npy' cannot be read as an array of numbers"),
        (["words.npy"], "words.npy' must hold real numbers"),
        (["empty.parquet"], "empty.parquet' has no rows"),
        (["x.csv"], "x.csv' cannot be read in parts. Known endings: .npy, .parquet"),
        ([], "Name at least one file"),
    ],
)
def test_files_that_cannot_be_read(names, message, rows, tmp_path):
    bad_files(tmp_path, rows)
    (tmp_path / "x.csv").write_text("a\n1\n")
    with pytest.raises((ValueError, OSError), match=message):
        open_rows(*(tmp_path / name for name in names))


def test_hdf5_files_with_several_datasets(folder):
    with pytest.raises(
        ValueError, match=r"two.h5' holds 2 arrays \(a, b\); expected one. Choose one with two.h5::NAME"
    ):
        open_rows(folder / "two.h5")
    with pytest.raises(ValueError, match="there is no 'c'"):
        open_rows(folder / "two.h5::c")
    assert open_rows(folder / "two.h5::b").shape == (7, 25)


def test_columns_are_chosen_by_name(rows, tmp_path):
    bad_files(tmp_path, rows)
    source = open_rows(tmp_path / "text.parquet", drop=["word"])
    assert source.names == NAMES
    source = open_rows(tmp_path / "good.parquet", tmp_path / "more.parquet", columns=["f2", "f1"])
    np.testing.assert_array_equal(source.read(0, 40), np.tile(rows[:20, [2, 1]], (2, 1)))
    with pytest.raises(ValueError, match="has no column 'g'; it has 'f0'"):
        open_rows(tmp_path / "good.parquet", columns=["g"])


def test_bad_values_and_damaged_row_groups_are_named(rows, folder, tmp_path):
    bad_files(tmp_path, rows)
    source = open_rows(tmp_path / "good.parquet", tmp_path / "gap.parquet")
    with pytest.raises(ValueError, match=r"infinity: row 7, column 3 \('f3'\) of .*gap.parquet"):
        source.read(0, 40)
    content = bytearray((folder / "part0.parquet").read_bytes())
    place = parquet.read_metadata(folder / "part0.parquet").row_group(3).column(4).data_page_offset
    content[place : place + 200] = bytes(200)
    (tmp_path / "damaged.parquet").write_bytes(content)
    source = open_rows(tmp_path / "damaged.parquet")
    assert source.read(0, 2700).shape == (2700, 25)
    with pytest.raises(
        OSError, match=r"Rows 2,700 to 2,709 of .*damaged.parquet' cannot be read: row group 3 is damaged"
    ):
        source.read(2700, 2710)


def test_missing_values_of_files_are_named_where_a_model_needs_all(rows, tmp_path):
    gaps = rows[:3000].copy()
    gaps[2005, 3] = np.nan
    for number, part in enumerate(np.split(gaps, 3)):
        np.save(tmp_path / f"{number}.npy", part)
    model = IndependentComponents(3, max_iter=1, engine=Local(memory_budget="100KiB"))
    with pytest.raises(ValueError, match=r"NaN: row 5, column 3 of '.*2\.npy'.*no value may be missing"):
        model.fit(open_rows(tmp_path / "*.npy"))


def test_files_that_change_while_they_are_read(rows, tmp_path):
    np.save(tmp_path / "rows.npy", rows)
    source = open_rows(tmp_path / "rows.npy")
    with (tmp_path / "rows.npy").open("ab") as file:
        file.write(b"more")
    with pytest.raises(OSError, match=r"Rows 0 to 9 of .*rows.npy' cannot be read: its size has changed"):
        source.read(0, 10)
    (tmp_path / "rows.npy").unlink()
    with pytest.raises(OSError, match=r"Rows 0 to 9 of .*rows.npy' cannot be read: No such file"):
        source.read(0, 10)


def test_a_file_that_is_replaced_by_one_of_the_same_size(rows, tmp_path):
    np.save(tmp_path / "rows.npy", rows[:100])
    source = open_rows(tmp_path / "rows.npy")
    np.save(tmp_path / "new.npy", 0 * rows[:100])
    later = source.read(0, 1).sum() + (tmp_path / "rows.npy").stat().st_mtime + 5
    os.utime(tmp_path / "new.npy", (later, later))
    os.replace(tmp_path / "new.npy", tmp_path / "rows.npy")
    with pytest.raises(OSError, match=r"Rows 0 to 9 of .*rows.npy' cannot be read: it has been written or replaced"):
        source.read(0, 10)


def test_names_of_columns_are_kept_and_compared(rows, folder, tmp_path):
    frame = pandas.DataFrame(rows[:100], columns=NAMES)
    frame[NAMES[::-1]].to_parquet(tmp_path / "reversed.parquet")
    model = LinearCauses(3, engine=SMALL, **PLAIN).fit(open_rows(folder / "part*.parquet"))
    assert model.feature_names_in_.tolist() == NAMES
    loaded = open_rows(folder / "part1.parquet", columns=NAMES)  # which fits into the default budget
    for other in (clone(model).set_params(engine=None), SoftmaxNetwork(3, max_iter=1, random_state=0)):
        assert other.fit(loaded).feature_names_in_.tolist() == NAMES
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_allclose(model.transform(frame), model.transform(open_rows(folder / "part0.parquet"))[:100])
    with pytest.raises(ValueError, match="Feature names must be in the same order as they were in fit"):
        model.transform(open_rows(tmp_path / "reversed.parquet"))
    again = model.transform(open_rows(tmp_path / "reversed.parquet", columns=NAMES))
    np.testing.assert_allclose(again, model.transform(frame))


def test_results_do_not_replace_the_rows_that_they_are_made_of(rows, tmp_path):
    path = tmp_path / "rows.npy"
    np.save(path, rows[:100])
    model = LinearCauses(3, **PLAIN).fit(rows)
    for X in (open_rows(path), np.load(path, mmap_mode="r"), np.load(path, mmap_mode="r")[::2]):
        with pytest.raises(ValueError, match=r"out is .*rows.npy', from which X is read, and would be overwritten"):
            model.reconstruct(X, out=path)
    np.testing.assert_array_equal(np.load(path), rows[:100])


def test_a_folder_stands_for_its_files(folder, tmp_path):
    for number, size in enumerate((3, 2)):
        np.save(tmp_path / f"part{number}.npy", np.full((size, 2), float(number)))
    (tmp_path / "README.txt").write_text("two files")
    (tmp_path / ".hidden.npy").write_text("no array")
    np.testing.assert_array_equal(np.asarray(open_rows(tmp_path))[:, 0], [0, 0, 0, 1, 1])
    with pytest.raises(
        ValueError, match=r"files of several kinds, \.h5, .*\. Name those of one kind: open_rows\('.*\*\.h5'\)"
    ):
        open_rows(folder)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match=r"The folder '.*empty' has no files that end in \.npy, \.parquet"):
        open_rows(tmp_path / "empty")


def test_what_is_no_name_of_a_file_or_no_array(folder):
    with pytest.raises(TypeError, match=r"names of files, one after the other; got list. Write open_rows\(\*files\)"):
        open_rows([folder / "part0.npy"])
    h5py, zarr = import_or_skip("h5py"), import_or_skip("zarr")
    with h5py.File(folder / "rows.h5") as file, pytest.raises(TypeError, match=r"got a File of h5py.*X\['name'\]"):
        LinearCauses(3, **PLAIN).fit(file)
    with pytest.raises(TypeError, match="got a Group of zarr, which holds arrays"):
        LinearCauses(3, **PLAIN).fit(zarr.group())


def test_row_groups_larger_than_the_budget(rows, tmp_path):
    pandas.DataFrame(rows, columns=NAMES).to_parquet(tmp_path / "rows.parquet")
    with pytest.raises(ValueError, match="pieces of 2,400,000 bytes .* smaller row groups"):
        LinearCauses(3, engine=SMALL).fit(open_rows(tmp_path / "rows.parquet"))


# ------------------------------------------------------------------------------------------- the command line


def test_data_larger_than_the_budget_are_opened_and_others_are_loaded(rows, folder):
    files = [folder / f"part{number}.parquet" for number in range(3)]
    small, large = (read_data(files, memory_budget=budget) for budget in ("1GiB", "1MiB"))
    assert isinstance(small.rows, np.ndarray)
    assert not isinstance(large.rows, np.ndarray)
    np.testing.assert_array_equal(np.asarray(large.rows), small.rows)
    assert large.names == small.names == NAMES
    assert "12000 rows of 3 files, 25 columns (0.0 GiB, read block by block)" in large.summary
    images = read_data(folder / "images.npy", memory_budget="1MiB")
    assert (images.kind, images.image_shape) == ("images", (5, 5))
    for name in ("rows.h5", "two.h5::a", "rows.zarr"):
        np.testing.assert_array_equal(read_data(folder / name).rows, rows)
    np.testing.assert_array_equal(read_data(folder / "two.h5", Reading(array="b")).rows, rows[:7])


def test_columns_of_large_tables_are_chosen_as_in_memory(rows, tmp_path):
    frame = pandas.DataFrame(rows, columns=NAMES).assign(word="x", row_id=np.arange(len(rows)) * 3)
    frame.to_parquet(tmp_path / "rows.parquet", row_group_size=2000)
    small, large = (read_data(tmp_path / "rows.parquet", memory_budget=budget) for budget in ("1GiB", "1MiB"))
    assert large.names == small.names == NAMES
    assert any("'row_id' identifies rows" in remark for remark in large.remarks)
    assert any("ignored: 'word'" in remark for remark in large.remarks)


def test_a_run_from_files_larger_than_the_budget(rows, folder, tmp_path):
    files = [folder / f"part{number}.parquet" for number in range(3)]
    words = ["--model", "factors", "--components", 2, "--iterations", 2, "--memory", "1MiB", "--out", tmp_path / "run"]
    found = result_of("fit", *files, *words)
    assert found["data"]["n_rows"] == 12_000
    assert any("random sample of 10,000 of 12,000 rows" in text for text in found["warnings"])
    assert 0 < found["r2"] < 1
    model = multicause.load(tmp_path / "run" / "model.multicause")
    here = FactorAnalysis(2, max_iter=2, random_state=0, engine=Local(memory_budget="1MiB")).fit(rows)
    np.testing.assert_allclose(model.components_, here.components_, rtol=1e-5, atol=1e-8)
    assert (tmp_path / "run" / "report.html").exists()
    found = result_of("transform", tmp_path / "run", *files, "--out", tmp_path / "causes.npy")
    assert found["shape"] == [12_000, 2]
    np.testing.assert_allclose(np.load(tmp_path / "causes.npy"), here.transform(rows), rtol=1e-4, atol=1e-6)
    run = call("transform", tmp_path / "run", *files, "--out", tmp_path / "causes.csv")
    assert run.exit_code == 2
    assert "exceeds the memory budget (1MiB), so results must be written as .npy" in run.stderr
    found = result_of("reconstruct", tmp_path / "run", *files, "--out", tmp_path / "rows.npy")
    assert found["shape"] == [12_000, rows.shape[1]]
    np.testing.assert_allclose(np.load(tmp_path / "rows.npy"), here.reconstruct(rows), rtol=1e-3, atol=1e-4)
    result_of("report", tmp_path / "run", "--out", tmp_path / "again.html")


def test_a_dataset_of_a_file_on_the_command_line(folder, tmp_path):
    words = ["--model", "kmeans", "--components", 2, "--iterations", 2, "--no-report"]
    found = result_of("fit", f"{folder / 'two.h5'}::a", *words, "--out", tmp_path / "run")
    assert found["data"]["n_rows"] == 12_000
    assert json.loads((tmp_path / "run" / "settings.json").read_text())["data"]["paths"][0].endswith("two.h5::a")
    run = call("fit", f"{folder / 'none.h5'}::a", *words, "--out", tmp_path / "other")
    assert run.exit_code == 2
    assert "There is no" in run.stderr
    run = call("fit", folder / "two.h5", *words, "--out", tmp_path / "other")
    assert "holds 2 arrays (a, b); expected one. Choose one with two.h5::NAME" in run.stderr
