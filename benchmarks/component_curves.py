"""How often ``component_curve`` names the true number of causes of bars: ``python -m benchmarks.component_curves``.

Each trial has new bars of 10, 16 or 32 causes; numbers around the true one, half of it and twice it are compared.
``--jobs 16`` runs trials side by side, and ``--seconds`` begins no trial after that time. A trial of 16 causes takes
about a minute of one core with ``--folds 2 --rows 500``, one of 32 causes about five minutes with ``--dtype float32``
as well, and several times as long with five folds of 1000 rows.
"""

import argparse
import warnings

from benchmarks.side_by_side import add_options, run_side_by_side

FIRST_SEED = 1000
SIZES = {10: (5, 500), 16: (8, 1000), 32: (16, 2000)}


def named(task: tuple[int, int, bool, str, int, int | None, str]) -> int:
    """Return the number that one trial names."""
    from multicause import MaximalCauses
    from multicause.datasets import make_bars
    from multicause.selection import component_curve

    warnings.simplefilter("ignore")
    n_causes, seed, warm_start, held_out, folds, rows, dtype = task
    size, n_samples = SIZES[n_causes]
    numbers = [n_causes // 2, n_causes - 2, n_causes, n_causes + 2, 2 * n_causes]
    bars = make_bars(rows or n_samples, size=size, noise="poisson", random_state=FIRST_SEED + seed)
    settings = {"cv": folds, "warm_start": warm_start, "held_out": held_out}
    data = bars.data.astype(dtype)
    return component_curve(MaximalCauses(noise="poisson"), data, numbers, random_state=seed, **settings).best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--causes", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--held-out", default="rows", choices=["rows", "entries"])
    parser.add_argument("--folds", type=int, help="by default 5 of rows, 3 of entries")
    parser.add_argument("--rows", type=int, help="rows of each data set; by default 500, 1000 and 2000")
    parser.add_argument("--dtype", default="float64", choices=["float64", "float32"])
    parser.add_argument("--warm-start", action="store_true")
    add_options(parser)
    arguments = parser.parse_args()
    seeds = range(arguments.seed, arguments.seed + arguments.trials)
    # Trials with many causes take longest, so they begin first.
    sizes = sorted(arguments.causes, reverse=True)
    folds = arguments.folds or (5 if arguments.held_out == "rows" else 3)
    options = (arguments.warm_start, arguments.held_out, folds, arguments.rows, arguments.dtype)
    tasks = [(n_causes, seed, *options) for seed in seeds for n_causes in sizes]
    chosen: dict[int, list[int]] = {n_causes: [] for n_causes in arguments.causes}
    for (n_causes, seed, *_), number in run_side_by_side(named, tasks, arguments.jobs, arguments.seconds):
        chosen[n_causes].append(number)
        print(f"{n_causes} causes, seed {seed}: {number}", flush=True)
    print("causes  right  named")
    for n_causes, numbers in chosen.items():
        print(f"{n_causes:6d}  {sum(number == n_causes for number in numbers)} of {len(numbers)}  {numbers}")


if __name__ == "__main__":
    main()
