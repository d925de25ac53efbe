"""Workers of the parts of a data set: balanced once, before learning; then every part is used where it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import uuid4

if TYPE_CHECKING:
    from distributed import Client, Future


@dataclass(frozen=True)
class Parts:
    """Parts of the data on a cluster.

    Attributes
    ----------
    futures : of the parts
    numbers : of the chunks of X from which the parts were made
    homes : addresses of the workers that hold the parts, and that compute everything that depends on them
    """

    futures: Sequence[Future]
    numbers: Sequence[int]
    homes: Sequence[str]


def balanced_homes(sizes: Sequence[int], holders: Sequence[Sequence[str]], n_threads: Mapping[str, int]) -> list[str]:
    """Return the address of a worker for each part, so that all threads of the cluster have similar numbers of rows.

    Parts have ``sizes`` rows, and some workers hold them already; ``n_threads`` has all workers. A part stays with a
    worker that holds it, unless the largest number of rows of a thread gets smaller when it is moved.
    """
    assigned: dict[str, list[int]] = {worker: [] for worker in n_threads}
    rows = dict.fromkeys(n_threads, 0)

    def share(worker: str, more: int = 0) -> float:
        return (rows[worker] + more) / n_threads[worker]

    def give(part: int, worker: str) -> None:
        assigned[worker].append(part)
        rows[worker] += sizes[part]

    for part, size in enumerate(sizes):
        candidates = [worker for worker in holders[part] if worker in assigned] or list(assigned)
        give(part, min(candidates, key=lambda worker: share(worker, size)))
    while sizes:
        most, least = max(assigned, key=share), min(assigned, key=share)
        largest = {part: max(share(most, -sizes[part]), share(least, sizes[part])) for part in assigned[most]}
        part = min(largest, key=largest.__getitem__)
        if largest[part] >= share(most):
            break
        assigned[most].remove(part)
        rows[most] -= sizes[part]
        give(part, least)
    home_of = {part: worker for worker, parts in assigned.items() for part in parts}
    return [home_of[part] for part in range(len(sizes))]


def map_at(client: Client, function: Callable[..., Any], homes: Sequence[str], *columns: Sequence[Any]) -> list[Future]:
    """Return the futures of ``function(*entries)`` for each entry of the columns, computed on the given workers.

    Dask alone would send a task to another worker whenever that seems to be free earlier, and the rows with it. If a
    worker is lost, others take its tasks.
    """
    import dask
    from dask.utils import funcname

    name = f"{funcname(function)}-{uuid4()}"
    keys = [f"{name}-{number}" for number in range(len(homes))]
    home_of = dict(zip(keys, homes, strict=True))
    # Sending many tasks together costs the scheduler half as much as sending them one by one.
    with dask.annotate(workers=home_of.__getitem__, allow_other_workers=True):
        return client.map(function, *columns, key=keys, pure=False)
