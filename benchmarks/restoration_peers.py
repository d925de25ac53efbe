"""Other methods of restoration: BM3D, non-local means, wavelets, biharmonic inpainting, and filling by BM3D.

    MULTICAUSE_DATA=... python -m benchmarks.restoration_peers --tasks denoise inpaint    # measure and store

Their results on the pictures of :mod:`benchmarks.restoration` are stored in ``restoration_peers.csv`` beside this file,
so that tables can be printed where a package is not installed. All methods are told the strength of the noise. They
were measured with bm3d 4.0.3 and scikit-image 0.26.
"""

import argparse
import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from skimage import restoration

from benchmarks.restoration_pictures import NAMES, WHITE, Damaged, damaged, psnr
from multicause.restoration.counts import expected_counts, stabilize_counts

STORE = Path(__file__).with_suffix(".csv")
LEVELS = {"denoise": (15.0, 25.0, 50.0), "inpaint": (0.5, 0.8), "colour": (15.0, 25.0, 50.0), "counts": (5.0, 30.0)}
# The noise that BM3D is told first and last when it fills pixels in, and how often it is run.
LEVELS_OF_FILLING, N_FILLINGS = (40.0, 3.0), 12


def by_bm3d(image: np.ndarray, sigma: float) -> np.ndarray:
    """Return a grey or coloured image denoised by BM3D."""
    import bm3d

    return np.asarray(bm3d.bm3d(image, sigma) if image.ndim == 2 else bm3d.bm3d_rgb(image, sigma))


def by_non_local_means(image: np.ndarray, sigma: float) -> np.ndarray:
    """Return an image denoised by non-local means."""
    denoised = restoration.denoise_nl_means(
        image, h=0.8 * sigma, sigma=sigma, patch_size=5, patch_distance=6, fast_mode=True
    )
    return np.asarray(denoised)


def by_wavelets(image: np.ndarray, sigma: float) -> np.ndarray:
    """Return an image denoised by thresholds of wavelets."""
    return WHITE * restoration.denoise_wavelet(image / WHITE, sigma=sigma / WHITE, rescale_sigma=True)


def smooth(case: Damaged) -> np.ndarray:
    """Return a picture whose missing pixels are filled in by the biharmonic equation."""
    assert case.lost is not None
    return np.asarray(restoration.inpaint_biharmonic(np.where(case.lost, 0, case.clean), case.lost))


def fill_by_bm3d(case: Damaged) -> np.ndarray:
    """Return a picture whose missing pixels are replaced again and again by those that BM3D restores.

    The noise that BM3D is told decreases, so that ever finer details are filled in (after Danielyan, Katkovnik &
    Egiazarian 2012).
    """
    filled = smooth(case)
    for sigma in np.geomspace(*LEVELS_OF_FILLING, N_FILLINGS):
        filled = np.where(case.lost, by_bm3d(filled, float(sigma)), case.clean)
    return filled


def counts_by_bm3d(case: Damaged) -> np.ndarray:
    """Return rates of counts, which BM3D denoises after Anscombe's transform, with its unbiased inverse."""
    scale = WHITE / case.level
    return expected_counts(by_bm3d(stabilize_counts(case.image / scale), 1.0)) * scale


PEERS: dict[str, dict[str, Callable[[Damaged], np.ndarray]]] = {
    "denoise": {
        "bm3d": lambda case: by_bm3d(case.image, case.level),
        "nlm": lambda case: by_non_local_means(case.image, case.level),
        "wavelet": lambda case: by_wavelets(case.image, case.level),
    },
    "inpaint": {"biharmonic": smooth, "bm3d": fill_by_bm3d},
    "colour": {"bm3d": lambda case: by_bm3d(case.image, case.level)},
    "counts": {"bm3d": counts_by_bm3d},
}


def results_of_peers(case: Damaged, stored: bool) -> dict[str, str]:
    """Return the results of all methods for a picture in dB, as text; those from the file have an asterisk."""
    known = read_stored()
    scores = {}
    for method, restore in PEERS[case.task].items():
        key = (case.task, case.name, case.level, method)
        try:
            if stored and key in known:
                raise ImportError
            scores[method] = f"{psnr(restore(case), case.clean):.2f}"
        except ImportError:
            scores[method] = f"{known[key]:.2f}*" if key in known else "-"
    return scores


def read_stored() -> dict[tuple[Any, ...], float]:
    """Return results in dB by task, picture, level and method."""
    if not STORE.exists():
        return {}
    with STORE.open(newline="") as file:
        return {
            (task, name, float(level), method): float(value) for task, name, level, method, value in csv.reader(file)
        }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--tasks", nargs="*", choices=sorted(PEERS), default=list(PEERS))
    parser.add_argument("--pictures", nargs="*", default=NAMES)
    arguments = parser.parse_args()
    for task in arguments.tasks:
        for level in LEVELS[task]:
            for name in arguments.pictures:
                case = damaged(task, name, level)
                if case is None:
                    continue
                for method, restore in PEERS[task].items():
                    if (task, name, level, method) in read_stored():
                        continue
                    value = psnr(restore(case), case.clean)
                    with STORE.open("a", newline="") as file:
                        csv.writer(file).writerow([task, name, f"{level:g}", method, f"{value:.3f}"])


if __name__ == "__main__":
    main()
