"""Peak signal-to-noise ratio of a picture denoised by the truncated autoencoder and by the linear model, in dB.

    MULTICAUSE_DATA=... python -m benchmarks.autoencoder                       # House, σ = 25, 8×8 patches
    python -m benchmarks.autoencoder --picture camera --components 128 --passes 40

Both models learn from the same overlapping patches of the noisy picture, without their means, and replace each by its
posterior mean. Neither is told the noise. House is ``house/house.png`` of the folder MULTICAUSE_DATA; other pictures
are those of scikit-image, at 256×256 pixels. Seconds include compilation.
"""

import argparse
import time
import warnings

import numpy as np

from benchmarks.restoration import picture, psnr, with_noise
from multicause import LinearCauses, TruncatedAutoencoder
from multicause.posteriors import Evolved


def main() -> None:
    """Print one line for each model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--picture", default="house")
    parser.add_argument("--sigma", type=float, default=25)
    parser.add_argument("--patch", type=int, default=8)
    parser.add_argument("--crop", type=int, default=None, help="side of a part of the picture")
    parser.add_argument("--linear", type=int, default=256, help="components of the linear model")
    parser.add_argument("--components", nargs="*", type=int, default=[256, 512], help="causes of the autoencoder")
    parser.add_argument("--population", type=int, default=64)
    parser.add_argument("--passes", type=int, default=100)
    parser.add_argument("--batch", type=int, default=500)
    parser.add_argument("--rates", nargs="*", type=float, default=[0.02], help="learning rates")
    parser.add_argument("--layers", nargs="*", type=int, default=None, help="hidden units; none for a linear decoder")
    words = parser.parse_args()
    warnings.simplefilter("ignore")
    clean = picture(words.picture)
    if clean is None:
        raise SystemExit("House is not there: set MULTICAUSE_DATA to the folder that has house/house.png.")
    noisy = with_noise(clean, words.sigma)
    clean, noisy = (each[-words.crop :, -words.crop :] if words.crop else each for each in (clean, noisy))
    rows = patches_of(noisy, words.patch)
    means = rows.mean(axis=1, keepdims=True)
    search = Evolved(words.population)
    layers = None if words.layers is None else tuple(words.layers)
    settings = {"max_iter": words.passes, "batch_size": words.batch, "posterior": search, "layers": layers}
    models = [LinearCauses(words.linear, random_state=0)] if words.linear else []
    models += [
        TruncatedAutoencoder(size, learning_rate=rate, tol=0, random_state=0, **settings)
        for size in words.components
        for rate in words.rates
    ]
    print(f"{words.picture}, sigma {words.sigma:g}, {len(rows)} patches; noisy {psnr(noisy, clean):.2f} dB", flush=True)
    for model in models:
        begin = time.perf_counter()
        model.fit(rows - means)
        seconds = time.perf_counter() - begin
        restored = picture_of(model.reconstruct(rows - means) + means, noisy.shape)
        print(
            f"{type(model).__name__}({model.n_components}{described(model)}): {psnr(restored, clean):.2f} dB, "
            f"bound {model.lower_bound_:.3f}, "
            f"sigma {np.sqrt(model.noise_variance_):.2f}, {model.n_iter_} iterations, fit {seconds:.0f} s, with "
            f"reconstruction {time.perf_counter() - begin:.0f} s",
            flush=True,
        )


def described(model: LinearCauses | TruncatedAutoencoder) -> str:
    """Return settings by which autoencoders of one table differ."""
    if isinstance(model, LinearCauses):
        return ""
    return f", layers={model.layers}, learning_rate={model.learning_rate:g}"


def patches_of(image: np.ndarray, size: int) -> np.ndarray:
    """Return all patches as rows (n, size²), in single precision."""
    windows = np.lib.stride_tricks.sliding_window_view(image, (size, size))
    return windows.reshape(-1, size * size).astype(np.float32)


def picture_of(patches: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Return the picture in which each pixel is the mean of those of all patches that contain it."""
    size = int(np.sqrt(patches.shape[1]))
    height, width = shape[0] - size + 1, shape[1] - size + 1
    patches = patches.reshape(height, width, size, size)
    total, number = np.zeros(shape), np.zeros(shape)
    for i in range(size):
        for j in range(size):
            total[i : i + height, j : j + width] += patches[:, :, i, j]
            number[i : i + height, j : j + width] += 1
    return total / number


if __name__ == "__main__":
    main()
