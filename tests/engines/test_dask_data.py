"""Sums, quantiles and fingerprints of rows on a Dask cluster, and how many round trips they take."""

import numpy as np
import pytest

from multicause import LinearCauses
from multicause.annealing import LinearCooling
from multicause.callbacks import IterationCallback
from multicause.engines import Dask, Local
from multicause.engines.blocks import weighted_quantile
from multicause.engines.dask_data import DaskData
from multicause.posteriors import Preselected
from tests.engines.conftest import PLAIN, import_or_skip
from tests.engines.four_blocks import FourBlocks

da = import_or_skip("dask.array")


def _first(rows):
    return rows[:, 0]


def _repeated(block, n_starts):
    return np.repeat(np.asarray(block.rows).T, n_starts, axis=0)


def _with_sums(block, carry, factor, entry):
    return [*carry, (entry, float(factor * (block.weights @ block.rows).sum()))]


@pytest.mark.parametrize("weighted", [False, True])
def test_the_quantile_of_all_parts_is_exact(client, weighted, seed):
    random = np.random.RandomState(seed)
    values = np.round(random.normal(size=3000), 2)[:, None]  # with many ties
    weights = random.randint(0, 4, 3000).astype(float) if weighted else np.ones(3000)
    data = Dask(client).load(da.from_array(values, chunks=(700, 1)), weights).arranged(_first, 8)
    shares = np.array([0.01, 0.31, 0.5, 0.9, 1.0])
    found = data.quantile(data.map(_repeated, len(shares)), shares)
    kept = weights > 0
    expected = [weighted_quantile(values[kept, 0], weights[kept], share) for share in shares]
    np.testing.assert_array_equal(found, expected)


def test_a_fold_visits_blocks_in_the_given_order(client, rows):
    order, draws = [3, 0, 2, 1], ["a", "b", "c", "d"]
    found = []
    for engine, X in [(FourBlocks(), rows), (Dask(client), da.from_array(rows, chunks=(500, 25)))]:
        data = engine.load(X).arranged(_first, 8)
        found.append(data.fold(_with_sums, [], 2.0, aligned=draws, order=order))
        assert data.of_weights(np.sum) == [500.0] * 4
    expected = [(draws[number], 2.0 * rows[500 * number : 500 * number + 500].sum()) for number in order]
    for fold in found:
        assert [entry for entry, _ in fold] == [entry for entry, _ in expected]
        np.testing.assert_allclose([total for _, total in fold], [total for _, total in expected], rtol=1e-5)


def test_a_fingerprint_tells_rows_apart_and_not_how_they_are_cut(client, rows):
    weights = np.random.RandomState(0).uniform(size=len(rows))
    expected = Local().load(rows, weights.astype(np.float32)).fingerprint()
    for size in (300, 512, 2000):
        assert Dask(client).load(da.from_array(rows, chunks=(size, 25)), weights).fingerprint() == expected
    others = {
        "another value": (rows + np.float32(np.arange(50_000).reshape(2000, 25) == 700), weights),
        "rows exchanged": (rows[[1, 0, *range(2, 2000)]], weights),
        "columns exchanged": (rows[:, [1, 0, *range(2, 25)]], weights),
        "weights exchanged": (rows, weights[::-1]),
        "another dtype": (rows.astype(float), weights),
    }
    for X, w in others.values():
        assert Local().load(X, w.astype(X.dtype)).fingerprint() != expected


@pytest.mark.parametrize("keep", [None, 0.9])
def test_an_iteration_is_one_round_trip_and_two_with_a_data_cut(client, chunked, keep, monkeypatch):
    counts, found = {"_gather": 0, "quantile": 0}, []

    def counted(name, method):
        def call(*arguments):
            counts[name] += 1
            return method(*arguments)

        monkeypatch.setattr(DaskData, name, call)

    class Note(IterationCallback):
        def after(self, iteration):
            found.append(list(counts.values()))

    for name in counts:
        counted(name, getattr(DaskData, name))
    settings = {**PLAIN, "annealing": LinearCooling(2.0, n_iter=6), "max_iter": 8}
    model = LinearCauses(4, posterior=Preselected(3, 2, keep=keep), **settings)
    model.set_callbacks(Note()).fit(chunked)
    n_trips, n_cuts = np.diff(found, axis=0).T
    # The data cut begins at two thirds of the schedule.
    assert set(n_cuts.tolist()) == ({0} if keep is None else {0, 1})
    np.testing.assert_array_equal(n_trips, 1 + n_cuts)
