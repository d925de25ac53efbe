"""Peak signal-to-noise ratios of restored pictures beside those of other methods, in dB.

    python -m benchmarks.restoration                                     # everything
    python -m benchmarks.restoration --tasks denoise --pictures house camera --sigmas 25
    python -m benchmarks.restoration --tasks inpaint --pictures house --missing 0.8
    python -m benchmarks.restoration --tasks colour counts --pictures astronaut

The tasks are white noise (``denoise``), missing pixels (``inpaint``), noise of coloured pictures whose channels are
restored jointly and one by one (``colour``), and photon counts (``counts``). Pictures are those of scikit-image, at
256×256 pixels, and ``house/house.png`` if the environment variable MULTICAUSE_DATA names a folder that has it. Seconds
include compilation where a program is not in the cache yet. All methods but ours are told the strength of the noise.
BM3D is compared if the package bm3d is installed (``pip install 'multicause[benchmark]'``).
"""

import argparse
import os
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np
from skimage import data, io, restoration, transform

from multicause.restoration import denoise_image, inpaint_image
from multicause.restoration.counts import expected_counts, stabilize_counts

try:
    import bm3d
except ImportError:
    bm3d = None

PICTURES = ("camera", "astronaut", "chelsea", "coffee", "coins", "rocket", "brick", "immunohistochemistry")
SIDE, WHITE = 256, 255.0
GREY = (0.299, 0.587, 0.114)
# The noise that BM3D is told first and last when it fills pixels in, and how often it is run.
LEVELS_OF_FILLING, N_FILLINGS = (40.0, 3.0), 12


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--tasks", nargs="*", choices=sorted(TASKS), default=list(TASKS))
    parser.add_argument("--pictures", nargs="*", default=["house", *PICTURES])
    parser.add_argument("--sigmas", nargs="*", type=float, default=[15, 25, 50])
    parser.add_argument("--missing", nargs="*", type=float, default=[0.5, 0.8])
    parser.add_argument("--peaks", nargs="*", type=float, default=[5, 30], help="expected counts of white")
    words = parser.parse_args()
    if bm3d is None:
        print("bm3d is not installed; its columns are empty.")
    for task in words.tasks:
        TASKS[task](words)


def compare_denoising(words: argparse.Namespace) -> None:
    """Grey pictures with white noise."""
    print(f"\n{'picture':<22}{'sigma':>6}{'ours':>8}{'bm3d':>8}{'nlm':>8}{'wavelet':>9}{'seconds':>9}")
    for sigma in words.sigmas:
        rows = []
        for name, clean in grey_pictures(words.pictures):
            noisy = with_noise(clean, sigma)
            restored, seconds = timed(denoise_image, noisy)
            nlm = restoration.denoise_nl_means(
                noisy, h=0.8 * sigma, sigma=sigma, patch_size=5, patch_distance=6, fast_mode=True
            )
            wavelet = WHITE * restoration.denoise_wavelet(noisy / WHITE, sigma=sigma / WHITE, rescale_sigma=True)
            others = (by_bm3d(noisy, sigma), nlm, wavelet)
            rows.append((psnr(restored, clean), *(psnr(each, clean) for each in others), seconds))
            show(name, sigma, rows[-1])
        show("mean", sigma, np.mean(rows, axis=0))


def compare_inpainting(words: argparse.Namespace) -> None:
    """Grey pictures of which scattered pixels are missing."""
    print(f"\n{'picture':<22}{'missing':>8}{'ours':>8}{'biharmonic':>12}{'bm3d':>8}{'seconds':>9}")
    for share in words.missing:
        for name, clean in grey_pictures(words.pictures):
            lost = np.random.default_rng(0).uniform(size=clean.shape) < share
            restored, seconds = timed(inpaint_image, clean, lost)
            smooth = restoration.inpaint_biharmonic(np.where(lost, 0, clean), lost)
            ours, biharmonic, filled = (
                psnr(each, clean) for each in (restored, smooth, fill_by_bm3d(clean, lost, smooth))
            )
            print(f"{name:<22}{share:>8.0%}{ours:>8.2f}{biharmonic:>12.2f}{filled:>8.2f}{seconds:>9.1f}", flush=True)


def compare_colours(words: argparse.Namespace) -> None:
    """Coloured pictures with white noise, whose channels are restored jointly, as by default, or one by one."""
    print(f"\n{'picture':<22}{'sigma':>6}{'jointly':>9}{'channels':>10}{'bm3d':>8}{'seconds':>9}")
    for sigma in words.sigmas:
        for name in words.pictures:
            clean = picture(name, colour=True)
            if clean is None or clean.ndim != 3:
                continue
            noisy = with_noise(clean, sigma)
            restored, seconds = timed(denoise_image, noisy)
            apart = np.stack([denoise_image(noisy[..., c], random_state=0) for c in range(3)], axis=2)
            jointly, channels, other = (psnr(each, clean) for each in (restored, apart, by_bm3d(noisy, sigma)))
            print(f"{name:<22}{sigma:>6g}{jointly:>9.2f}{channels:>10.2f}{other:>8.2f}{seconds:>9.1f}", flush=True)


def compare_counts(words: argparse.Namespace) -> None:
    """Photon counts, beside BM3D of counts after Anscombe's transform, with its unbiased inverse."""
    print(f"\n{'picture':<22}{'peak':>6}{'ours':>8}{'anscombe + bm3d':>17}{'seconds':>9}")
    for peak in words.peaks:
        for name, clean in grey_pictures(words.pictures):
            counts = np.random.default_rng(0).poisson(clean * (peak / WHITE)).astype(float)
            restored, seconds = timed(denoise_image, counts, noise="poisson")
            other = expected_counts(by_bm3d(stabilize_counts(counts), 1.0))
            ours, bm3d_psnr = (psnr(each * (WHITE / peak), clean) for each in (restored, other))
            print(f"{name:<22}{peak:>6g}{ours:>8.2f}{bm3d_psnr:>17.2f}{seconds:>9.1f}", flush=True)


TASKS = {
    "denoise": compare_denoising,
    "inpaint": compare_inpainting,
    "colour": compare_colours,
    "counts": compare_counts,
}


def timed(function: Callable[..., np.ndarray], *arguments: np.ndarray, **settings: str) -> tuple[np.ndarray, float]:
    """Return what the function returns with a fixed seed, and its seconds."""
    begin = time.perf_counter()
    return function(*arguments, random_state=0, **settings), time.perf_counter() - begin


def with_noise(clean: np.ndarray, sigma: float) -> np.ndarray:
    return clean + sigma * np.random.default_rng(0).normal(size=clean.shape)


def by_bm3d(noisy: np.ndarray, sigma: float) -> np.ndarray:
    """Return a picture denoised by BM3D, or one of NaN where it is not installed."""
    if bm3d is None:
        return np.full(noisy.shape, np.nan)
    return np.asarray(bm3d.bm3d(noisy, sigma) if noisy.ndim == 2 else bm3d.bm3d_rgb(noisy, sigma))


def fill_by_bm3d(clean: np.ndarray, lost: np.ndarray, smooth: np.ndarray) -> np.ndarray:
    """Return a picture whose missing pixels are replaced again and again by those that BM3D restores.

    The noise that BM3D is told decreases, so that ever finer details are filled in (after Danielyan, Katkovnik &
    Egiazarian 2012).
    """
    filled = smooth
    for sigma in np.geomspace(*LEVELS_OF_FILLING, N_FILLINGS):
        filled = np.where(lost, by_bm3d(filled, float(sigma)), clean)
    return filled


def show(name: str, sigma: float, values: Iterable[float]) -> None:
    ours, other, nlm, wavelet, seconds = values
    print(f"{name:<22}{sigma:>6g}{ours:>8.2f}{other:>8.2f}{nlm:>8.2f}{wavelet:>9.2f}{seconds:>9.1f}", flush=True)


def grey_pictures(names: Iterable[str]) -> Iterator[tuple[str, np.ndarray]]:
    return ((name, image) for name in names if (image := picture(name)) is not None)


def picture(name: str, colour: bool = False) -> np.ndarray | None:
    """Return a picture between 0 and 255, grey unless asked for its colours; None where there is none of that name."""
    if name == "house":
        path = Path(os.environ.get("MULTICAUSE_DATA", "")) / "house" / "house.png"
        return io.imread(path).astype(float) if path.exists() else None
    image = np.asarray(getattr(data, name)(), dtype=float)
    image = image if image.ndim == 2 or colour else image[..., :3] @ np.array(GREY)
    side = min(image.shape[:2])
    top, left = ((length - side) // 2 for length in image.shape[:2])
    square = image[top : top + side, left : left + side]
    small = transform.resize(square, (SIDE, SIDE), anti_aliasing=True, order=1, preserve_range=True)
    return np.clip(np.rint(small), 0, WHITE)


def psnr(image: np.ndarray, clean: np.ndarray) -> float:
    """Return the peak signal-to-noise ratio in dB."""
    return float(10 * np.log10(WHITE**2 / np.mean((image - clean) ** 2)))


if __name__ == "__main__":
    main()
