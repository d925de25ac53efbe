"""Engines: data larger than memory, processes of Dask against threads, killed workers, and the load of a scheduler.

``python -m benchmarks.engines stream --gib 20 --budget 2GiB`` learns from a file that is mostly a hole (it takes little
space on the disk, and all of it is read), and prints the peak of resident memory and the seconds of a pass.
``python -m benchmarks.engines memory`` compares a pass over a file with one over the same rows in memory.
``python -m benchmarks.engines dask`` compares two worker processes of Dask with two threads of this process, and prints
the ratio of the seconds of an iteration in each round, its median and its range.
``python -m benchmarks.engines kills --kills 10`` kills workers at random moments of a fit, and compares its
parameters with those of an undisturbed one.
``python -m benchmarks.engines scheduler --workers 1000`` sends one task that does nothing to each of so many workers,
and adds the results up as an iteration does.
"""

import argparse
import os
import resource
import signal
import tempfile
import threading
import warnings
from functools import partial
from pathlib import Path
from time import perf_counter, process_time

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from multicause import LinearCauses
from multicause.callbacks import IterationCallback
from multicause.engines import Dask, Local
from multicause.engines.dask_data import FAN_IN
from multicause.engines.dask_placement import map_at
from multicause.posteriors import Preselected

D = H = 100
# Rows at the beginning of a file that is otherwise a hole; they have a variance.
ROWS_OF_NUMBERS = 100_000


class Times(IterationCallback):
    """Notes when each iteration has ended, and the processor time of all processes after the first and the last one."""

    def __init__(self, n_iter, processor_time):
        self.n_iter, self.processor_time = n_iter, processor_time
        self.moments, self.used = [], []

    def after(self, iteration):
        """Note the times. The processor time is measured first, because it may take a while to ask other processes."""
        if iteration.number in (1, self.n_iter):
            self.used.append(self.processor_time())
        self.moments.append(perf_counter())


def times_of_iterations(X, engine, n_iter, *, n_components=H, processor_time=process_time):
    """Seconds of each iteration (H'=5, γ=3, no data cut), and the mean of its processor time.

    The first iteration, in which programs are compiled, is left out.
    """
    times = Times(n_iter, processor_time)
    posterior = Preselected(5, 3, keep=None)
    settings = {"annealing": None, "repair": False, "tol": 0, "random_state": 0}
    model = LinearCauses(n_components, posterior=posterior, max_iter=n_iter, engine=engine, **settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.set_callbacks(times).fit(X)
    return np.diff(times.moments), float(np.diff(times.used)[0]) / (n_iter - 1)


def seconds_of_iteration(X, engine, n_iter=4, *, n_components=H, of_processor=False):
    """Shortest time of an iteration, or the processor time, which other processes hardly affect."""
    seconds, used = times_of_iterations(X, engine, n_iter, n_components=n_components)
    return used if of_processor else float(seconds.min())


def compared(first, second, n_rounds):
    """Return the shortest times of two functions that are measured in turn.

    Other processes make times longer, never shorter, and affect both alike.
    """
    times = [(first(), second()) for _ in range(n_rounds)]
    return tuple(min(column) for column in zip(*times, strict=True))


def random_rows(n_rows, n_features=D):
    return np.random.RandomState(0).normal(size=(n_rows, n_features)).astype(np.float32)


def stream(gib, budget, n_components, n_iter):
    n_rows = int(gib * 2**30) // (4 * D)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.npy"
        rows = np.lib.format.open_memmap(path, "w+", np.float32, (n_rows, D))
        some = random_rows(min(ROWS_OF_NUMBERS, n_rows // 2))
        rows[: len(some)] = some
        rows.flush()
        del rows, some
        mapped, engine, started = np.load(path, mmap_mode="r"), Local(memory_budget=budget), perf_counter()
        seconds = seconds_of_iteration(mapped, engine, n_iter, n_components=n_components)
        whole = perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"file {gib} GiB, {n_rows:,} rows, budget {budget}: peak of resident memory {peak:.2f} GiB,")
    print(f"H={n_components}: {seconds:.1f} s a pass, {n_rows / seconds:,.0f} rows/s, {gib / seconds:.2f} GiB/s,")
    print(f"{whole:.0f} s for a fit of {n_iter} iterations")
    return peak, seconds


def memory(n_rows, n_iter, n_rounds):
    X = random_rows(n_rows)
    print(f"An iteration, N={n_rows:,}, D=H={D}, γ=3")
    # The same budget in both cases, so that blocks are the same.
    engine = Local(memory_budget=X.nbytes // 2)
    with tempfile.TemporaryDirectory() as folder:
        np.save(Path(folder) / "rows.npy", X)
        mapped = np.load(Path(folder) / "rows.npy", mmap_mode="r")
        for of_processor in (False, True):
            run = partial(seconds_of_iteration, engine=engine, n_iter=n_iter, of_processor=of_processor)
            here, there = compared(partial(run, X), partial(run, mapped), n_rounds)
            clock = "processor" if of_processor else "clock"
            print(f"{clock}: in memory {here:.3f} s, streamed {there:.3f} s, ratio {there / here:.2f}")
    return there / here


def dask(n_rows, n_iter, n_rounds):
    """Compare medians of the iterations of a round; the order of the engines alternates.

    A first round, in which workers start and compile, is not counted.
    """
    from distributed import Client, LocalCluster

    X = random_rows(n_rows)
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0") as cluster,
        Client(cluster) as client,
    ):
        engines = {"Local(n_jobs=2)": Local(n_jobs=2), "Dask with 2 workers": Dask(client)}

        def of_all_processes():
            return process_time() + sum(client.run(process_time).values())

        def measured(name, n):
            seconds, used = times_of_iterations(X, engines[name], n, processor_time=of_all_processes)
            return float(np.median(seconds)), used

        print(f"N={n_rows:,}, D=H={D}: seconds of an iteration, the median of {n_iter - 1} (and of the processor)")
        timings = []
        for number in range(n_rounds + 1):
            order = list(engines)[:: 1 if number % 2 else -1]
            times = {name: measured(name, n_iter if number else 2) for name in order}
            if number:
                timings.append([times[name] for name in engines])
                text = ", ".join(f"{name} {times[name][0]:.3f} ({times[name][1]:.3f})" for name in engines)
                print(f"round {number}: {text}, ratio {timings[-1][1][0] / timings[-1][0][0]:.2f}", flush=True)
    (_, used_here), (there, used_there) = np.median(timings, axis=0)
    ratios = [timing[1][0] / timing[0][0] for timing in timings]
    print(f"ratio {np.median(ratios):.2f}, from {min(ratios):.2f} to {max(ratios):.2f} in {n_rounds} rounds;")
    print(f"of processor time {used_there / used_here:.2f}; {n_rows / there / 2:,.0f} rows/s for each worker")
    return float(np.median(ratios))


class KillWorkers(IterationCallback):
    """Kills the process of a random worker after each of some iterations, at a random moment of the next ones."""

    def __init__(self, cluster, iterations, random):
        self.cluster, self.iterations, self.random, self.n_killed = cluster, set(iterations), random, 0
        self.seconds = 0.1  # of an iteration, so far
        self.timers, self._last = [], perf_counter()

    def after(self, iteration):
        """Kill a worker a little later."""
        now = perf_counter()
        self.seconds, self._last = min(self.seconds, now - self._last), now
        if iteration.number in self.iterations:
            timer = threading.Timer(self.random.uniform(0, 2 * self.seconds), self.kill)
            self.timers.append(timer)
            timer.start()

    def kill(self):
        """Kill one of the processes that have started; Dask gives up one that is killed while it starts."""
        started = [worker for worker in self.cluster.workers.values() if worker.process.status.name == "running"]
        if started:
            os.kill(started[self.random.randint(len(started))].pid, signal.SIGKILL)
            self.n_killed += 1


def kills(n_rows, n_kills, seed):
    """A fit in which workers are killed has the parameters of an undisturbed one, bit for bit."""
    import dask
    import dask.array as da
    from distributed import Client, LocalCluster

    random, n_iter = np.random.RandomState(seed), 3 * n_kills + 3
    rows = da.from_array(random_rows(n_rows), chunks=(-(-n_rows // 8), D))
    settings = {"annealing": None, "repair": False, "tol": 0, "random_state": 0, "max_iter": n_iter}
    with (
        # A LocalCluster gives up a killed worker that takes longer than 15 seconds to start again, and a task gives up
        # after three deaths.
        dask.config.set(
            {"distributed.deploy.lost-worker-timeout": "1h", "distributed.scheduler.allowed-failures": n_kills}
        ),
        LocalCluster(
            n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0", silence_logs=50
        ) as cluster,
        Client(cluster) as client,
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", "Sending large graph")
        posterior = Preselected(5, 3, keep=0.9)
        model = LinearCauses(20, posterior=posterior, engine=Dask(client, timeout=600), **settings)
        undisturbed = clone(model).fit(rows)
        killing = KillWorkers(cluster, 1 + 3 * np.arange(n_kills) + random.randint(0, 3, n_kills), random)
        started = perf_counter()
        survived = clone(model).set_callbacks(killing).fit(rows)
        for timer in killing.timers:
            timer.cancel()
    same = all(
        np.array_equal(getattr(survived, name), getattr(undisturbed, name))
        for name in ("components_", "activity_", "noise_variance_", "lower_bounds_")
    )
    print(f"{killing.n_killed} workers killed in {n_iter} iterations ({perf_counter() - started:.0f} s):")
    print(f"parameters {'equal those of an undisturbed fit bit for bit' if same else 'DIFFER'}")
    return same and killing.n_killed == n_kills


def nothing(part, shared):
    return 0


def add(terms):
    return sum(terms)


def round_trip(client, parts):
    """Send one task to each part, add the results up in a tree, and wait for the sum."""
    shared = client.submit(int, 0, pure=False)
    (worker,) = client.nthreads()
    terms = map_at(client, nothing, [worker] * len(parts), parts, [shared] * len(parts))
    while len(terms) > 1:
        groups = [terms[start : start + FAN_IN] for start in range(0, len(terms), FAN_IN)]
        terms = client.map(add, groups, pure=False)
    return terms[0].result()


def scheduler(workers, n_iter):
    """Tasks run in threads of the process that has the scheduler, so that all costs but the network's are seen."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=1, threads_per_worker=2, processes=False, dashboard_address="127.0.0.1:0", silence_logs=50
        ) as cluster,
        Client(cluster) as client,
    ):
        seconds = {}
        for n_parts in sorted({1, 10, 100, workers}):
            parts = client.scatter(list(range(n_parts)), hash=False)
            round_trip(client, parts)
            times = []
            for _ in range(n_iter):
                started = perf_counter(), process_time()
                round_trip(client, parts)
                times.append((perf_counter() - started[0], process_time() - started[1]))
            seconds[n_parts], used = np.median(times, axis=0).tolist()
            text = f"{1000 * seconds[n_parts]:8.1f} ms an iteration ({1000 * used:.1f} ms of the processor)"
            print(f"{n_parts:5d} workers, simulated: {text}", flush=True)
    return seconds


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("stream")
    command.add_argument("--gib", type=float, default=20)
    command.add_argument("--budget", default="2GiB")
    command.add_argument("--components", type=int, default=H)
    command.add_argument("--iterations", type=int, default=3)
    command = commands.add_parser("kills")
    command.add_argument("--rows", type=int, default=16_000)
    command.add_argument("--kills", type=int, default=10)
    command.add_argument("--seed", type=int, default=0)
    for name in ("memory", "dask"):
        command = commands.add_parser(name)
        command.add_argument("--rows", type=int, default=400_000)
        command.add_argument("--iterations", type=int, default=8)
        command.add_argument("--rounds", type=int, default=5)
    command = commands.add_parser("scheduler")
    command.add_argument("--workers", type=int, default=1000)
    command.add_argument("--iterations", type=int, default=5)
    chosen = parser.parse_args(arguments)
    if chosen.command == "stream":
        return stream(chosen.gib, chosen.budget, chosen.components, chosen.iterations)
    if chosen.command == "kills":
        return kills(chosen.rows, chosen.kills, chosen.seed)
    if chosen.command == "scheduler":
        return scheduler(chosen.workers, chosen.iterations)
    return {"memory": memory, "dask": dask}[chosen.command](chosen.rows, chosen.iterations, chosen.rounds)


if __name__ == "__main__":
    main()
