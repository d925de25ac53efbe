"""Dask clusters that do not answer, have no workers, or are lost during a fit."""

import sys
from time import sleep

import numpy as np
import pytest
from sklearn.base import clone

from multicause import LinearCauses
from multicause.callbacks import Checkpoint, IterationCallback
from multicause.engines import Dask
from multicause.engines.dask_clusters import dashboard_link
from tests.engines.conftest import PLAIN, import_or_skip, thread_cluster

distributed = import_or_skip("distributed")


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


@pytest.mark.parametrize("address", ["nonsense", "http://127.0.0.1:9", "tcp://127.0.0.1"])
def test_what_is_no_address(address, rows):
    with pytest.raises(ValueError, match=r"is not an address of a Dask scheduler. Expected one such as 'tcp://"):
        LinearCauses(3, engine=Dask(address, timeout=2), **PLAIN).fit(rows[:100])


def test_the_extra_is_not_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ImportError, match=r"needs the package distributed: pip install 'multicause\[dask\]'"):
        LinearCauses(3, engine=Dask("tcp://127.0.0.1:9")).fit(np.eye(5))


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


def test_a_dashboard_has_a_link(client):
    assert dashboard_link(client) == client.dashboard_link

    class WithoutDashboard:
        @property
        def dashboard_link(self):
            raise KeyError("dashboard")  # as clients of a scheduler that was started with --no-dashboard do

    assert dashboard_link(WithoutDashboard()) is None
