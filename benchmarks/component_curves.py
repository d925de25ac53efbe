"""How often ``component_curve`` names the true number of causes of bars: ``python -m benchmarks.component_curves``.

Each trial has new bars of 10, 16 or 32 causes; numbers around the true one, half of it and twice it are compared.
``--jobs 16`` runs trials side by side, and ``--seconds`` begins no trial after that time.
"""

import argparse
import multiprocessing
import os
import warnings
from time import monotonic

SIZES = {10: (5, 500), 16: (8, 1000), 32: (16, 2000)}


def named(task: tuple[int, int, bool, str, float]) -> int | None:
    """Return the number that one trial names, or None if its time is over."""
    n_causes, seed, warm_start, held_out, until = task
    if monotonic() > until:
        return None
    from multicause import MaximalCauses
    from multicause.datasets import make_bars
    from multicause.selection import component_curve

    warnings.simplefilter("ignore")
    size, n_samples = SIZES[n_causes]
    numbers = [n_causes // 2, n_causes - 2, n_causes, n_causes + 2, 2 * n_causes]
    bars = make_bars(n_samples, size=size, noise="poisson", random_state=1000 + seed)
    settings = {"cv": 5 if held_out == "rows" else 3, "warm_start": warm_start, "held_out": held_out}
    return component_curve(MaximalCauses(noise="poisson"), bars.data, numbers, random_state=seed, **settings).best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--causes", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--held-out", default="rows", choices=["rows", "entries"])
    parser.add_argument("--warm-start", action="store_true")
    parser.add_argument("--jobs", type=int, default=1, help="trials at a time")
    parser.add_argument("--seconds", type=float, default=float("inf"))
    arguments = parser.parse_args()
    if arguments.jobs > 1:
        os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"
        os.environ["OMP_NUM_THREADS"] = "1"
        os.environ.setdefault("JAX_PLATFORMS", "cpu")
    started = monotonic()
    print("causes  right  named (time)")
    with multiprocessing.get_context("spawn").Pool(arguments.jobs) as pool:
        for n_causes in arguments.causes:
            until = started + arguments.seconds
            tasks = [
                (n_causes, seed, arguments.warm_start, arguments.held_out, until) for seed in range(arguments.trials)
            ]
            before = monotonic()
            found = [number for number in pool.imap(named, tasks, chunksize=1) if number is not None]
            right = sum(number == n_causes for number in found)
            print(f"{n_causes:6d}  {right} of {len(found)}  {found} ({monotonic() - before:.0f} s)", flush=True)


if __name__ == "__main__":
    main()
