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

from benchmarks.restoration_pictures import damaged, psnr
from multicause import LinearCauses, TruncatedAutoencoder
from multicause.app.experiments.peers_denoising import denoised
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
    parser.add_argument("--rates", nargs="*", type=float, default=[0.005], help="learning rates")
    parser.add_argument("--init", default="linear", choices=["linear", "data"], help="initial network")
    parser.add_argument("--layers", nargs="*", type=int, default=None, help="hidden units; none for a linear decoder")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    case = damaged("denoise", arguments.picture, arguments.sigma)
    if case is None:
        raise SystemExit("House is not there: set MULTICAUSE_DATA to the folder that has house/house.png.")
    clean, noisy = (
        image[-arguments.crop :, -arguments.crop :] if arguments.crop else image for image in (case.clean, case.image)
    )
    search = Evolved(arguments.population)
    layers = None if arguments.layers is None else tuple(arguments.layers)
    settings = {
        "init": arguments.init,
        "layers": layers,
        "posterior": search,
        "max_iter": arguments.passes,
        "batch_size": arguments.batch,
    }
    models = [LinearCauses(arguments.linear, random_state=0)] if arguments.linear else []
    models += [
        TruncatedAutoencoder(size, learning_rate=rate, tol=0, random_state=0, **settings)
        for size in arguments.components
        for rate in arguments.rates
    ]
    print(
        f"{arguments.picture}, sigma {arguments.sigma:g}, {clean.shape}; noisy {psnr(noisy, clean):.2f} dB", flush=True
    )
    for model in models:
        begin = time.perf_counter()
        restored = denoised(model, noisy, arguments.patch)
        print(
            f"{type(model).__name__}({model.n_components}{described(model)}): {psnr(restored, clean):.2f} dB, "
            f"bound {model.lower_bound_:.3f}, sigma {np.sqrt(model.noise_variance_):.2f}, {model.n_iter_} iterations, "
            f"fit and reconstruction {time.perf_counter() - begin:.0f} s",
            flush=True,
        )


def described(model: LinearCauses | TruncatedAutoencoder) -> str:
    """Return settings by which autoencoders of one table differ."""
    if isinstance(model, LinearCauses):
        return ""
    return f", layers={model.layers}, learning_rate={model.learning_rate:g}"


if __name__ == "__main__":
    main()
