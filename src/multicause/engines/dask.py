"""Engine for data on the workers of a Dask cluster. Rows stay there; only parameters and sums are transferred.

Every chunk of the data becomes a part: rows in the memory of one worker, arranged in blocks, which
:class:`multicause.engines.local.LocalData` processes. An iteration sends one task to each part and sums the results in
a tree of fixed order. Parts of a lost worker are recomputed by others, because Dask knows how they were made.
"""

from __future__ import annotations

from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from multicause.engines.array_sources import source_for_workers
from multicause.engines.base import Engine
from multicause.engines.dask_clusters import check_versions, connected, distributed_package, local_cluster
from multicause.engines.dask_data import DaskData, DaskSettings
from multicause.engines.dask_inputs import delayed_blocks, is_distributed
from multicause.engines.dask_lazy import LazyDaskResults
from multicause.engines.dask_loading import load

if TYPE_CHECKING:
    from distributed import Client


class Dask(Engine):
    """Engine that learns on a Dask cluster (``pip install 'multicause[dask]'``).

    Parameters
    ----------
    scheduler : str, distributed.Client or None
        Address of a scheduler such as "tcp://scheduler:8786", or a client. None uses the current client, or starts a
        cluster with one process for each core of this machine.
    memory_budget : str or int, default="2GiB"
        Largest memory of temporary arrays on each worker; see :class:`multicause.engines.Local`.
    timeout : float, default=30
        Seconds to wait for the scheduler, for the first worker, and for new workers if a cluster has lost all of them.
    """

    def __init__(
        self, scheduler: str | Client | None = None, *, memory_budget: str | int = "2GiB", timeout: float = 30
    ) -> None:
        self.scheduler = scheduler
        self.memory_budget = memory_budget
        self.timeout = timeout

    lazy = LazyDaskResults()

    @classmethod
    def accepts(cls, X: Any) -> bool:
        """Return whether X is a dask array or data frame, a delayed block, or a list of delayed blocks."""
        return is_distributed(X)

    def __sklearn_clone__(self) -> Dask:
        return Dask(self.scheduler, memory_budget=self.memory_budget, timeout=self.timeout)

    def __deepcopy__(self, memo: dict[int, Any]) -> Dask:
        return self.__sklearn_clone__()

    def settings_to_save(self) -> dict[str, Any]:
        """Return the settings with the address of a client instead of the client."""
        scheduler = getattr(getattr(self.scheduler, "scheduler", None), "address", self.scheduler)
        return {**self.get_params(deep=False), "scheduler": scheduler}

    def __getstate__(self) -> dict[str, Any]:
        """Drop the client, which exists in one process only; a copy elsewhere uses the current client there."""
        kept = self.scheduler if isinstance(self.scheduler, str) else None
        return {"scheduler": kept, "memory_budget": self.memory_budget, "timeout": self.timeout}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def source(self, X: Any) -> Any:
        """Return X, or a source, if its rows are on the cluster, are computed there, or can be read by workers."""
        if is_distributed(X):
            return delayed_blocks(X) or X
        return source_for_workers(X)

    def client(self) -> Client:
        """Return the client, with at least one worker that can run this library."""
        distributed = distributed_package()
        if not isinstance(self.timeout, Real) or isinstance(self.timeout, bool) or not self.timeout > 0:
            raise ValueError(f"timeout must be a positive number of seconds; got {self.timeout!r}.")
        if isinstance(self.scheduler, distributed.Client):
            client = self.scheduler
            if client.status == "closed":
                raise ConnectionError("The client of engine=Dask(client) is closed. Use one that is connected.")
        elif isinstance(self.scheduler, str):
            client = connected(self.scheduler, self.timeout)
        elif self.scheduler is not None:
            raise TypeError(
                "scheduler must be an address such as 'tcp://scheduler:8786', a distributed.Client or None; got "
                f"{self.scheduler!r}."
            )
        else:
            try:
                client = distributed.default_client()
            except ValueError:
                client = local_cluster()
        try:
            client.wait_for_workers(1, timeout=self.timeout)
        except TimeoutError as error:
            raise self._without_workers(client) from error
        check_versions(client)
        return client

    def _without_workers(self, client: Client) -> TimeoutError:
        return TimeoutError(
            f"The Dask scheduler at {client.scheduler.address} has had no worker for {self.timeout} seconds. Start "
            "workers, or wait longer with engine=Dask(timeout=...)."
        )

    def load(self, X: Any, weights: np.ndarray | None = None, refusal: str | None = None) -> DaskData:
        """Return a handle on a dask array or data frame, delayed blocks, or an array, which is sent to workers.

        Sources of :func:`multicause.datasets.open_rows`, memory maps of whole files, HDF5 and zarr arrays are read by
        workers, which must have access to the same files.
        """
        client = self.client()
        n_threads = client.nthreads()
        if not n_threads:  # workers have been lost since
            raise self._without_workers(client)
        return load(DaskSettings(self.memory_budget, self.timeout), client, n_threads, X, weights, refusal)
