"""Learning on a Dask cluster: the same results as without one, and errors that name blocks and workers.

The workers are threads of this process that are reached by TCP, so that everything is serialized as between machines,
but programs are compiled once. What needs processes of their own is in test_dask_processes.py.
"""

import sys
import warnings
from contextlib import nullcontext
from functools import partial
from time import sleep

import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.base import clone

import multicause
from multicause import (
    EnergyComponents,
    FactorAnalysis,
    HelmholtzMachine,
    IndependentComponents,
    KMeans,
    LinearCauses,
    MaximalCauses,
    MixtureOfGaussians,
    MixtureOfPoissons,
    NoisyOrCauses,
    NonnegativeCauses,
    OwnCauses,
    PrincipalComponents,
    RestrictedMaximalCauses,
    SoftmaxNetwork,
    SparseCoding,
    SpikeAndSlabCauses,
    TruncatedAutoencoder,
    load,
)
from multicause.annealing import LinearCooling
from multicause.app.cli.engines import EngineChoice
from multicause.callbacks import Checkpoint, IterationCallback
from multicause.datasets import make_bars, open_rows
from multicause.engines import Dask, Local
from multicause.engines.blocks import weighted_quantile
from multicause.engines.dask_clusters import dashboard_link
from multicause.engines.dask_data import DaskData
from multicause.engines.local import LocalData
from multicause.metrics import recovered_causes
from multicause.model import Block
from multicause.posteriors import Beam, Evolved, Preselected
from tests.app.cli.calls import call, result_of
from tests.engines.conftest import CHUNK, thread_cluster

distributed = pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")

PLAIN = {"annealing": None, "repair": False, "max_iter": 4, "tol": 0, "random_state": 0}


def log_joint(parameters, states, rows):
    errors = rows[:, None] - states @ parameters["components"]
    return -states.sum(axis=-1) - 0.5 * jnp.sum(errors**2, axis=-1)


def initialize(X, n_components, random):
    return {"components": X.std() * random.normal(1, 0.3, (n_components, X.shape[1]))}


SUMS = [
    LinearCauses(5, **PLAIN),
    MaximalCauses(5, noise="poisson", posterior=Preselected(4, 2, keep=0.9), **PLAIN),
    FactorAnalysis(3, max_iter=4, random_state=0),
    KMeans(3, max_iter=3, random_state=0),
    MixtureOfPoissons(3, max_iter=3, random_state=0),
    IndependentComponents(max_iter=4, random_state=0),
    SpikeAndSlabCauses(3, posterior=Beam(2, 2), annealing=None, max_iter=4, tol=0, random_state=0),
]
MORE_SUMS = [
    NonnegativeCauses(3, **PLAIN),
    NoisyOrCauses(3, annealing=None, repair=False, max_iter=3, tol=0, random_state=0),
    RestrictedMaximalCauses(3, annealing=None, max_iter=3, tol=0, random_state=0),
    MixtureOfGaussians(2, max_iter=2, random_state=0),
    PrincipalComponents(2),
]
SMALL_BATCHES = [
    SparseCoding(3, max_iter=2, tol=0, random_state=0),
    HelmholtzMachine(3, max_iter=2, tol=0, random_state=0),
]
SINGLE_ROWS = [
    SoftmaxNetwork(3, max_iter=1, n_init=1, random_state=0),
    EnergyComponents(3, max_iter=2, batch_size=5, random_state=0),
    OwnCauses(log_joint, initialize, 3, posterior=Evolved(6), max_iter=2, random_state=0),
    TruncatedAutoencoder(3, layers=(4,), posterior=Evolved(6), max_iter=2, random_state=0),
]


def name_of(model):
    return type(model).__name__


def test_every_estimator_is_compared():
    public = {name for name in multicause.__all__ if isinstance(getattr(multicause, name), type)}
    assert {name_of(model) for model in [*SUMS, *MORE_SUMS, *SMALL_BATCHES, *SINGLE_ROWS]} == public


@pytest.mark.parametrize("model", SUMS, ids=name_of)
def test_a_fit_on_a_cluster_equals_one_in_this_process(client, rows, chunked, model):
    weights = np.random.RandomState(0).uniform(0.5, 2, len(rows))
    if isinstance(model, KMeans | MixtureOfPoissons):
        model = clone(model).set_params(init=rows[:3] + 0.5)
    here, there = (
        clone(model).fit(rows, sample_weight=weights),
        clone(model).fit(chunked, sample_weight=weights),  # the engine follows from the data
    )
    np.testing.assert_allclose(there.lower_bounds_, here.lower_bounds_, rtol=1e-5)
    np.testing.assert_allclose(there.components_, here.components_, rtol=1e-3, atol=1e-3)
    blocks = chunked.to_delayed().ravel().tolist()
    np.testing.assert_allclose(there.transform(blocks).compute(), here.transform(rows), rtol=1e-3, atol=2e-3)
    lazy = there.transform(chunked)
    assert lazy.shape == (2000, len(here.components_))
    assert lazy.chunks[0] == chunked.chunks[0]
    np.testing.assert_allclose(lazy.compute(), here.transform(rows), rtol=1e-3, atol=2e-3)
    assert there.score(chunked) == pytest.approx(here.score(rows), rel=1e-5)


@pytest.mark.parametrize("model", MORE_SUMS, ids=name_of)
def test_other_models_of_sums_equal_those_of_this_process(client, model):
    rows = make_bars(2048, noise="poisson", random_state=0).data.astype(np.float32)
    if isinstance(model, NoisyOrCauses):
        rows = (rows > 4).astype(np.float32)
    if isinstance(model, MixtureOfGaussians):
        model = clone(model).set_params(init=rows[:2] + 0.5)
    engines = [(FourBlocks(), rows), (Dask(client), da.from_array(rows, chunks=(512, 25)))]
    here, there = (clone(model).set_params(engine=engine).fit(X) for engine, X in engines)
    np.testing.assert_allclose(there.lower_bound_, here.lower_bound_, rtol=1e-5)
    np.testing.assert_allclose(np.abs(there.components_), np.abs(here.components_), rtol=1e-3, atol=1e-3)


def test_frames_delayed_blocks_and_arrays(client, rows):
    dd, dask = pytest.importorskip("dask.dataframe"), pytest.importorskip("dask")
    pandas = pytest.importorskip("pandas")
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
    dd, pandas = pytest.importorskip("dask.dataframe"), pytest.importorskip("pandas")
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


def test_a_search_on_a_cluster_finds_all_bars(client):
    # Causes are found in a sample in this process, and learned further from all rows.
    bars = make_bars(8000, size=3, noise="poisson", random_state=0)
    many = da.from_array(bars.data.astype(np.float32), chunks=(4000, 9))
    model = MaximalCauses(6, noise="poisson", random_state=0, max_iter=150).fit(many)
    assert recovered_causes(model, bars.causes).all_found


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


def _first(rows):
    return rows[:, 0]


def _with_sums(block, carry, factor, entry):
    return [*carry, (entry, float(factor * block.rows.sum()))]


@pytest.mark.parametrize("model", SINGLE_ROWS, ids=name_of)
def test_models_of_single_rows_learn_from_a_sample_in_this_process(client, rows, model):
    rows = rows[:200]
    chunked = da.from_array(rows, chunks=(50, 25))
    here, there = clone(model).fit(rows), clone(model).fit(chunked)  # all rows fit into the budget
    np.testing.assert_allclose(there.transform(chunked).compute(), here.transform(rows), rtol=1e-3, atol=1e-3)
    if hasattr(here, "components_"):  # own models have any parameters
        np.testing.assert_allclose(there.components_, here.components_, rtol=1e-4, atol=1e-5)
    small = clone(model).set_params(engine=Dask(client, memory_budget=10_000))
    with pytest.warns(UserWarning, match=r"holds a random sample of 100 rows, of 200.*Dask\(memory_budget="):
        assert small.fit(chunked).transform(rows[:2]).shape == (2, 3)


def test_a_fold_visits_blocks_in_the_given_order(client, rows):
    order, draws = [3, 0, 2, 1], ["a", "b", "c", "d"]
    found = []
    for engine, X in [(FourBlocks(), rows), (Dask(client), da.from_array(rows, chunks=(500, 25)))]:
        data = engine.load(X).arranged(_first, 8, exact=True)
        found.append(data.fold(_with_sums, [], 2.0, aligned=draws, order=order))
        assert data.of_weights(np.sum) == [500.0] * 4
    expected = [(draws[number], 2.0 * rows[500 * number : 500 * number + 500].sum()) for number in order]
    for fold in found:
        assert [entry for entry, _ in fold] == [entry for entry, _ in expected]
        np.testing.assert_allclose([total for _, total in fold], [total for _, total in expected], rtol=1e-5)


def _repeated(block, n_starts):
    return np.repeat(np.asarray(block.rows).T, n_starts, axis=0)


class FourBlocks(Local):
    """Local engine that divides the rows into four blocks."""

    def load(self, X, weights=None):
        data = super().load(X, weights)
        data.arranged = partial(_arranged_in_four, self, data)
        data.transformed = lambda function: self.load(function(data._X), data._weights)
        return data


def _arranged_in_four(engine, data, summarize, *sizes, exact=False):
    blocks = [
        Block(jnp.asarray(X), jnp.asarray(w), summarize(jnp.asarray(X)))
        for X, w in zip(np.split(data._X, 4), np.split(data._weights, 4), strict=True)
    ]
    return LocalData(engine, data._X, data._weights, blocks)


class Progress(IterationCallback):
    def __init__(self):
        self.seen = []

    def after(self, iteration):
        self.seen.append(iteration.number)


def test_callbacks_follow_a_fit_on_a_cluster(client, chunked):
    progress = Progress()
    LinearCauses(4, **PLAIN).set_callbacks(progress).fit(chunked)
    assert progress.seen == [1, 2, 3, 4]


def test_a_fit_on_a_cluster_is_resumed(client, chunked, tmp_path):
    model = LinearCauses(4, **PLAIN).set_callbacks(Checkpoint(tmp_path, every=1))
    whole = model.fit(chunked)
    for path in sorted(tmp_path.glob("*.checkpoint"))[1:]:
        path.unlink()
    again = clone(model).fit(chunked, resume=tmp_path)
    np.testing.assert_array_equal(again.components_, whole.components_)


def test_a_fit_of_this_process_is_resumed_on_a_cluster_and_the_other_way_round(client, rows, tmp_path):
    for number, engines in enumerate([(Local(), Dask(client)), (Dask(client), Local())]):
        folder = tmp_path / str(number)
        folder.mkdir()
        model = LinearCauses(4, engine=engines[0], **PLAIN).set_callbacks(Checkpoint(folder, every=1))
        whole = model.fit(rows)
        for path in sorted(folder.glob("*.checkpoint"))[1:]:
            path.unlink()
        again = clone(model).set_params(engine=engines[1]).fit(rows, resume=folder)
        np.testing.assert_allclose(again.components_, whole.components_, rtol=1e-4, atol=1e-4)
        with pytest.raises(ValueError, match="data"):
            clone(model).set_params(engine=engines[1]).fit(rows[::-1], resume=folder)


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


def test_a_bad_value_is_named_with_its_block(client, rows):
    bad = rows.copy()
    bad[1300, 7] = np.inf
    with pytest.raises(ValueError, match=r"infinity: row 1,300, column 7, which is row 276 of block 2"):
        LinearCauses(3, **PLAIN).fit(da.from_array(bad, chunks=(CHUNK, 25)))


def test_a_bad_value_of_lazy_results_is_named_with_its_block(client, rows):
    dask = pytest.importorskip("dask")
    bad = rows[:1100].copy()
    bad[1030, 7] = np.inf
    model = LinearCauses(3, **PLAIN).fit(rows[:100])
    with pytest.raises(ValueError, match=r"infinity: row 1,030, column 7, which is row 6 of block 2"):
        model.transform(da.from_array(bad, chunks=(CHUNK, 25))).compute()
    with pytest.raises(ValueError, match=r"infinity: row 30, column 7 of block 1\."):  # rows of block 0 are not counted
        model.transform([dask.delayed(rows[:10]), dask.delayed(bad[1000:])]).compute()
    with pytest.raises(ValueError, match=r"Block 1 of X: X has 24 features, but LinearCauses is expecting 25"):
        model.transform([dask.delayed(rows[:10]), dask.delayed(rows[:10, :24])]).compute()


def test_a_single_delayed_block_and_lists_of_other_things(client, rows):
    dask = pytest.importorskip("dask")
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


def test_blocks_of_different_widths(client, rows):
    dask = pytest.importorskip("dask")
    with pytest.raises(ValueError, match="block 0 has 25, block 1 has 24"):
        LinearCauses(3, **PLAIN).fit([dask.delayed(rows[:100]), dask.delayed(rows[:100, :24])])
    with pytest.raises(ValueError, match=r"Blocks of X must have one dtype; got <f4, <f8. Use X.astype"):
        LinearCauses(3, **PLAIN).fit([dask.delayed(rows[:100]), dask.delayed(rows[:100].astype(float))])


def _failing(block):
    if block[0, 0] == 731:
        raise OSError("the disk of this worker is broken")
    return block


def test_a_block_that_cannot_be_computed_is_named(client, rows):
    dask = pytest.importorskip("dask")
    bad = rows.copy()
    bad[3 * CHUNK, 0] = 731
    chunked = da.from_array(bad, chunks=(CHUNK, 25)).map_blocks(_failing, meta=bad[:0])
    with pytest.raises(OSError, match="Block 3 of X cannot be computed: the disk of this worker is broken"):
        LinearCauses(3, **PLAIN).fit(chunked)
    with pytest.raises(ValueError, match=r"Block 1 of X must be a table of numbers; got the shape \(25,\)"):
        LinearCauses(3, **PLAIN).fit([dask.delayed(rows[:100]), dask.delayed(rows[0])])


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


def test_a_file_that_vanishes_while_workers_read_it(client, rows, tmp_path):
    np.save(tmp_path / "rows.npy", rows)
    source = open_rows(tmp_path / "rows.npy")
    (tmp_path / "rows.npy").unlink()
    with pytest.raises(OSError, match=r"Block 0 of X cannot be computed: Rows 0 to 999 of .*rows\.npy' cannot be read"):
        LinearCauses(3, engine=Dask(client), **PLAIN).fit(source)


def test_missing_values_are_named_where_a_model_needs_all(client, rows):
    bad = rows.copy()
    bad[1300, 7] = np.nan
    with pytest.raises(ValueError, match=r"NaN: row 1,300, column 7, which is row 276 of block 2"):
        IndependentComponents(3, max_iter=1).fit(da.from_array(bad, chunks=(CHUNK, 25)))


def test_memory_maps_and_stored_arrays_are_read_by_workers(client, rows, chunked, tmp_path):
    h5py, zarr = pytest.importorskip("h5py"), pytest.importorskip("zarr")
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


def test_weights_of_another_length(client, chunked):
    with pytest.raises(ValueError, match="3 values, but X has 2,000 rows"):
        LinearCauses(3, **PLAIN).fit(chunked, sample_weight=np.ones(3))


def test_lists_of_states_need_rows_in_memory(client, rows, chunked):
    model = LinearCauses(3, **PLAIN).fit(chunked)
    with pytest.raises(TypeError, match=r"X\[:1000\]\.compute\(\)"):
        model.recognize(chunked)
    assert model.recognize(rows[:5]).states.shape[0] == 5
    with pytest.raises(TypeError, match="use its to_zarr or store"):
        model.transform(chunked, out=np.zeros((2000, 3)))


@pytest.mark.parametrize("model", SMALL_BATCHES, ids=name_of)
def test_models_of_small_batches_learn_where_the_rows_are(client, rows, model):
    # Four chunks of equal size here are four blocks there.
    binary = (rows > 4).astype(np.float32)
    weights = np.random.RandomState(0).uniform(0.5, 2, len(rows))
    here, there = (
        clone(model).set_params(engine=engine).fit(X, sample_weight=weights)
        for engine, X in [
            (FourBlocks(), binary),
            (None, da.from_array(binary, chunks=(500, 25))),
        ]
    )
    np.testing.assert_allclose(there.lower_bounds_, here.lower_bounds_, rtol=1e-5)
    np.testing.assert_allclose(there.components_, here.components_, rtol=1e-3, atol=1e-4)


def test_a_scheduler_that_does_not_answer():
    with pytest.raises(ConnectionError, match="No Dask scheduler answers at 'tcp://127.0.0.1:9'"):
        LinearCauses(3, engine=Dask("tcp://127.0.0.1:9", timeout=0.5)).fit(np.eye(5))


@pytest.mark.parametrize(
    ("engine", "error", "message"),
    [
        (Dask(8786), TypeError, r"scheduler must be an address such as 'tcp://scheduler:8786', .*; got 8786\."),
        (Dask(timeout="30s"), ValueError, "timeout must be a positive number of seconds; got '30s'"),
        (Dask(timeout=0), ValueError, "timeout must be a positive number of seconds; got 0"),
    ],
)
def test_settings_that_are_refused(engine, error, message):
    with pytest.raises(error, match=message):
        LinearCauses(3, engine=engine).fit(np.eye(5))


def test_the_extra_is_not_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ImportError, match=r"needs the package distributed: pip install 'multicause\[dask\]'"):
        LinearCauses(3, engine=Dask("tcp://127.0.0.1:9")).fit(np.eye(5))


def test_no_rows(client):
    with pytest.raises(ValueError, match=r"Found array with 0 sample\(s\)"):
        LinearCauses(3, engine=Dask(client)).fit(da.zeros((0, 3), chunks=(1, 3)))


def test_a_cluster_without_workers():
    with (
        thread_cluster(0) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
        pytest.raises(TimeoutError, match="has had no worker for 0.5 seconds"),
    ):
        LinearCauses(3, engine=Dask(client, timeout=0.5)).fit(np.eye(5))


def test_a_cluster_that_loses_all_workers_ends_the_fit(rows, tmp_path):
    class RemoveWorkers(IterationCallback):
        def after(self, iteration):
            if iteration.number == 2:
                cluster.scale(0)
                while client.nthreads():
                    sleep(0.01)

    with thread_cluster(1) as cluster, distributed.Client(cluster, set_as_default=False) as client:
        model = LinearCauses(4, engine=Dask(client, timeout=0.5), **PLAIN)
        broken = clone(model).set_callbacks(Checkpoint(tmp_path, every=1), RemoveWorkers())
        with pytest.raises(TimeoutError, match=r"has lost all its workers and has had none for 0.5 seconds.*resume="):
            broken.fit(rows)
        cluster.scale(1)
        client.wait_for_workers(1, timeout=60)
        resumed = clone(model).set_params(engine__timeout=60).fit(rows, resume=tmp_path)
        whole = clone(model).set_params(engine__timeout=60).fit(rows)
    np.testing.assert_array_equal(resumed.components_, whole.components_)


def test_a_client_that_has_been_closed(rows):
    class CloseClient(IterationCallback):
        def after(self, iteration):
            client.close()

    with thread_cluster(1) as cluster, distributed.Client(cluster, set_as_default=False) as client:
        model = LinearCauses(4, engine=Dask(client), **PLAIN).set_callbacks(CloseClient())
        with pytest.raises(ConnectionError, match=r"scheduler at tcp://127.0.0.1:\d+ was lost.*the client is closed"):
            model.fit(rows)
        with pytest.raises(ConnectionError, match=r"client of engine=Dask\(client\) is closed"):
            model.fit(rows)


def test_an_engine_can_be_cloned_and_saved(client, chunked, tmp_path):
    model = LinearCauses(3, engine=Dask(client), **PLAIN)
    assert clone(model).engine.scheduler is client
    model.fit(chunked).save(tmp_path / "model.mca")
    assert load(tmp_path / "model.mca").engine.scheduler == client.scheduler.address


# ------------------------------------------------------------------------------------------- the command line

OPTIONS = ["--model", "mixture", "--components", 3, "--seed", 1, "--iterations", 6, "--set", "tol=0", "--no-report"]


def test_a_run_on_a_cluster_may_go_on_in_this_process(client, rows, tmp_path, monkeypatch):
    np.save(tmp_path / "rows.npy", rows[:300])
    words = ["fit", tmp_path / "rows.npy", *OPTIONS, "--scheduler", client.scheduler.address, "--checkpoint", 0]

    def interrupted(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("multicause.app.cli.fitting.write_run", interrupted)
        assert call(*words, "--out", tmp_path / "run").exit_code == 130
    assert result_of("fit", "--resume", tmp_path / "run", "--engine", "local")["engine"]["engine"] == "local"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--engine magic", "Unknown engine 'magic'. Known: local, dask."),
        (
            "--engine local --scheduler tcp://x:1",
            "but the engine is local. Use --engine dask, or leave out --scheduler",
        ),
        ("--engine dask --n-jobs 2", "--n-jobs requires --engine local"),
        ("--scheduler tcp://x:1 --devices all", "--devices requires --engine local"),
        ("--devices some", "--devices must be 'all' or a positive number of devices; got 'some'"),
        ("--n-jobs 0", "n_jobs must be a positive number of threads"),
        ("--scheduler tcp://127.0.0.1:9", "No Dask scheduler answers at 'tcp://127.0.0.1:9'"),
    ],
)
def test_engines_that_the_command_line_refuses(words, message, tmp_path, monkeypatch):
    monkeypatch.setattr(Dask.__init__, "__kwdefaults__", {"memory_budget": "2GiB", "timeout": 0.5})
    np.save(tmp_path / "rows.npy", np.eye(4))
    run = call("fit", tmp_path / "rows.npy", "--model", "kmeans", *words.split(), "--out", tmp_path / "run")
    assert run.exit_code == 2
    assert message in run.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["rows.npy"]


@pytest.mark.parametrize(("words", "message"), [("--set tol=x", "tol"), ("--noise loud", "Unknown noise 'loud'")])
@pytest.mark.parametrize("model", ["linear", "auto"])
def test_settings_are_checked_before_a_cluster_is_started(words, message, model, tmp_path, monkeypatch):
    monkeypatch.setattr(Dask, "client", lambda engine: pytest.fail("A cluster was started."))
    np.save(tmp_path / "rows.npy", np.eye(4) - 0.5)
    options = ["--model", model, *words.split(), "--engine", "dask", "--components", 2, "--out", tmp_path / "run"]
    run = call("fit", tmp_path / "rows.npy", *options)
    assert run.exit_code == 2
    assert message in run.stderr


def test_a_dashboard_has_a_link(client):
    assert dashboard_link(client) == client.dashboard_link

    class WithoutDashboard:
        @property
        def dashboard_link(self):
            raise KeyError("dashboard")  # as clients of a scheduler that was started with --no-dashboard do

    assert dashboard_link(WithoutDashboard()) is None


def test_devices_of_the_command_line_are_a_setting_of_the_engine(monkeypatch):
    made = []
    monkeypatch.setattr("multicause.engines.Local", lambda **settings: made.append(settings))
    EngineChoice(devices="all").make("1GiB")
    EngineChoice(devices="4", n_jobs=2).make("1GiB")
    assert [settings["devices"] for settings in made] == ["all", 4]


def test_the_time_limit_of_the_command_line_is_a_setting_of_the_engine():
    assert EngineChoice("dask", timeout=2.5).make("1GiB").timeout == 2.5
    assert EngineChoice("dask").make("1GiB").timeout == Dask().timeout
    with pytest.raises(ValueError, match="--timeout is a time limit of a Dask cluster. Use --engine dask"):
        EngineChoice(timeout=1.0).check()


@pytest.mark.parametrize("address", ["nonsense", "http://127.0.0.1:9", "tcp://127.0.0.1"])
def test_what_is_no_address(address, rows):
    with pytest.raises(ValueError, match=r"is not an address of a Dask scheduler. Expected one such as 'tcp://"):
        LinearCauses(3, engine=Dask(address, timeout=2), **PLAIN).fit(rows[:100])
