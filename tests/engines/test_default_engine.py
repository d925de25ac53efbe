"""The engine that a model without ``engine=`` uses follows from the type of its data."""

import numpy as np

from multicause import engines
from multicause.engines import Dask, Local, default_engine
from multicause.engines.dask_lazy import LazyDaskResults
from tests.engines.conftest import import_or_skip


class Remote:
    """Rows somewhere else."""


class RemoteEngine(Local):
    """A third engine, for rows somewhere else."""

    @classmethod
    def accepts(cls, X):
        return isinstance(X, Remote)


def test_arrays_are_in_memory():
    for X in (np.eye(3), [[1.0, 2.0]], None):
        assert type(default_engine(X)) is Local
        assert default_engine(X).lazy is None


def test_dask_arrays_are_on_a_cluster():
    X = import_or_skip("dask.array").ones((4, 2), chunks=2)
    assert type(default_engine(X)) is Dask
    assert isinstance(default_engine(X).lazy, LazyDaskResults)
    assert default_engine(X).lazy.n_columns(X) == 2


def test_a_third_engine_is_asked(monkeypatch):
    monkeypatch.setattr(engines, "ENGINES", (RemoteEngine, *engines.ENGINES))
    assert type(default_engine(Remote())) is RemoteEngine
    assert type(default_engine(np.eye(3))) is Local
