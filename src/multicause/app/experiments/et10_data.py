"""ET10 on digits, image patches and speech (its §4.1.2, §4.2.2 and §4.3.2), with its settings.

Data are read from the folder given by the environment variable MULTICAUSE_DATA: ``mnist/mnist_test.npz``,
``vanhateren/vanhateren_grass.npz``, ``timit_sample/timit_sa2_16spk.npz``. Without it, digits and a photograph of
scikit-learn and a synthetic sound are used instead.
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.decomposition import NMF
from sklearn.exceptions import ConvergenceWarning

from multicause import LinearCauses, MaximalCauses, NonnegativeCauses
from multicause.annealing import LinearCooling
from multicause.app.experiments.table import Line
from multicause.datasets import make_patches
from multicause.datasets.files import read_image, stored
from multicause.posteriors import Preselected
from multicause.priors import Bernoulli

OUT = Path("out/reproduce")
# A cause whose largest weight is below this fraction of the largest of all is invisible in a picture.
VISIBLE = 0.05


def _fit(model: Any, X: np.ndarray) -> float:
    """Fit a model and return the time in seconds, including compilation."""
    started = perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X)
    return perf_counter() - started


def _draw(name: str, components: np.ndarray, image_shape: tuple[int, int] | None) -> Path:
    """Draw the components as images or as curves, and return the path of the picture."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    from multicause.plotting import draw_images

    OUT.mkdir(parents=True, exist_ok=True)
    path = OUT / f"{name}.png"
    if image_shape is not None:
        figure, axes = plt.subplots(figsize=(8, 8), layout="constrained")
        draw_images(axes, components, image_shape, title=f"{name}: {len(components)} components")
    else:
        figure, grid = plt.subplots(20, 10, figsize=(10, 12), layout="constrained")
        for axes, component in zip(grid.flat, components, strict=False):
            axes.plot(component, linewidth=0.6)
            axes.set_axis_off()
    figure.savefig(path, dpi=120)
    plt.close(figure)
    return path


def _common(name: str, model: Any, seconds: float, image_shape: tuple[int, int] | None, n_cooling: int) -> list[Line]:
    """Return the lines that all three experiments report; cooling takes ``n_cooling`` iterations."""
    components = model.components_
    seen = np.abs(components).max(axis=1) > VISIBLE * np.abs(components).max()
    finite = bool(np.isfinite(components).all())
    path = _draw(name, components, image_shape)
    after, last = model.lower_bounds_[min(n_cooling, model.n_iter_ - 1)], model.lower_bound_
    return [
        Line(f"{model.n_iter_} iterations", "run to the end", f"{seconds:.1f} s", finite),
        Line("components that are seen", "most", f"{seen.sum()} of {len(seen)}", seen.mean() > 0.5),
        Line("bound per row, after cooling and at the end", "rises", f"{after:.2f}, {last:.2f}", last >= after),
        Line("picture", "", str(path), True),
    ]


def _share(setting: str) -> float:
    """Return the share of the paper's iterations, and of its patches, that a setting runs."""
    shares = {"paper": 1.0, "quick": 0.3}
    if setting not in shares:
        raise ValueError(f"Unknown setting {setting!r}. Known: {', '.join(map(repr, shares))}.")
    return shares[setting]


def digits(trials: int = 1, *, setting: str = "paper", jobs: int = 1) -> list[Line]:
    """Run ET-NMF with H = 12, H′ = 10, γ = 5, π = 0.3, σ = 0.73, 120 iterations, N = 1000 (§4.1.2)."""
    share = _share(setting)
    folder = stored("mnist/mnist_test.npz")
    if folder is not None:
        images = np.load(folder)["x"][:1000] / 255.0
    else:
        from sklearn.datasets import load_digits

        images = load_digits().images[:1000] / 16.0
    X, shape = images.reshape(len(images), -1).astype(np.float32), images.shape[1:]
    model = NonnegativeCauses(
        12,
        prior=Bernoulli(shared=True),
        posterior=Preselected(10, 5, singletons=False),
        annealing=LinearCooling(13.0, n_iter=int(share * 120), component_noise=0.005),
        learn=("components",),
        activity=0.3,
        noise_scale=0.73,
        max_iter=int(share * 120),
        tol=0.0,
        random_state=0,
    )
    seconds = _fit(model, X)
    error = float(np.mean((X - model.transform(X) @ model.components_) ** 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        nmf = NMF(12, init="random", max_iter=1000, random_state=0)
        standard = float(np.mean((X - nmf.fit_transform(X) @ nmf.components_) ** 2))
    lines = _common("digits", model, seconds, shape, int(share * 96))
    excess = error / standard - 1
    lines.insert(2, Line("squared error above that of NMF", "< 5 % (ET10)", f"{100 * excess:.1f} %", excess < 0.05))
    return lines


def patches(trials: int = 1, *, setting: str = "paper", jobs: int = 1) -> list[Line]:
    """Run MCA_ET with H = 100, H′ = 5, γ = 3, σ = 1, T = 4, 400 + 400 iterations, N = 40000 10×10 patches (§4.2.2)."""
    share = _share(setting)
    folder = stored("vanhateren/vanhateren_grass.npz")
    if folder is not None:
        image = read_image(folder)
        image = image[image.shape[0] // 2 - 125 :][:250, image.shape[1] // 2 - 125 :][:, :250]
    else:
        from sklearn.datasets import load_sample_image

        image = load_sample_image("flower.jpg").mean(axis=2)[100:350, 200:450]
    X = make_patches(image, int(share * 40_000), random_state=0).data.astype(np.float32)
    model = MaximalCauses(
        100,
        prior=Bernoulli(shared=True),
        posterior=Preselected(5, 3),
        annealing=LinearCooling(4.0, final=1.05, n_iter=int(share * 400), component_noise=0.01),
        learn=("components",),
        noise_scale=1.0,
        max_iter=int(share * 800),
        tol=0.0,
        random_state=0,
    )
    seconds = _fit(model, X)
    return _common("patches", model, seconds, (10, 10), int(share * 400))


def speech(trials: int = 1, *, setting: str = "paper", jobs: int = 1) -> list[Line]:
    """Run LinCA with H = 200, H′ = 10, γ = 4, π = 0.01, σ = 0.5, T = 5, 200 + 200 iterations, D = 200 (§4.3.2)."""
    share = _share(setting)
    folder = stored("timit_sample")
    if folder is not None:
        spoken = np.load(folder / "timit_sa2_16spk.npz")
        labels = json.loads((folder / "timit_sa2_labels.json").read_text())
        names = sorted((name for name in spoken.files if name.startswith("dr")), key=lambda name: name[4] != "m")[:10]
        recordings = [_without_silence(spoken[name].astype(float), labels[name]["phn"]) for name in names]
    else:
        recordings = _synthetic_sound(np.random.RandomState(0))
    scaled = [(5 * wave / np.abs(wave).max()).astype(np.float32) for wave in recordings]
    X = np.concatenate([np.lib.stride_tricks.sliding_window_view(wave, 200) for wave in scaled])
    if share < 1:
        X = X[:: round(1 / share**2)]
    model = LinearCauses(
        200,
        prior=Bernoulli(shared=True),
        posterior=Preselected(10, 4),
        annealing=LinearCooling(5.0, n_iter=int(share * 200), component_noise=0.01),
        learn=("components",),
        activity=0.01,
        noise_scale=0.5,
        max_iter=int(share * 400),
        tol=0.0,
        random_state=0,
    )
    seconds = _fit(model, X)
    return [
        Line("segments", "about 389510", str(len(X)), True),
        *_common("speech", model, seconds, None, int(share * 200)),
    ]


def _without_silence(wave: np.ndarray, phones: list[tuple[int, int, str]]) -> np.ndarray:
    """Cut the silence before and after the sentence, which TIMIT labels "h#"."""
    spoken = [(start, end) for start, end, label in phones if label != "h#"]
    return wave[spoken[0][0] : spoken[-1][1]]


def _synthetic_sound(random: np.random.RandomState) -> list[np.ndarray]:
    """Generate decaying tones at random times, at the sampling rate of speech, 16 kHz."""
    time = np.arange(4000) / 16_000
    waves = []
    for _ in range(3):
        wave = 0.01 * random.normal(size=20_000)
        for start in random.randint(0, 16_000, 60):
            tone = np.exp(-time / random.uniform(0.005, 0.05)) * np.sin(2 * np.pi * random.uniform(100, 3000) * time)
            wave[start : start + 4000] += random.uniform(0.2, 1) * tone
        waves.append(wave)
    return waves
