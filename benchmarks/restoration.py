"""Peak signal-to-noise ratios of restored pictures beside those of other methods, in dB.

    python -m benchmarks.restoration                                     # everything
    python -m benchmarks.restoration --tasks denoise --pictures house camera --sigmas 25
    python -m benchmarks.restoration --tasks inpaint --pictures house --missing 0.8
    python -m benchmarks.restoration --tasks colour counts --pictures astronaut
    python -m benchmarks.restoration --stored --again --seconds 280      # others from the file; seconds of a second run

The tasks are white noise (``denoise``), missing pixels (``inpaint``), noise of coloured pictures whose channels are
restored jointly and one by one (``colour``), and photon counts (``counts``). Pictures are those of scikit-image, at
256×256 pixels, and ``house/house.png`` if the environment variable MULTICAUSE_DATA names a folder that has it. Seconds
include compilation where a program is not in the cache yet. All methods but ours are told the strength of the noise.
BM3D and wavelets are run if their packages are installed (``pip install 'multicause[benchmark]'``); otherwise their
results are those of benchmarks/restoration_peers.csv, marked by an asterisk.
"""

import argparse
import time

import numpy as np

from benchmarks.restoration_peers import PEERS, results_of_peers
from benchmarks.restoration_pictures import NAMES, WHITE, Damaged, damaged, psnr
from multicause.restoration import denoise_image, inpaint_image


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--tasks", nargs="*", choices=sorted(PEERS), default=list(PEERS))
    parser.add_argument("--pictures", nargs="*", default=NAMES)
    parser.add_argument("--sigmas", nargs="*", type=float, default=[15, 25, 50])
    parser.add_argument("--missing", nargs="*", type=float, default=[0.5, 0.8])
    parser.add_argument("--peaks", nargs="*", type=float, default=[5, 30], help="expected counts of white")
    parser.add_argument("--stored", action="store_true", help="take results of other methods from the file")
    parser.add_argument("--again", action="store_true", help="run ours twice, and print the seconds of the second run")
    parser.add_argument("--seconds", type=float, default=np.inf, help="begin no picture after that time")
    arguments = parser.parse_args()
    end = time.monotonic() + arguments.seconds
    for task in arguments.tasks:
        levels = {"inpaint": arguments.missing, "counts": arguments.peaks}.get(task, arguments.sigmas)
        columns = ["ours", *(["channels"] if task == "colour" else []), *PEERS[task]]
        print(f"\n{task:<22}{'level':>7}" + "".join(f"{each:>12}" for each in columns) + f"{'seconds':>10}")
        for level in levels:
            rows = []
            for name in arguments.pictures:
                case = damaged(task, name, level)
                if case is None or time.monotonic() > end:
                    continue
                restored, seconds = restore(case, arguments.again)
                values = [f"{psnr(restored, case.clean):.2f}"]
                if task == "colour":
                    values.append(f"{psnr(restore_channels(case), case.clean):.2f}")
                rows.append([*values, *results_of_peers(case, arguments.stored).values(), f"{seconds:.1f}"])
                show(name, level, rows[-1])
            if len(rows) > 1:
                show("mean", level, means(rows))


def restore(case: Damaged, again: bool = False) -> tuple[np.ndarray, float]:
    """Return the picture that is restored with the defaults and seed zero, and seconds."""
    for _ in range(2 if again else 1):
        begin = time.perf_counter()
        if case.task == "inpaint":
            restored = inpaint_image(case.image, random_state=0)
        elif case.task == "counts":
            scale = WHITE / case.level
            restored = denoise_image(np.rint(case.image / scale), noise="poisson", random_state=0) * scale
        else:
            restored = denoise_image(case.image, random_state=0)
    return restored, time.perf_counter() - begin


def restore_channels(case: Damaged) -> np.ndarray:
    """Return a coloured picture whose channels are restored one by one."""
    return np.stack([denoise_image(case.image[..., c], random_state=0) for c in range(3)], axis=2)


def means(rows: list[list[str]]) -> list[str]:
    """Return the means of columns of numbers, and a dash where any is missing."""
    columns = [[each.rstrip("*") for each in column] for column in zip(*rows, strict=True)]
    return ["-" if "-" in each else f"{np.mean([float(value) for value in each]):.2f}" for each in columns]


def show(name: str, level: float, values: list[str]) -> None:
    print(f"{name:<22}{level:>7g}" + "".join(f"{each:>12}" for each in values[:-1]) + f"{values[-1]:>10}", flush=True)


if __name__ == "__main__":
    main()
