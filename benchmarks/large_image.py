"""Time, memory and signal-to-noise ratio of denoising one large photograph with the defaults.

    python -m benchmarks.large_image                         # 4000×3000 pixels, noise of 15, the default budget
    python -m benchmarks.large_image --width 1000 --height 750 --sigma 25 --memory 256MiB

The photograph is made of scikit-image's pictures of 512×512 pixels, side by side, every second copy mirrored. Memory is
the largest resident set of the process, which includes JAX and the pictures themselves.
"""

import argparse
import itertools
import resource
import sys
import time

import numpy as np
from skimage import data

from benchmarks.restoration_pictures import grey, psnr
from multicause.restoration import denoise_image

NAMES = ["camera", "astronaut", "brick", "moon", "gravel", "immunohistochemistry", "grass"]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--width", type=int, default=4000)
    parser.add_argument("--height", type=int, default=3000)
    parser.add_argument("--sigma", type=float, default=15.0, help="standard deviation of the noise; white is 255")
    parser.add_argument("--memory", default="1GiB", help="memory budget of the restoration")
    arguments = parser.parse_args()
    clean = photograph(arguments.height, arguments.width)
    noisy = clean + arguments.sigma * np.random.default_rng(0).normal(size=clean.shape)
    print(f"{'seconds':>10}{'done':>8}{'GiB':>8}")
    begin = time.perf_counter()
    restored = denoise_image(noisy, memory_budget=arguments.memory, random_state=0, progress=Report(begin))
    seconds = time.perf_counter() - begin
    print(
        f"{arguments.width}x{arguments.height}: {seconds:.0f} s, {resident():.2f} GiB resident at most, "
        f"{psnr(noisy, clean):.2f} dB before, {psnr(restored, clean):.2f} dB after"
    )


def photograph(height: int, width: int) -> np.ndarray:
    """Return a grey image between 0 and 255."""
    tiles = itertools.cycle(grey(np.asarray(getattr(data, name)(), dtype=float)) for name in NAMES)
    mirrored = (next(tiles)[:, :: 1 - 2 * (i % 2)] for i in itertools.count())
    rows = [[next(mirrored) for _ in range(-(-width // 512))] for _ in range(-(-height // 512))]
    return np.block(rows)[:height, :width]


def resident() -> float:
    """Return the largest memory that this process had so far, in GiB."""
    unit = 2**30 if sys.platform == "darwin" else 2**20  # bytes there, KiB elsewhere
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


class Report:
    """Print progress and memory once a minute."""

    def __init__(self, begin: float) -> None:
        self._begin, self._last = begin, begin

    def __call__(self, part: float, text: str) -> None:
        """Print the fraction of the work that is done, unless a line was printed within the last minute."""
        now = time.perf_counter()
        if now - self._last >= 60:
            self._last = now
            print(f"{now - self._begin:>10.0f}{part:>8.0%}{resident():>8.2f}  {text}", flush=True)


if __name__ == "__main__":
    main()
