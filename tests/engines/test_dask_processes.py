"""Learning on a Dask cluster of two processes: the same results whatever happens to workers and to the scheduler."""

import errno
import os
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from time import sleep
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from multicause import IndependentComponents, LinearCauses, MaximalCauses, load
from multicause.callbacks import Checkpoint, IterationCallback
from multicause.engines import Dask, Local
from multicause.engines.allocator import OF_DASK, reuse_freed_memory
from multicause.engines.dask_clusters import IGNORE_INTERRUPTS, check_versions
from multicause.posteriors import Evolved, Preselected
from tests.app.cli.calls import call, result_of
from tests.engines.conftest import PLAIN, import_or_skip

dask = import_or_skip("dask")
distributed = import_or_skip("distributed")
da = import_or_skip("dask.array")


@pytest.fixture(scope="module")
def client():
    # A LocalCluster gives up a killed worker that takes longer than 15 seconds to start again.
    with dask.config.set({"distributed.deploy.lost-worker-timeout": "1h"}):
        cluster = distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
            silence_logs=50,
            preload=[IGNORE_INTERRUPTS],
        )
        with distributed.Client(cluster) as client:
            yield client
        # While it closes, a LocalCluster may look up a worker that a test has killed and that it has forgotten
        # (distributed/deploy/spec.py, _update_worker_status), which has nothing to do with what is tested.
        with suppress(KeyError):
            cluster.close()


@pytest.mark.parametrize(
    "model",
    [
        MaximalCauses(5, noise="poisson", posterior=Preselected(4, 2, keep=0.9), **PLAIN),
        IndependentComponents(max_iter=4, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_a_fit_in_other_processes_equals_one_in_this_process(client, rows, chunked, model):
    here, there = clone(model).fit(rows), clone(model).fit(chunked)
    np.testing.assert_allclose(there.lower_bounds_, here.lower_bounds_, rtol=1e-5)
    np.testing.assert_allclose(there.components_, here.components_, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(there.transform(chunked).compute(), here.transform(rows), rtol=1e-3, atol=2e-3)


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


class KillWorker(IterationCallback):
    """Kills the process of a worker after some iterations."""

    def __init__(self, client, iteration):
        self.client, self.iteration, self.n_killed = client, iteration, 0

    def after(self, iteration):
        if iteration.number == self.iteration:
            self.n_killed += 1
            os.kill(next(iter(self.client.run(os.getpid).values())), signal.SIGKILL)


class AddWorker(IterationCallback):
    """Adds a worker to a cluster after the first iteration, and waits until it can be used."""

    def __init__(self, client):
        self.client = client

    def after(self, iteration):
        if iteration.number == 1:
            self.client.cluster.scale(3)
            self.client.wait_for_workers(3, timeout=60)


class SlowWorker(IterationCallback):
    """Lets one worker sleep after each iteration, while others go on."""

    def __init__(self, client):
        self.client, self.sleeping = client, []

    def after(self, iteration):
        worker = next(iter(self.client.nthreads()))
        self.sleeping.append(self.client.submit(sleep, 0.2, workers=[worker], pure=False))


class Interrupt(IterationCallback):
    """Presses Ctrl-C in the second iteration, which all processes of a terminal get."""

    def __init__(self, client):
        self.client = client

    def after(self, iteration):
        if iteration.number == 2:
            for process in self.client.run(os.getpid).values():
                os.kill(process, signal.SIGINT)
            os.kill(os.getpid(), signal.SIGINT)


@pytest.fixture(scope="module")
def undisturbed(client, chunked):
    return LinearCauses(4, engine=Dask(client), **PLAIN).fit(chunked)


@pytest.mark.parametrize("form", ["dask array", "array"])
def test_a_killed_worker_changes_nothing(client, rows, chunked, undisturbed, form):
    # Rows that were sent from this process survive the worker that holds them, too.
    model = LinearCauses(4, engine=Dask(client), **PLAIN)
    killing = clone(model).set_callbacks(KillWorker(client, 1))
    if form == "array":
        client.wait_for_workers(2, timeout=60)  # an array is divided among the workers that there are
        undisturbed = model.fit(rows)
    survived = killing.fit(chunked if form == "dask array" else rows)
    np.testing.assert_array_equal(survived.components_, undisturbed.components_)


def test_states_that_live_with_rows_survive_a_killed_worker(client, rows):
    # The states of a row come from all iterations before. Those of the lost worker are computed again.
    X = da.from_array(rows[:400], chunks=(100, 25))
    model = LinearCauses(4, posterior=Evolved(6), engine=Dask(client), **PLAIN)
    client.wait_for_workers(2, timeout=60)
    undisturbed, killing = clone(model).fit(X), KillWorker(client, 3)
    survived = clone(model).set_callbacks(killing).fit(X)
    assert killing.n_killed == 1
    for name in ("components_", "activity_", "noise_variance_", "lower_bounds_"):
        np.testing.assert_array_equal(getattr(survived, name), getattr(undisturbed, name))


def test_a_worker_that_joins_or_is_slow_changes_nothing(client, chunked, undisturbed):
    for callback in (SlowWorker(client), AddWorker(client)):
        found = clone(undisturbed).set_callbacks(callback).fit(chunked)
        np.testing.assert_array_equal(found.components_, undisturbed.components_)
    assert len(client.nthreads()) == 3
    client.cluster.scale(2)


def test_an_interrupted_fit_ends_with_the_current_iteration(client, chunked, undisturbed, tmp_path, ctrl_c):
    model = clone(undisturbed).set_callbacks(Interrupt(client), Checkpoint(tmp_path, every=1))
    stopped = model.fit(chunked)
    assert stopped.outcome_ == "stopped"
    assert stopped.n_iter_ == 2
    resumed = clone(undisturbed).fit(chunked, resume=tmp_path)
    np.testing.assert_array_equal(resumed.components_, undisturbed.components_)


# ------------------------------------------------------------------------------- a scheduler that is restarted

SERVICES = "import sys; from distributed.cli.dask_{0} import main; sys.exit(main())"
BOTH = """
import asyncio, sys
from distributed import Scheduler, Worker

async def main():
    async with Scheduler(host="127.0.0.1", port=int(sys.argv[1]), dashboard=False) as scheduler:
        async with Worker(scheduler.address, nthreads=1, dashboard=False):
            await scheduler.finished()

asyncio.run(main())
"""


class Cluster:
    """Scheduler and one worker in a process of their own, or in two if one of them lacks the package."""

    def __init__(self, without_package=None):
        self.without_package = without_package  # "scheduler" or "worker", which cannot import multicause then
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
        self.processes = []

    def start(self):
        port = self.address.rpartition(":")[2]
        if self.without_package is None:
            self._run(BOTH, port)
            return self
        options = {
            "scheduler": ["--host", "127.0.0.1", "--port", port, "--no-dashboard"],
            "worker": [self.address, "--no-nanny", "--nthreads", "1", "--no-dashboard"],
        }
        for name, words in options.items():
            code = SERVICES.format(name)
            if name == self.without_package:
                code = f"import sys; sys.modules['multicause'] = None; {code}"
            self._run(code, *words)
        return self

    def _run(self, code, *words):
        command = [sys.executable, "-c", code, *words]
        self.processes.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))

    def stop(self):
        for process in self.processes:
            process.kill()
            process.wait()
        self.processes.clear()


class StopCluster(IterationCallback):
    def __init__(self, cluster):
        self.cluster = cluster

    def after(self, iteration):
        if iteration.number == 2:
            self.cluster.stop()


def test_a_fit_goes_on_after_the_scheduler_has_been_restarted(rows, tmp_path):
    cluster = Cluster()

    def start():
        # Processes may take long to start. Once they run, a fit that loses its scheduler waits for a moment only.
        cluster.start()
        Dask(cluster.address, timeout=120).client().close()

    try:
        start()
        model = LinearCauses(4, engine=Dask(cluster.address, timeout=1), **PLAIN)
        whole = clone(model).fit(rows)
        broken = clone(model).set_callbacks(Checkpoint(tmp_path, every=1), StopCluster(cluster))
        with pytest.raises(ConnectionError, match=r"scheduler at tcp://127.0.0.1:\d+ was lost.*resume"):
            broken.fit(rows)
        start()
        resumed = clone(model).fit(rows, resume=tmp_path)
        np.testing.assert_array_equal(resumed.components_, whole.components_)
    finally:
        cluster.stop()


def _die(block):
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_block_that_kills_its_workers_is_named(client, rows, monkeypatch):
    monkeypatch.setattr(client.cluster.scheduler, "allowed_failures", 0)
    blocks = [dask.delayed(rows[:100]), dask.delayed(_die)(rows[:100])]
    with pytest.raises(RuntimeError, match=r"1 Dask workers? died while .* block 1 of X.*smaller chunks"):
        LinearCauses(3, engine=Dask(client), **PLAIN).fit(blocks)


def test_workers_with_other_versions_are_named(client, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr("jax.__version__", "0.0.1")
        with pytest.raises(RuntimeError, match=r"Dask worker tcp://.* has jax .* instead of 0\.0\.1"):
            check_versions(client)
    with monkeypatch.context() as patched:
        patched.setattr("multicause.version.__version__", "0.0.1")
        with pytest.raises(RuntimeError, match=r"has multicause .* instead of 0\.0\.1. The scheduler and all"):
            LinearCauses(3, engine=Dask(client), **PLAIN).fit(np.eye(4))


@pytest.mark.parametrize("name", ["scheduler", "worker"])
def test_a_process_without_the_package_is_named(name):
    cluster = Cluster(without_package=name)
    try:
        cluster.start()
        message = rf"Dask {name} .*tcp://.* cannot import multicause.*Install multicause=="
        with pytest.raises(RuntimeError, match=message):
            LinearCauses(3, engine=Dask(cluster.address, timeout=120), **PLAIN).fit(np.eye(4))
    finally:
        cluster.stop()


def test_a_grid_search_runs_on_a_cluster(client, rows):
    joblib = import_or_skip("joblib")
    search = GridSearchCV(LinearCauses(3, **PLAIN), {"n_components": [2, 4]}, cv=2)
    here = clone(search).fit(rows[:400])
    with joblib.parallel_config("dask", client=client):
        there = clone(search).fit(rows[:400])
    np.testing.assert_allclose(there.cv_results_["mean_test_score"], here.cv_results_["mean_test_score"], rtol=1e-6)
    assert there.best_params_ == here.best_params_


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
