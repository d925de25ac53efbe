"""Denoising beside BM3D, non-local means and wavelets, and inpainting beside biharmonic: peak signal-to-noise ratios.

    python -m benchmarks.restoration
    python -m benchmarks.restoration --pictures house camera --sigmas 25 --inpaint

Pictures are those of scikit-image, at 256×256 pixels, and ``house/house.png`` if the environment variable
MULTICAUSE_DATA names a folder that has it. All methods but ours are told the strength of the noise. BM3D is compared if
the package bm3d is installed (``pip install 'multicause[benchmark]'``).
"""

import argparse
import os
import time
from pathlib import Path

import numpy as np
from skimage import data, io, restoration, transform

from multicause.restoration import denoise_image, inpaint_image

PICTURES = ("camera", "astronaut", "chelsea", "coffee", "coins", "rocket", "brick", "immunohistochemistry")
SIDE, WHITE = 256, 255.0
GREY = (0.299, 0.587, 0.114)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--pictures", nargs="*", default=["house", *PICTURES])
    parser.add_argument("--sigmas", nargs="*", type=float, default=[15, 25, 50])
    parser.add_argument("--missing", nargs="*", type=float, default=[0.5, 0.8])
    parser.add_argument("--inpaint", action="store_true", help="only inpainting")
    parser.add_argument("--denoise", action="store_true", help="only denoising")
    words = parser.parse_args()
    pictures = {name: image for name in words.pictures if (image := picture(name)) is not None}
    if not words.inpaint:
        compare_denoising(pictures, words.sigmas)
    if not words.denoise:
        compare_inpainting(pictures, words.missing)


def compare_denoising(pictures: dict[str, np.ndarray], sigmas: list[float]) -> None:
    try:
        from bm3d import bm3d
    except ImportError:
        bm3d = None
        print("bm3d is not installed; its column is empty.")
    print(f"{'picture':<22}{'sigma':>6}{'ours':>8}{'bm3d':>8}{'nlm':>8}{'wavelet':>9}{'seconds':>9}")
    for sigma in sigmas:
        rows = []
        for name, clean in pictures.items():
            noisy = clean + sigma * np.random.default_rng(0).normal(size=clean.shape)
            begin = time.perf_counter()
            ours = psnr(denoise_image(noisy, random_state=0), clean)
            seconds = time.perf_counter() - begin
            nlm = restoration.denoise_nl_means(
                noisy, h=0.8 * sigma, sigma=sigma, patch_size=5, patch_distance=6, fast_mode=True
            )
            wavelet = WHITE * restoration.denoise_wavelet(noisy / WHITE, sigma=sigma / WHITE, rescale_sigma=True)
            others = (
                np.nan if bm3d is None else psnr(bm3d(noisy, sigma), clean),
                psnr(nlm, clean),
                psnr(wavelet, clean),
            )
            rows.append((ours, *others, seconds))
            show(name, sigma, rows[-1])
        show("mean", sigma, tuple(np.mean(rows, axis=0)))


def compare_inpainting(pictures: dict[str, np.ndarray], shares: list[float]) -> None:
    print(f"{'picture':<22}{'missing':>8}{'ours':>8}{'biharmonic':>12}{'seconds':>9}")
    for share in shares:
        for name, clean in pictures.items():
            lost = np.random.default_rng(0).uniform(size=clean.shape) < share
            begin = time.perf_counter()
            ours = psnr(inpaint_image(clean, lost, random_state=0), clean)
            seconds = time.perf_counter() - begin
            biharmonic = psnr(restoration.inpaint_biharmonic(np.where(lost, 0, clean), lost), clean)
            print(f"{name:<22}{share:>8.0%}{ours:>8.2f}{biharmonic:>12.2f}{seconds:>9.1f}", flush=True)


def show(name: str, sigma: float, values: tuple[float, ...]) -> None:
    ours, bm3d, nlm, wavelet, seconds = values
    print(f"{name:<22}{sigma:>6g}{ours:>8.2f}{bm3d:>8.2f}{nlm:>8.2f}{wavelet:>9.2f}{seconds:>9.1f}", flush=True)


def picture(name: str) -> np.ndarray | None:
    """Return a grey picture between 0 and 255, or None where there is none of that name."""
    if name == "house":
        path = Path(os.environ.get("MULTICAUSE_DATA", "")) / "house" / "house.png"
        return io.imread(path).astype(float) if path.exists() else None
    image = np.asarray(getattr(data, name)(), dtype=float)
    image = image if image.ndim == 2 else image[..., :3] @ np.array(GREY)
    side = min(image.shape)
    top, left = ((length - side) // 2 for length in image.shape)
    square = image[top : top + side, left : left + side]
    small = transform.resize(square, (SIDE, SIDE), anti_aliasing=True, order=1, preserve_range=True)
    return np.clip(np.rint(small), 0, WHITE)


def psnr(image: np.ndarray, clean: np.ndarray) -> float:
    """Return the peak signal-to-noise ratio in dB."""
    return float(10 * np.log10(WHITE**2 / np.mean((image - clean) ** 2)))


if __name__ == "__main__":
    main()
