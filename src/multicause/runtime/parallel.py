"""Threads that run compiled programs in parallel on the cores of the CPU.

A program for a small array runs on one core, and releases Python's global lock while it runs. The thread pool is
created when it is first needed and kept, because starting threads takes longer than many programs.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache
from numbers import Integral
from queue import Full, Queue
from typing import Any

import jax
import joblib

from multicause.arrays import double_precision

_worker = threading.local()


def number_of_jobs(n_jobs: int | None) -> int:
    """Return the number of threads for ``n_jobs``, with scikit-learn's meaning of −1; None means all cores.

    Work that already runs in one of these threads gets no more threads.
    """
    if n_jobs is not None and (not isinstance(n_jobs, Integral) or isinstance(n_jobs, bool) or n_jobs == 0):
        raise ValueError(
            "n_jobs must be a positive number of threads, −1 for all cores, −2 for all but one and so on, or None; "
            f"got {n_jobs!r}."
        )
    if getattr(_worker, "active", False):
        return 1
    cores = available_cores()
    if n_jobs is None:
        _, n_jobs = joblib.parallel.get_active_backend()
        # Outside of a context, joblib returns 1, although scikit-learn's own parallel loops in C use all cores.
        if n_jobs is None or n_jobs == 1:
            n_jobs = 1 if _inside_joblib() else min(cores, _limit_of_environment())
    return int(n_jobs) if n_jobs > 0 else max(1, cores + 1 + int(n_jobs))


def available_cores() -> int:
    """Return the number of cores that this process may use, which can be fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def run_all(function: Callable[..., Any], tasks: Iterable[tuple[Any, ...]], n_threads: int) -> list[Any]:
    """Return ``function(*task)`` of every task, in order, computed by at most ``n_threads`` threads.

    Each thread takes the next task when it has finished one. A future for each task would take longer: on two cores,
    5 % of the time of 40 tasks of a millisecond.
    """
    tasks = list(tasks)
    n_threads = min(n_threads, len(tasks))
    if n_threads <= 1:
        return [function(*task) for task in tasks]
    waiting, results = deque(enumerate(tasks)), [None] * len(tasks)

    def work() -> None:
        while True:
            try:
                number, task = waiting.popleft()
            except IndexError:
                return
            try:
                results[number] = _run(function, task)
            except BaseException:
                waiting.clear()
                raise

    workers = [_pool(n_threads).submit(work) for _ in range(n_threads)]
    try:
        while workers:
            workers.pop().result()  # no variable: an error would keep it, with all tasks, until garbage is collected
    finally:
        waiting.clear()  # the user may have interrupted the wait
    return results


def in_order(function: Callable[..., Any], tasks: Iterable[tuple[Any, ...]], n_threads: int) -> Iterator[Any]:
    """Yield ``function(*task)`` of every task in order, computing at most ``n_threads`` results in advance."""
    if n_threads <= 1:
        for task in tasks:
            yield function(*task)
        return
    running: deque[Future[Any]] = deque()
    try:
        for task in tasks:
            running.append(_pool(n_threads).submit(_run, function, task))
            if len(running) == n_threads:
                yield running.popleft().result()
        while running:
            yield running.popleft().result()
    finally:
        for future in running:
            future.cancel()


def read_ahead(items: Iterable[Any], depth: int) -> Iterator[Any]:
    """Yield the items of an iterable, which a separate thread reads up to ``depth`` items ahead."""
    waiting: Queue[tuple[bool, Any]] = Queue(depth)
    ended = threading.Event()

    def offer(entry: tuple[bool, Any]) -> bool:
        while not ended.is_set():
            try:
                waiting.put(entry, timeout=0.1)
                return True
            except Full:
                continue
        return False

    def read() -> None:
        try:
            with double_precision():
                for item in items:
                    if not offer((True, item)):
                        return
            offer((False, None))
        except BaseException as error:
            offer((False, error))

    threading.Thread(target=read, name="multicause-reader", daemon=True).start()
    try:
        while True:
            is_item, item = waiting.get()
            if is_item:
                yield item
            elif item is None:
                return
            else:
                raise item
    finally:
        ended.set()


def in_background(function: Callable[..., Any], *arguments: Any) -> Future[Any]:
    """Call a function in the background thread, which runs such calls one by one, and return its future."""
    return _background().submit(_run, function, arguments)


def _run(function: Callable[..., Any], task: tuple[Any, ...]) -> Any:
    """Run a task in a worker thread and wait for its result."""
    _worker.active = True
    try:
        with double_precision():  # the setting is local to each thread
            return jax.block_until_ready(function(*task))
    finally:
        _worker.active = False


@lru_cache(maxsize=8)
def _pool(n_threads: int) -> ThreadPoolExecutor:
    """Return the pool with this many threads."""
    return ThreadPoolExecutor(n_threads, thread_name_prefix="multicause")


@lru_cache(maxsize=1)
def _background() -> ThreadPoolExecutor:
    """Return the pool of the background thread."""
    return ThreadPoolExecutor(1, thread_name_prefix="multicause-background")


def _limit_of_environment() -> int:
    """Return the thread limit of OpenMP programs, which joblib sets in its worker processes."""
    text = os.environ.get("OMP_NUM_THREADS", "").split(",")[0]
    return int(text) if text.isdigit() and int(text) > 0 else available_cores()


def _inside_joblib() -> bool:
    """Return whether this thread belongs to a parallel loop of joblib with threads."""
    backend, _ = joblib.parallel.get_active_backend()
    return getattr(backend, "nesting_level", 0) > 0


if hasattr(os, "register_at_fork"):
    # Threads do not survive in a forked process.
    os.register_at_fork(after_in_child=_pool.cache_clear)
    os.register_at_fork(after_in_child=_background.cache_clear)
