"""Clusters and rows of tests of engines."""

import signal

import numpy as np
import pytest

from multicause.datasets import make_bars

CHUNK = 512
#: EM as it is, without a search: a few iterations from a start that follows from the seed.
PLAIN = {"annealing": None, "repair": False, "max_iter": 4, "tol": 0, "random_state": 0}


def import_or_skip(name, package=None):
    """Return a module, or skip what needs it if its package is not installed."""
    return pytest.importorskip(name, reason=f"{package or name.partition('.')[0]} is not installed")


def thread_cluster(n_workers):
    """Return a cluster whose workers are threads of this process, reached by TCP.

    Everything is serialized as between machines, but programs are compiled once.
    """
    return import_or_skip("distributed").LocalCluster(
        n_workers=n_workers,
        threads_per_worker=1,
        processes=False,
        protocol="tcp",
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
        silence_logs=50,
    )


@pytest.fixture(scope="module")
def client():
    distributed = import_or_skip("distributed")
    with thread_cluster(2) as cluster, distributed.Client(cluster) as client:
        yield client


@pytest.fixture(scope="module")
def rows():
    return make_bars(2000, noise="poisson", random_state=0).data.astype(np.float32)


@pytest.fixture(scope="module")
def chunked(rows):
    return import_or_skip("dask.array").from_array(rows, chunks=(CHUNK, 25))


@pytest.fixture
def ctrl_c():
    """Let Ctrl-C interrupt this process, also in the background of a shell, where processes ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
