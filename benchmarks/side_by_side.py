"""Trials of a study side by side: one process for each core, and no trial begins after a given time."""

import argparse
import multiprocessing
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from time import monotonic
from typing import Any


def add_options(parser: argparse.ArgumentParser, *, jobs: int = 1) -> None:
    """Add the options that all studies have."""
    parser.add_argument("--jobs", type=int, default=jobs, help="trials at a time, each on one core")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no trial after this time")
    parser.add_argument("--seed", type=int, default=0, help="seed of the first trial")


def run_side_by_side(
    function: Callable[[Any], Any], tasks: Sequence[Any], jobs: int, seconds: float
) -> Iterator[tuple[Any, Any]]:
    """Yield tasks with their results, in the order in which they end; tasks without time are left out.

    Processes share the programs that they compile. With one job, everything runs in this process.
    """
    until = monotonic() + seconds
    timed = [(function, task, until) for task in tasks]
    if jobs == 1:
        yield from (result for result in map(_in_time, timed) if result is not None)
        return
    with tempfile.TemporaryDirectory(prefix="multicause-programs-") as folder:
        os.environ |= {
            "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
            "OMP_NUM_THREADS": "1",
            "JAX_PLATFORMS": "cpu",
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.1",
        }
        os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", folder)
        with multiprocessing.get_context("spawn").Pool(jobs) as pool:
            yield from (result for result in pool.imap_unordered(_in_time, timed, chunksize=1) if result is not None)


def _in_time(timed: tuple[Callable[[Any], Any], Any, float]) -> tuple[Any, Any] | None:
    """Run a task unless its time is over."""
    function, task, until = timed
    return None if monotonic() > until else (task, function(task))
