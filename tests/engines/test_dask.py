"""Learning on a Dask cluster of two processes: the same results as in this process, whatever happens to workers."""

import errno
import os
import signal
import warnings
from functools import partial
from types import SimpleNamespace

import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.base import clone

from multicause import (
    FactorAnalysis,
    HelmholtzMachine,
    IndependentComponents,
    KMeans,
    LinearCauses,
    MaximalCauses,
    MixtureOfPoissons,
    SparseCoding,
    SpikeAndSlabCauses,
    load,
)
from multicause.app.cli.engines import EngineChoice
from multicause.callbacks import Checkpoint, IterationCallback
from multicause.datasets import make_bars, open_rows
from multicause.engines import Dask, Local
from multicause.engines.dask_clusters import dashboard_link
from multicause.engines.local import LocalData, weighted_quantile
from multicause.engines.worker_memory import OF_DASK, reuse_freed_memory
from multicause.model import Block
from multicause.posteriors import Beam, Preselected
from tests.app.cli.test_command_line import call, result_of

distributed = pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")

PLAIN = {"annealing": None, "repair": False, "max_iter": 4, "tol": 0, "random_state": 0}
CHUNK = 512


@pytest.fixture(scope="module")
def client():
    with (
        warnings.catch_warnings(),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=None, silence_logs=50
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def rows():
    return make_bars(2000, noise="poisson", random_state=0).data.astype(np.float32)


@pytest.fixture(scope="module")
def chunked(rows):
    return da.from_array(rows, chunks=(CHUNK, 25))


@pytest.mark.parametrize(
    "model",
    [
        LinearCauses(5, **PLAIN),
        MaximalCauses(5, noise="poisson", posterior=Preselected(4, 2, keep=0.9), **PLAIN),
        FactorAnalysis(3, max_iter=4, random_state=0),
        KMeans(3, max_iter=3, random_state=0),
        MixtureOfPoissons(3, max_iter=3, random_state=0),
        IndependentComponents(max_iter=4, random_state=0),
        SpikeAndSlabCauses(3, posterior=Beam(2, 2), annealing=None, max_iter=4, tol=0, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
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
    lazy = there.transform(chunked)
    assert lazy.shape == (2000, len(here.components_))
    assert lazy.chunks[0] == chunked.chunks[0]
    np.testing.assert_allclose(lazy.compute(), here.transform(rows), rtol=1e-3, atol=2e-3)
    assert there.score(chunked) == pytest.approx(here.score(rows), rel=1e-5)


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
    for form in forms.values():
        found = clone(model).fit(form)
        np.testing.assert_allclose(found.components_, expected.components_, rtol=1e-3, atol=1e-3)


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
        clone(model).fit(source)


def test_workers_reuse_freed_memory(client, monkeypatch):
    # Dask tells them not to, which makes an iteration take twice as long.
    assert set(client.run(os.environ.get, OF_DASK[0]).values()) == {OF_DASK[1]}
    calls = []
    monkeypatch.setattr("ctypes.CDLL", lambda name: SimpleNamespace(mallopt=lambda *setting: calls.append(setting)))
    for value, expected in [("65536", [(-1, 2**28), (-3, 2**25)]), ("1000", []), ("", [])]:
        monkeypatch.setenv(OF_DASK[0], value)
        reuse_freed_memory.__wrapped__()
        assert calls == expected
        calls.clear()


def test_a_search_on_a_cluster_finds_all_bars(client, chunked):
    model = MaximalCauses(10, noise="poisson", random_state=0, max_iter=150).fit(chunked)
    assert ((model.components_ > 5).sum(axis=1) == 5).all()


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


class KillWorker(IterationCallback):
    """Kills the process of a worker after some iterations."""

    def __init__(self, client, iteration):
        self.client, self.iteration = client, iteration

    def after(self, iteration):
        if iteration.number == self.iteration:
            os.kill(next(iter(self.client.run(os.getpid).values())), signal.SIGKILL)


def test_a_killed_worker_changes_nothing(client, chunked):
    model = LinearCauses(4, engine=Dask(client), **PLAIN)
    undisturbed = clone(model).fit(chunked)
    survived = clone(model).set_callbacks(KillWorker(client, 1)).fit(chunked)
    np.testing.assert_array_equal(survived.components_, undisturbed.components_)


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


def test_blocks_of_different_widths(client, rows):
    dask = pytest.importorskip("dask")
    with pytest.raises(ValueError, match="block 0 has 25, block 1 has 24"):
        LinearCauses(3, **PLAIN).fit([dask.delayed(rows[:100]), dask.delayed(rows[:100, :24])])


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


@pytest.mark.parametrize(
    "model",
    [SparseCoding(3, max_iter=2, tol=0, random_state=0), HelmholtzMachine(3, max_iter=2, tol=0, random_state=0)],
    ids=lambda model: type(model).__name__,
)
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


def test_a_cluster_without_workers():
    with (
        distributed.LocalCluster(n_workers=0, host="127.0.0.1", dashboard_address=None, silence_logs=50) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
        pytest.raises(TimeoutError, match="has had no worker for 0.5 seconds"),
    ):
        LinearCauses(3, engine=Dask(client, timeout=0.5)).fit(np.eye(5))


def test_an_engine_can_be_cloned_and_saved(client, chunked, tmp_path):
    model = LinearCauses(3, engine=Dask(client), **PLAIN)
    assert clone(model).engine.scheduler is client
    model.fit(chunked).save(tmp_path / "model.mca")
    assert load(tmp_path / "model.mca").engine.scheduler == client.scheduler.address


# ------------------------------------------------------------------------------------------- the command line

OPTIONS = ["--model", "mixture", "--components", 3, "--seed", 1, "--iterations", 6, "--set", "tol=0", "--no-report"]


def test_the_command_line_learns_on_a_cluster_and_resumes_there(client, rows, tmp_path, monkeypatch):
    np.save(tmp_path / "rows.npy", rows[:300])
    address = client.scheduler.address
    result_of("fit", tmp_path / "rows.npy", *OPTIONS, "--out", tmp_path / "here")
    monkeypatch.setattr("multicause.app.cli.fitting.dashboard_link", lambda client: "http://scheduler:8787/status")
    words = ["fit", tmp_path / "rows.npy", *OPTIONS, "--engine", "dask", "--scheduler", address, "--checkpoint", 0]

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device", "x")

    with monkeypatch.context() as patched:
        patched.setattr("multicause.app.cli.fitting.write_run", full)
        run = call(*words, "--out", tmp_path / "there")
    assert run.exit_code == 2
    said = " ".join(run.stdout.split())
    assert f"Dask cluster {address}: 2 workers, 2 threads." in said
    assert "Dashboard: http://scheduler:8787/status" in said
    found = result_of("fit", "--resume", tmp_path / "there")
    assert found["engine"]["engine"] == "dask"
    models = [load(tmp_path / name / "model.multicause") for name in ("here", "there")]
    np.testing.assert_allclose(models[0].components_, models[1].components_, rtol=1e-6)
    # A model in a file does not need the cluster.
    assert isinstance(models[1].engine, Local)


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
