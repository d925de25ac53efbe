"""How often ``component_curve`` names the true number of causes of bars: ``python -m benchmarks.component_curves``.

Each trial has new bars of 10, 16 or 32 causes; numbers around the true one, half of it and twice it are compared.
"""

import argparse
import warnings
from time import perf_counter

from multicause import MaximalCauses
from multicause.datasets import make_bars
from multicause.selection import component_curve

SIZES = {10: (5, 500), 16: (8, 1000), 32: (16, 2000)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--causes", type=int, nargs="+", default=list(SIZES))
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    print("causes  right  named (time)")
    for n_causes in arguments.causes:
        size, n_samples = SIZES[n_causes]
        numbers = [n_causes // 2, n_causes - 2, n_causes, n_causes + 2, 2 * n_causes]
        named, started = [], perf_counter()
        for seed in range(arguments.trials):
            bars = make_bars(n_samples, size=size, noise="poisson", random_state=1000 + seed)
            curve = component_curve(MaximalCauses(noise="poisson"), bars.data, numbers, random_state=seed)
            named.append(curve.best)
        right = sum(number == n_causes for number in named)
        seconds = (perf_counter() - started) / arguments.trials
        print(f"{n_causes:6d}  {right} of {arguments.trials}  {named} ({seconds:.0f} s a trial)", flush=True)


if __name__ == "__main__":
    main()
