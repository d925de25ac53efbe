"""Results of a Dask cluster: errors name the block at fault, and what needs rows in memory says so."""

import numpy as np
import pytest

from multicause import IndependentComponents, LinearCauses
from multicause.datasets import open_rows
from multicause.engines import Dask
from tests.engines.conftest import CHUNK, PLAIN, import_or_skip

da = import_or_skip("dask.array")


def test_a_bad_value_is_named_with_its_block(client, rows):
    bad = rows.copy()
    bad[1300, 7] = np.inf
    with pytest.raises(ValueError, match=r"infinity: row 1,300, column 7, which is row 276 of block 2"):
        LinearCauses(3, **PLAIN).fit(da.from_array(bad, chunks=(CHUNK, 25)))


def test_a_bad_value_of_lazy_results_is_named_with_its_block(client, rows):
    dask = import_or_skip("dask")
    bad = rows[:1100].copy()
    bad[1030, 7] = np.inf
    model = LinearCauses(3, **PLAIN).fit(rows[:100])
    with pytest.raises(ValueError, match=r"infinity: row 1,030, column 7, which is row 6 of block 2"):
        model.transform(da.from_array(bad, chunks=(CHUNK, 25))).compute()
    with pytest.raises(ValueError, match=r"infinity: row 30, column 7 of block 1\."):  # rows of block 0 are not counted
        model.transform([dask.delayed(rows[:10]), dask.delayed(bad[1000:])]).compute()
    with pytest.raises(ValueError, match=r"Block 1 of X: X has 24 features, but LinearCauses is expecting 25"):
        model.transform([dask.delayed(rows[:10]), dask.delayed(rows[:10, :24])]).compute()


def test_missing_values_are_named_where_a_model_needs_all(client, rows):
    bad = rows.copy()
    bad[1300, 7] = np.nan
    with pytest.raises(ValueError, match=r"NaN: row 1,300, column 7, which is row 276 of block 2"):
        IndependentComponents(3, max_iter=1).fit(da.from_array(bad, chunks=(CHUNK, 25)))


def _failing(block):
    if block[0, 0] == 731:
        raise OSError("the disk of this worker is broken")
    return block


def test_a_block_that_cannot_be_computed_is_named(client, rows):
    dask = import_or_skip("dask")
    bad = rows.copy()
    bad[3 * CHUNK, 0] = 731
    chunked = da.from_array(bad, chunks=(CHUNK, 25)).map_blocks(_failing, meta=bad[:0])
    with pytest.raises(OSError, match="Block 3 of X cannot be computed: the disk of this worker is broken"):
        LinearCauses(3, **PLAIN).fit(chunked)
    with pytest.raises(ValueError, match=r"Block 1 of X must be a table of numbers; got the shape \(25,\)"):
        LinearCauses(3, **PLAIN).fit([dask.delayed(rows[:100]), dask.delayed(rows[0])])


def test_a_file_that_vanishes_while_workers_read_it(client, rows, tmp_path):
    np.save(tmp_path / "rows.npy", rows)
    source = open_rows(tmp_path / "rows.npy")
    (tmp_path / "rows.npy").unlink()
    with pytest.raises(OSError, match=r"Block 0 of X cannot be computed: Rows 0 to 999 of .*rows\.npy' cannot be read"):
        LinearCauses(3, engine=Dask(client), **PLAIN).fit(source)


def test_lists_of_states_need_rows_in_memory(client, rows, chunked):
    model = LinearCauses(3, **PLAIN).fit(chunked)
    with pytest.raises(TypeError, match=r"X\[:1000\]\.compute\(\)"):
        model.recognize(chunked)
    assert model.recognize(rows[:5]).states.shape[0] == 5
    with pytest.raises(TypeError, match="use its to_zarr or store"):
        model.transform(chunked, out=np.zeros((2000, 3)))
