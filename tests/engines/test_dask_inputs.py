"""Data of all kinds on a Dask cluster: arrays, frames, delayed blocks and files."""

import warnings
from contextlib import nullcontext

import numpy as np
import pytest
from sklearn.base import clone

from multicause import LinearCauses
from multicause.datasets import open_rows
from multicause.engines import Dask
from tests.engines.conftest import PLAIN, import_or_skip

da = import_or_skip("dask.array")


def test_frames_delayed_blocks_and_arrays(client, rows):
    dd, dask = import_or_skip("dask.dataframe", "dask[dataframe]"), import_or_skip("dask")
    pandas = import_or_skip("pandas")
    model = LinearCauses(3, engine=Dask(client), **PLAIN)
    frame = pandas.DataFrame(rows[:1000], columns=[f"f{k}" for k in range(25)])
    forms = {
        "array": rows[:1000],
        "frame": dd.from_pandas(frame, npartitions=3),
        "delayed": [dask.delayed(rows[:400]), dask.delayed(rows[400:1000])],
        "unknown sizes": dd.from_pandas(frame, npartitions=3).to_dask_array(),
        "chunks of columns": da.from_array(rows[:1000], chunks=(300, 10)),
    }
    expected = LinearCauses(3, **PLAIN).fit(rows[:1000])
    for name, form in forms.items():
        told = pytest.warns(UserWarning, match="unknown sizes") if name == "unknown sizes" else nullcontext()
        with told as caught:
            found = clone(model).fit(form)
        assert caught is None or {record.filename for record in caught} == {__file__}
        np.testing.assert_allclose(found.components_, expected.components_, rtol=1e-3, atol=1e-3)


def test_names_and_numbers_of_columns_are_compared_before_anything_is_computed(client, rows):
    dd, pandas = import_or_skip("dask.dataframe", "dask[dataframe]"), import_or_skip("pandas")
    plain = pandas.DataFrame(rows[:1000], columns=[f"f{k}" for k in range(25)])
    frame = dd.from_pandas(plain, npartitions=2)
    model = LinearCauses(3, engine=Dask(client), **PLAIN).fit(frame)
    assert model.feature_names_in_.tolist() == list(plain.columns)
    here = clone(model).set_params(engine=None).fit(plain).transform(plain)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = model.transform(frame).compute()
    np.testing.assert_allclose(found, here, rtol=1e-4, atol=1e-5)
    with pytest.raises(ValueError, match="Feature names must be in the same order as they were in fit"):
        model.transform(frame[list(plain.columns[::-1])])
    with pytest.raises(ValueError, match="The feature names should match those that were passed during fit"):
        model.score(frame.rename(columns={"f0": "g"}))
    with pytest.raises(ValueError, match="X has 9 features, but LinearCauses is expecting 25"):
        clone(model).fit(da.from_array(rows, chunks=(1000, 25))).transform(da.from_array(rows[:, :9]))
    with pytest.raises(ValueError, match=r"must hold numbers; 'city' does not.*X.drop\(columns=\['city'\]\)"):
        model.fit(frame.assign(city="x"))


def test_a_single_delayed_block_and_lists_of_other_things(client, rows):
    dask = import_or_skip("dask")
    here, block = LinearCauses(3, **PLAIN).fit(rows[:100]), dask.delayed(rows[:100])
    there = LinearCauses(3, **PLAIN).fit(block)
    np.testing.assert_allclose(there.components_, here.components_, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(there.transform(block).compute(), here.transform(rows[:100]), rtol=1e-3, atol=1e-3)
    for other in (rows[:100], da.from_array(rows[:100])):
        with pytest.raises(TypeError, match=r"must be dask\.delayed objects; block 1 is of the type .*rray\. Use"):
            here.transform([block, other])


def test_masked_values_are_missing(client, rows):
    mask = np.random.RandomState(0).uniform(size=(1000, 25)) < 0.1
    gaps = np.where(mask, np.nan, rows[:1000])
    masked = da.ma.masked_array(da.from_array(rows[:1000], chunks=(300, 25)), da.from_array(mask, chunks=(300, 25)))
    here, there = LinearCauses(3, **PLAIN).fit(gaps), LinearCauses(3, **PLAIN).fit(masked)
    assert there.lower_bound_ == pytest.approx(here.lower_bound_, rel=1e-5)
    np.testing.assert_allclose(there.transform(masked).compute(), here.transform(gaps), rtol=1e-3, atol=1e-3)


def test_workers_read_files(client, rows, tmp_path):
    for number, part in enumerate(np.split(rows, [700])):
        np.save(tmp_path / f"{number}.npy", part)
    source = open_rows(tmp_path / "*.npy")
    model = LinearCauses(3, engine=Dask(client), **PLAIN)
    expected = LinearCauses(3, **PLAIN).fit(rows)
    found = clone(model).fit(source)
    np.testing.assert_allclose(found.components_, expected.components_, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(found.transform(source), expected.transform(rows), atol=2e-3)
    written = found.transform(source, out=tmp_path / "causes.npy")
    np.testing.assert_allclose(written, expected.transform(rows), atol=2e-3)
    (tmp_path / "causes.npy").unlink()
    bad = rows[700:].copy()
    bad[600, 3] = np.inf
    np.save(tmp_path / "1.npy", bad)
    with pytest.raises(ValueError, match=r"infinity: row 600, column 3 of .*1\.npy"):
        clone(model).fit(open_rows(tmp_path / "*.npy"))


def test_memory_maps_and_stored_arrays_are_read_by_workers(client, rows, chunked, tmp_path):
    h5py, zarr = import_or_skip("h5py"), import_or_skip("zarr")
    np.save(tmp_path / "rows.npy", rows)
    zarr.create_array(tmp_path / "rows.zarr", data=rows, chunks=(500, 25))
    with h5py.File(tmp_path / "rows.h5", "w") as file:
        file["rows"] = rows
    expected = LinearCauses(4, engine=Dask(client), **PLAIN).fit(chunked)
    with h5py.File(tmp_path / "rows.h5") as file:
        for X in (np.load(tmp_path / "rows.npy", mmap_mode="r"), zarr.open(tmp_path / "rows.zarr"), file["rows"]):
            assert expected.engine.source(X) is not None
            found = clone(expected).fit(X)
            np.testing.assert_allclose(found.components_, expected.components_, rtol=1e-4, atol=1e-4)


def test_blocks_of_different_widths(client, rows):
    dask = import_or_skip("dask")
    with pytest.raises(ValueError, match="block 0 has 25, block 1 has 24"):
        LinearCauses(3, **PLAIN).fit([dask.delayed(rows[:100]), dask.delayed(rows[:100, :24])])
    with pytest.raises(ValueError, match=r"Blocks of X must have one dtype; got <f4, <f8. Use X.astype"):
        LinearCauses(3, **PLAIN).fit([dask.delayed(rows[:100]), dask.delayed(rows[:100].astype(float))])


def test_weights_of_another_length(client, chunked):
    with pytest.raises(ValueError, match="3 values, but X has 2,000 rows"):
        LinearCauses(3, **PLAIN).fit(chunked, sample_weight=np.ones(3))


def test_no_rows(client):
    with pytest.raises(ValueError, match=r"Found array with 0 sample\(s\)"):
        LinearCauses(3, engine=Dask(client)).fit(da.zeros((0, 3), chunks=(1, 3)))
