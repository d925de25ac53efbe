"""Dask clusters: connecting clients, starting local workers, and checking the versions that workers have installed."""

from __future__ import annotations

import atexit
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import jax

from multicause import version
from multicause.runtime.parallel import available_cores

if TYPE_CHECKING:
    from distributed import Client


def distributed_package() -> Any:
    """Import the package ``distributed``, or raise ImportError with instructions to install it."""
    try:
        import distributed
    except ImportError as error:
        raise ImportError("engine=Dask() needs the package distributed: pip install 'multicause[dask]'.") from error
    return distributed


# Clients of schedulers, by their addresses.
_CLIENTS: dict[str, Any] = {}
# Ctrl-C in a terminal reaches all processes that were started from it. Workers must continue, so that a fit can end
# with the current iteration.
IGNORE_INTERRUPTS = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)"


def connected(address: str, timeout: float) -> Client:
    """Return a client connected to the scheduler at an address; a new one if that was lost or has been restarted."""
    known = _CLIENTS.get(address)
    if known is not None and known.status == "running":
        return known
    try:
        client = distributed_package().Client(address, timeout=timeout, set_as_default=False)
        _CLIENTS[address] = client
        return client
    except (KeyError, ValueError) as error:
        raise ValueError(
            f"{address!r} is not an address of a Dask scheduler. Expected one such as 'tcp://127.0.0.1:8786'."
        ) from error
    except (OSError, TimeoutError) as error:
        raise ConnectionError(
            f"No Dask scheduler answers at {address!r} within {timeout} seconds. Start one with `dask scheduler`, or "
            "check the address."
        ) from error


@cache
def local_cluster() -> Client:
    """Start workers on this machine, which end with this process, and return their client."""
    distributed = distributed_package()
    cluster = distributed.LocalCluster(
        n_workers=available_cores(),
        threads_per_worker=1,
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0" if find_spec("bokeh") else None,
        preload=[IGNORE_INTERRUPTS],
    )
    client = distributed.Client(cluster, set_as_default=False)
    atexit.register(lambda: (client.close(), cluster.close()))
    return client


def dashboard_link(client: Client) -> str | None:
    """Return the address of the cluster's dashboard, or None if it has none."""
    try:
        return client.dashboard_link or None
    except KeyError:  # the scheduler was started without a dashboard
        return None


def _versions() -> dict[str, str]:
    return {"multicause": version.__version__, "jax": jax.__version__}


def check_versions(client: Client) -> None:
    """Raise RuntimeError if the scheduler or a worker lacks this library, or has another version of it or of JAX."""
    try:
        versions = client.run_on_scheduler(_versions)
    except OSError:  # the scheduler has just been lost, which the next call reports
        return
    except Exception as error:
        versions = error
    _check(f"scheduler at {client.scheduler.address}", versions)
    for address, versions in client.run(_versions, on_error="return").items():
        if not isinstance(versions, OSError):  # else it has just ended; what it held is computed by others
            _check(f"worker {address}", versions)


def _check(who: str, there: dict[str, str] | BaseException) -> None:
    here = _versions()
    if isinstance(there, BaseException):
        raise RuntimeError(
            f"The Dask {who} cannot import multicause ({there}). Install multicause=={here['multicause']} and "
            f"jax=={here['jax']} on the scheduler and on all workers."
        ) from there
    if there != here:
        wrong = ", ".join(f"{name} {there[name]} instead of {here[name]}" for name in here if there[name] != here[name])
        raise RuntimeError(
            f"The Dask {who} has {wrong}. The scheduler and all workers need the versions of this process."
        )
