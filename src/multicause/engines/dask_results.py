"""Results of tasks on a Dask cluster: waiting for them without hanging, and errors that name the block at fault."""

from __future__ import annotations

import re
from collections.abc import Sequence
from concurrent.futures import CancelledError
from time import monotonic
from typing import TYPE_CHECKING, Any

from multicause.engines import dask_tasks as tasks
from multicause.engines.dask_placement import Parts, map_at

if TYPE_CHECKING:
    from distributed import Client, Future

# Seconds between checks whether a cluster that computes for long still has workers.
BETWEEN_CHECKS = 5.0
CONTINUE = "go on from the last checkpoint with fit(X, resume=...), or begin again"


def gather(client: Client, wanted: Any, blocks: Sequence[Future], numbers: Sequence[int], timeout: float) -> Any:
    """Return the results of futures; an error that comes from a block names it.

    ``blocks`` are the futures of blocks on which the results depend, and ``numbers`` their numbers in X. A cluster that
    has had no worker for ``timeout`` seconds raises TimeoutError.
    """
    from distributed import KilledWorker

    address = address_of(client)  # a client that gives up its scheduler forgets it
    try:
        _wait(client, wanted, timeout)
        return client.gather(wanted)
    except CancelledError as error:
        raise lost_scheduler(address, error) from error
    except KilledWorker as error:
        failed = _failed(blocks, numbers)
        what = f"block {failed[0]} of X" if failed else "one task of a fit"
        raise RuntimeError(
            f"{error.allowed_failures + 1} Dask workers died while they computed {what}, the last one at "
            f"{error.last_worker.address}. Their logs say why. If it was their memory, use smaller chunks or a smaller "
            f"memory_budget; Dask's setting distributed.scheduler.allowed-failures allows more deaths. Then {CONTINUE}."
        ) from error
    except Exception as error:
        failed = _failed(blocks, numbers)
        if not failed or re.search(r"\bblock \d", str(error).lower()):  # it names the block itself
            raise
        # Several blocks may have failed; the error that was raised is that of any of them.
        error_of_block = blocks[list(numbers).index(failed[0])].exception()
        kind = ValueError if isinstance(error_of_block, ValueError) else OSError
        raise kind(f"Block {failed[0]} of X cannot be computed: {error_of_block}") from error


def address_of(client: Client) -> str:
    """Return the address of the scheduler, or "?" if the client is closed."""
    return getattr(client.scheduler, "address", "?")


def lost_scheduler(address: str, reason: object) -> ConnectionError:
    """Return the error of a fit that has lost its scheduler."""
    reason = " ".join(str(reason).split())  # Dask's reasons have several lines
    return ConnectionError(
        f"The Dask scheduler at {address} was lost or has been restarted ({reason}). Start it again, and {CONTINUE}."
    )


def gather_facts(client: Client, parts: Parts, timeout: float) -> Any:
    """Return the sizes and dtypes of parts."""
    facts = map_at(client, tasks.facts_of, parts.homes, parts.futures)
    return gather(client, facts, parts.futures, parts.numbers, timeout)


def _failed(blocks: Sequence[Future], numbers: Sequence[int]) -> list[int]:
    return [number for number, block in zip(numbers, blocks, strict=True) if block.status == "error"]


def _wait(client: Client, wanted: Any, timeout: float) -> None:
    """Wait until futures are done, as long as the cluster has workers or gets some within ``timeout`` seconds."""
    from distributed import wait

    alone_since, address = None, address_of(client)
    while True:
        try:
            with client.as_current():  # wait() asks for the current client
                wait(wanted, timeout=min(BETWEEN_CHECKS, timeout))
            return
        except TimeoutError:
            if _has_workers(client, address):
                alone_since = None
                continue
        alone_since = alone_since or monotonic()
        if monotonic() - alone_since >= timeout:
            raise TimeoutError(
                f"The Dask cluster at {address} has lost all its workers and has had none for "
                f"{timeout} seconds. Start workers, and {CONTINUE}. engine=Dask(timeout=...) waits longer."
            ) from None


def _has_workers(client: Client, address: str) -> bool:
    """Return whether the scheduler knows any worker; it may have been lost while it is asked."""
    from distributed.comm import CommClosedError

    try:
        return bool(client.nthreads())
    except (CommClosedError, RuntimeError, AttributeError) as error:  # the last two come from a client that was closed
        raise lost_scheduler(address, error) from error
