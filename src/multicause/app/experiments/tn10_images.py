"""TN10 on images: sparse densities (figure 10.4), fields of a sparse code (10.6), codes by wavelets (10.9–10.11)."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from multicause import SparseCoding
from multicause.app.experiments.table import Line
from multicause.app.experiments.tn10_models import figure, is_quick, save
from multicause.datasets.images import load_photographs, make_white_patches
from multicause.metrics import (
    coding_cost,
    conditional_histogram,
    decompose,
    fit_gabors,
    kurtosis,
    receptive_fields_by_dots,
    receptive_fields_by_gratings,
)
from multicause.metrics.gabors import LARGEST_ERROR
from multicause.posteriors import MostProbable
from multicause.priors import Cauchy, Gaussian, Laplace
from multicause.updates import DeltaRule

# Number of patches and of passes over them, by setting.
EFFORT = {"default": (20_000, 25), "quick": (10_000, 8)}
# Photographs are shrunk by two, so that there is structure at all frequencies that the filter passes. A low cutoff
# leaves fewer directions than the 144 units, and the surplus units become gratings.
SHRINK, CUTOFF = 2, 0.8
# Precision of the code, in grey values, and of the coarse one for the finest scale.
STEP, COARSE_STEP = 1.0, 8.0


def sparseness(trials: int = 1, *, setting: str = "default", jobs: int = 1) -> list[Line]:
    """Draw figure 10.4: three densities, with the kurtosis of samples (eq. 10.27), and responses to photographs."""
    is_quick(setting)
    import jax
    import jax.numpy as jnp

    from multicause.arrays import double_precision

    v = np.linspace(-5, 5, 401)
    drawn, axes = figure(1, 3, (11, 3.4))
    found = {}
    for part, style in ((Laplace(), "-"), (Cauchy(), "--"), (Gaussian(), ":")):
        name = type(part).__name__
        with double_precision():
            log_density = np.asarray(part.standard(jnp.asarray(v)))
            found[name] = float(kurtosis(np.asarray(part.draw(jax.random.key(0), (10**6,), jnp.float64))))
        axes[0, 1].plot(v, np.exp(log_density), style, color="k", label=name)
        axes[0, 2].plot(v, log_density, style, color="k")
    finest = decompose(_picture()).vertical[-1].ravel()
    axes[0, 0].hist(np.abs(finest), bins=np.linspace(0, 60, 61), log=True, color="0.6")
    axes[0, 0].set(title="10.4A: responses to a photograph", xlabel="size of a fine filter's output")
    axes[0, 1].set(title="10.4B: densities")
    axes[0, 1].legend(frameon=False)
    axes[0, 2].set(title="10.4C: their logarithms")
    return [
        Line("fig. 10.4: kurtosis of the Gaussian", "0", f"{found['Gaussian']:.2f}", abs(found["Gaussian"]) < 0.05),
        Line(
            "fig. 10.4: kurtosis of the double exponential",
            "3",
            f"{found['Laplace']:.2f}",
            abs(found["Laplace"] - 3) < 0.3,
        ),
        Line(
            "fig. 10.4: kurtosis of a million Cauchy numbers",
            "infinite",
            f"{found['Cauchy']:.0f}",
            found["Cauchy"] > 1e3,
        ),
        save(drawn, "tn10_4_sparseness"),
    ]


def fields(trials: int = 1, *, setting: str = "default", jobs: int = 1) -> list[Line]:
    """Draw figure 10.6: 144 units on 12×12 patches of whitened photographs; fields by dots and by gratings."""
    from multicause.plotting import draw_images

    is_quick(setting)
    n_patches, passes = EFFORT[setting]
    X = make_white_patches(n_patches, shrink=SHRINK, cutoff=CUTOFF, random_state=0).astype(np.float32)
    model = SparseCoding(
        144,
        prior=Cauchy(scale=0.3),
        noise_scale=0.4,
        posterior=MostProbable(tol=1e-2, max_steps=60),
        update=DeltaRule(rate=1.0, variance=1.0),
        batch_size=100,
        max_iter=passes,
        tol=0,
        random_state=0,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X)
    G = model.projective_fields_ / np.abs(model.projective_fields_).max(axis=1, keepdims=True)
    gabors = fit_gabors(G, (12, 12))
    share, fitted = float(gabors.localized.mean()), float((gabors.error < LARGEST_ERROR).mean())
    sparse = float(np.median(kurtosis(model.transform(X[:5000]), axis=0)))
    best = int(np.argmax((1 - gabors.error) * (np.ptp(G, axis=1) > 1)))
    views = np.stack(
        [
            G[best],
            receptive_fields_by_dots(model, contrast=3.0)[best],
            receptive_fields_by_gratings(model, (12, 12))[best],
        ]
    )
    drawn, axes = figure(1, 2, (11, 6.6))
    draw_images(axes[0, 0], G, (12, 12), columns=12, title="10.6A: projective fields")
    scaled = views / np.maximum(np.abs(views).max(axis=1, keepdims=True), 1e-12)
    draw_images(axes[0, 1], scaled, (12, 12), columns=3, title="10.6B: projective; receptive by dots, by gratings")
    alike = np.corrcoef(views)[0, 1:]
    return [
        Line(
            "fig. 10.6: units that are Gabor functions, localized inside the patch (fit_gabors)",
            ">= 80 %",
            f"{share:.0%}",
            share >= 0.8,
        ),
        Line(
            f"units of which a Gabor function leaves less than {LARGEST_ERROR:.0%}, of any size and place",
            "for comparison",
            f"{fitted:.0%}",
            True,
        ),
        Line("median kurtosis of the causes", "> 0 (sparse)", f"{sparse:.1f}", sparse > 0),
        Line(
            "fig. 10.6B: correlation of a projective field with fields by dots and gratings",
            "resemble it",
            f"{alike[0]:.2f}, {alike[1]:.2f}",
            bool((alike > 0.3).all()),
        ),
        save(drawn, "tn10_6_fields"),
    ]


def _picture() -> np.ndarray:
    """Return a photograph with edges and areas, whose size can be halved several times."""
    image = max(load_photographs(), key=lambda candidate: candidate.std())
    height, width = (16 * (side // 16) for side in image.shape)
    return image[:height, :width]


def codes(trials: int = 1, *, setting: str = "default", jobs: int = 1) -> list[Line]:
    """Draw figures 10.9–10.11: wavelets of a photograph, coding costs, and dependence of outputs."""
    is_quick(setting)
    image = _picture()
    parts = decompose(image)
    finest = np.concatenate([parts.vertical[-1].ravel(), parts.horizontal[-1].ravel()])
    filters = _draw_filters(image, finest)
    drawn, axes = figure(2, 4, (11, 6))
    axes[0, 0].imshow(image, cmap="gray")
    axes[1, 0].imshow(parts.low, cmap="gray")
    for row, outputs in zip(axes, (parts.vertical, parts.horizontal), strict=True):
        for ax, output in zip(row[1:], outputs, strict=True):
            ax.imshow(output, cmap="gray", vmin=-3 * output.std(), vmax=3 * output.std())
    for ax, title in zip(
        axes.flat, ("A: image", "B", "C", "D: vertical", "E: low-pass", "F", "G", "H: horizontal"), strict=True
    ):
        ax.set(title=title, xticks=[], yticks=[])
    decomposition = save(drawn, "tn10_10_decomposition")

    every = (parts.low, *parts.horizontal, *parts.vertical, *parts.diagonal)
    sizes = np.array([part.size for part in every])
    pixels = coding_cost(image, step=STEP)
    exact = float(sizes @ [coding_cost(part, step=STEP) for part in every] / sizes.sum())
    fine = {id(part) for part in (parts.horizontal[-1], parts.vertical[-1], parts.diagonal[-1])}
    steps = [COARSE_STEP if id(part) in fine else STEP for part in every]
    lossy = float(sizes @ [coding_cost(p, step=s) for p, s in zip(every, steps, strict=True)] / sizes.sum())

    parent = np.kron(parts.horizontal[-2], np.ones((2, 2))).ravel()
    child = parts.horizontal[-1].ravel()
    drawn, axes = figure(1, 2, (9, 4))
    table, edges = conditional_histogram(child, parent)
    extent = (edges[0], edges[-1], edges[0], edges[-1])
    axes[0, 0].imshow(table, origin="lower", cmap="gray", extent=extent, aspect="auto")
    axes[0, 0].set(title="10.11A: p[fine | coarse]", xlabel="coarse output", ylabel="fine output")
    logs = [np.log2(np.abs(values) + 1e-3) for values in (child, parent)]
    bins = np.linspace(-4, 8, 42)
    counts = np.histogram2d(logs[0], logs[1], bins=(bins, bins))[0]
    axes[0, 1].imshow(
        counts / np.maximum(counts.max(axis=0), 1), origin="lower", cmap="gray", extent=(-4, 8, -4, 8), aspect="auto"
    )
    axes[0, 1].set(title="10.11B: the same for log₂ of their sizes", xlabel="coarse", ylabel="fine")
    large = np.abs(parent) > np.quantile(np.abs(parent), 0.9)
    widening = float(child[large].std() / child[np.abs(parent) < np.median(np.abs(parent))].std())
    correlation = float(np.corrcoef(child, parent)[0, 1])
    return [
        Line(
            "fig. 10.9B: kurtosis of the finest outputs (pixels)",
            "sparse",
            f"{kurtosis(finest):.1f} ({kurtosis(image):.1f})",
            bool(kurtosis(finest) > 1),
        ),
        Line(
            "coding cost in bits per pixel: pixels, outputs",
            "outputs cheaper",
            f"{pixels:.2f}, {exact:.2f}",
            exact < pixels,
        ),
        Line("the same with a coarse code of the finest scale", "much cheaper", f"{lossy:.2f}", lossy < exact - 0.5),
        Line(
            "fig. 10.11: fine outputs vary more where coarse ones are large",
            "> 1.5 times",
            f"{widening:.1f} times",
            widening > 1.5,
        ),
        Line("their plain correlation", "roughly 0", f"{correlation:.2f}", abs(correlation) < 0.2),
        filters,
        decomposition,
        save(drawn, "tn10_11_bow_tie"),
    ]


def _draw_filters(image: np.ndarray, finest: np.ndarray) -> Line:
    """Draw figure 10.9: filters with their Fourier transforms, and densities of outputs and pixels."""
    import pywt

    drawn, axes = figure(1, 5, (13, 3))
    for place, (name, which) in enumerate((("vertical", 1), ("horizontal", 0))):
        empty = np.zeros((4, 4))
        impulse = empty.copy()
        impulse[2, 2] = 1
        details = (impulse, empty, empty) if which == 0 else (empty, impulse, empty)
        coefficients = [empty, details, *[(np.zeros((n, n)),) * 3 for n in (8, 16)]]
        field = pywt.waverec2(coefficients, "db4", mode="periodization")
        peak = np.unravel_index(np.abs(field).argmax(), field.shape)
        field = np.roll(field, (16 - peak[0], 16 - peak[1]), axis=(0, 1))
        axes[0, 2 * place].imshow(field, cmap="gray")
        axes[0, 2 * place + 1].imshow(np.fft.fftshift(np.abs(np.fft.fft2(field))), cmap="gray")
        axes[0, 2 * place].set(title=f"10.9A: {name} filter")
        axes[0, 2 * place + 1].set(title="its transform")
    standard = (finest - finest.mean()) / finest.std()
    bins = np.linspace(-8, 8, 81)
    for values, style, label in (
        (standard, "-", "finest outputs"),
        (np.random.RandomState(0).normal(size=10**6), "--", "Gaussian"),
        ((image - image.mean()).ravel() / image.std(), "-.", "pixels"),
    ):
        counts = np.histogram(values, bins=bins, density=True)[0]
        axes[0, 4].plot(bins[1:] - 0.1, np.log(np.where(counts > 0, counts, np.nan)), style, color="k", label=label)
    axes[0, 4].set(title="10.9B: log density")
    axes[0, 4].legend(frameon=False, fontsize=7)
    return save(drawn, "tn10_9_filters")
