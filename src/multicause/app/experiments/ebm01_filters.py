"""Overcomplete filters of speech and of natural images: EBM01 §5 and §6, figures 3 to 7.

Filters are shown in whitened space (ZCA), where a filter is a segment of sound or an image like the data. Figures of
one experiment share its model, which is stored in a file beside them.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from multicause import EnergyComponents, load
from multicause.app.experiments.ebm01_data import OUT, SEGMENT, SPEECH_RATE, patches, segments
from multicause.app.experiments.ebm01_separation import save_picture
from multicause.app.experiments.table import Line
from multicause.metrics import Gabors, fit_gabors, time_frequency_power
from multicause.samplers import Hamiltonian

SPEECH_UPDATES = {"paper": 20_000, "quick": 2000}
N_SPEECH = 200


class Images(NamedTuple):
    """Size of an experiment with images."""

    side: int
    n_components: int
    n_leapfrog: int
    n_updates: int
    learning_rate: float


# The paper does not state its number of updates. It uses a constant rate of 0.01 and says that the rate matters little;
# one that falls from three times that needs fewer updates. "small" is for one core.
IMAGES = {
    "paper": Images(16, 768, 30, 100_000, 0.03),
    "small": Images(8, 192, 20, 20_000, 0.02),
    "quick": Images(8, 96, 10, 6000, 0.02),
}
EXPECTED_GABORS = 0.8
# A spectrum has a peak if its largest value is this many times its mean.
PEAK = 5


def figure_3(trials: int = 1, *, setting: str = "paper", jobs: int = 1) -> list[Line]:
    """Draw ten filters of speech and their power spectra: five of the largest power, five others."""
    model, lines = _speech(setting)
    filters = model.whitened_components_
    power = (filters**2).sum(axis=1)
    order = np.argsort(power)[::-1]
    shown = [*order[:5], *np.random.RandomState(0).choice(order[5:], 5, replace=False)]
    frequencies = np.fft.rfftfreq(SEGMENT, 1 / SPEECH_RATE) / 1000

    def draw(plt: Any) -> Any:
        figure, grid = plt.subplots(10, 2, figsize=(6, 9), layout="constrained", sharex="col")
        for (left, right), j in zip(grid, shown, strict=True):
            left.plot(np.arange(SEGMENT) / SPEECH_RATE * 1000, filters[j], linewidth=0.8)
            right.plot(frequencies, np.abs(np.fft.rfft(filters[j])) ** 2, linewidth=0.8, color="C1")
            for axes in (left, right):
                axes.set_yticks([])
        grid[0, 0].set_title("(a) filters", fontsize=10)
        grid[0, 1].set_title("(b) power spectra", fontsize=10)
        grid[-1, 0].set_xlabel("ms")
        grid[-1, 1].set_xlabel("kHz")
        return figure

    spectra = np.abs(np.fft.rfft(filters, axis=1)) ** 2
    peaked = spectra.max(axis=1) > PEAK * spectra.mean(axis=1)
    lines.append(Line("filters whose spectrum has a peak of five times its mean", "most",
                      f"{int(peaked.sum())} of {len(filters)}", peaked.mean() > 0.5))  # fmt: skip
    return [*lines, save_picture("ebm01_fig3", draw)]


def figure_4(trials: int = 1, *, setting: str = "paper", jobs: int = 1) -> list[Line]:
    """Draw the distribution of the filters' power over time and frequency."""
    model, lines = _speech(setting)
    diagram = time_frequency_power(model.whitened_components_, sampling_rate=SPEECH_RATE)

    def draw(plt: Any) -> Any:
        figure, axes = plt.subplots(figsize=(5.5, 4), layout="constrained")
        extent = (0, SEGMENT / SPEECH_RATE * 1000, 0, SPEECH_RATE / 2000)
        picture = axes.imshow(diagram.power, origin="lower", aspect="auto", extent=extent, cmap="gray")
        axes.set(xlabel="ms", ylabel="kHz")
        axes.set_title("EBM01 figure 4: power of all filters", loc="left", fontsize=10)
        figure.colorbar(picture)
        return figure

    bandwidth = diagram.templates_in_frequency.sum(axis=1) * SPEECH_RATE / SEGMENT
    duration = diagram.templates_in_time.sum(axis=1) / SPEECH_RATE * 1000
    lines.append(Line("median duration and bandwidth at half power", "",
                      f"{np.median(duration):.1f} ms, {np.median(bandwidth):.0f} Hz", True))  # fmt: skip
    return [*lines, save_picture("ebm01_fig4", draw)]


def figure_5(trials: int = 1, *, setting: str = "paper", jobs: int = 1) -> list[Line]:
    """Draw 144 filters of natural images, ordered by spatial frequency."""
    model, gabors, lines = _images(setting)
    side = IMAGES[setting].side
    n = min(144, len(gabors.error))
    chosen = np.random.RandomState(0).choice(len(gabors.error), n, replace=False)
    chosen = chosen[np.argsort(gabors.frequency[chosen])]
    filters = model.whitened_components_[chosen]

    def draw(plt: Any) -> Any:
        from multicause.plotting import draw_images

        figure, axes = plt.subplots(figsize=(8, 8.2), layout="constrained")
        scaled = filters / np.abs(filters).max(axis=1, keepdims=True)
        draw_images(axes, scaled, (side, side), columns=12, title=f"EBM01 figure 5: {n} of {len(gabors.error)} filters")
        return figure

    return [*lines, save_picture("ebm01_fig5", draw)]


def figure_6(trials: int = 1, *, setting: str = "paper", jobs: int = 1) -> list[Line]:
    """Draw the position and size of the filters that Gabor functions describe, as bars."""
    _, gabors, lines = _images(setting)
    side = IMAGES[setting].side

    def draw(plt: Any) -> Any:
        figure, axes = plt.subplots(figsize=(5, 5), layout="constrained")
        for row, column, along, across, angle in _of_localized(gabors):
            # A bar is perpendicular to the wave, with the length and width of the envelope at one standard deviation.
            step = across * np.array([np.cos(angle), -np.sin(angle)])
            axes.plot(
                [column - step[1], column + step[1]],
                [row - step[0], row + step[0]],
                color="black",
                linewidth=min(along, 4.0),
                alpha=0.35,
                solid_capstyle="butt",
            )
        axes.set(xlim=(-0.5, side - 0.5), ylim=(side - 0.5, -0.5), aspect="equal")
        _mark_if_empty(axes, gabors.localized)
        axes.set_title(f"EBM01 figure 6: {int(gabors.localized.sum())} filters", loc="left", fontsize=10)
        return figure

    centres = np.clip(np.floor((gabors.position[gabors.localized] + 0.5) / (side / 4)), 0, 3).astype(int)
    covered = len({tuple(centre) for centre in centres})
    lines.append(Line("sixteenths of the image with a filter's centre", "all", f"{covered} of 16", covered == 16))
    return [*lines, save_picture("ebm01_fig6", draw)]


def figure_7(trials: int = 1, *, setting: str = "paper", jobs: int = 1) -> list[Line]:
    """Draw frequency and orientation of the filters, as crosses in a polar plot."""
    _, gabors, lines = _images(setting)
    good = gabors.localized

    def draw(plt: Any) -> Any:
        figure, axes = plt.subplots(figsize=(5.5, 5.5), layout="constrained", subplot_kw={"projection": "polar"})
        # For an envelope σ, the spectrum falls to one sixteenth at √(2 log 16)/(2πσ) from its peak.
        width = np.sqrt(2 * np.log(16)) / (2 * np.pi * gabors.size)
        for f, angle, (along, across) in zip(
            gabors.frequency[good], gabors.orientation[good], width[good] / 16, strict=True
        ):
            axes.plot([angle, angle], [max(f - along, 0), f + along], color="black", linewidth=0.5)
            spread = np.arctan2(across, max(f, 1e-3))
            axes.plot([angle - spread, angle + spread], [f, f], color="black", linewidth=0.5)
        axes.set_thetamax(180)
        axes.set_rmax(0.6)
        _mark_if_empty(axes, good)
        axes.set_title(f"EBM01 figure 7: {int(good.sum())} filters, cycles per pixel", fontsize=10)
        return figure

    lines += _statistics(gabors.frequency[good], gabors.orientation[good])
    return [*lines, save_picture("ebm01_fig7", draw)]


def _mark_if_empty(axes: Any, shown: np.ndarray) -> None:
    """Write into a figure without filters why it is empty."""
    if not shown.any():
        why = "No filter is described by a Gabor function;\nlearning was too short."
        axes.text(0.5, 0.5, why, transform=axes.transAxes, ha="center", va="center")


def _statistics(frequency: np.ndarray, orientation: np.ndarray) -> list[Line]:
    """Return how frequencies and orientations of Gabor functions are distributed."""
    scales, cardinal = "none", "none"
    several = mostly = False
    if len(frequency):
        low, high = np.percentile(frequency, [10, 90])
        share = float(np.mean(np.abs(np.sin(2 * orientation)) < np.sin(np.radians(30))))
        scales, several = f"{low:.2f} to {high:.2f} per pixel", bool(high > 2 * low)
        cardinal, mostly = f"{share:.0%}", share > 1 / 3
    return [
        Line("frequencies, 10th to 90th percentile", "several scales", scales, several),
        Line("within 15° of horizontal or vertical", "more than a third (chance)", cardinal, mostly),
    ]


def _of_localized(gabors: Gabors) -> np.ndarray:
    good = gabors.localized
    return np.column_stack([gabors.position[good], gabors.size[good], gabors.orientation[good]])


def _fitted(path: Path, model: EnergyComponents, X: np.ndarray) -> tuple[Any, str]:
    """Load a model from its file, or fit and store it; return it and the time of the fit, including compilation."""
    if path.exists():
        return load(path), f"kept in {path}"
    started = perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X)
    seconds = perf_counter() - started
    path.parent.mkdir(parents=True, exist_ok=True)
    model.save(path)
    return model, f"{seconds:.0f} s, {1e3 * seconds / model.n_iter_:.1f} ms an update"


def _speech(setting: str) -> tuple[Any, list[Line]]:
    """Fit 200 filters of 100 samples, 20 leapfrog steps, rate 0.05 to 0.0005 (EBM01 §5).

    The paper does not name its experts. Logistic ones need no more than one filter for each direction, and let the
    others shrink to zero (half of them here), so these have heavy tails.
    """
    if setting not in SPEECH_UPDATES:
        raise ValueError(f"Unknown setting {setting!r}. Known: {', '.join(map(repr, SPEECH_UPDATES))}.")
    name, X = segments()
    updates = SPEECH_UPDATES[setting]
    model = EnergyComponents(
        N_SPEECH,
        expert="student",
        whiten="zca",
        sampler=Hamiltonian(20),
        learning_rate=0.05,
        max_iter=updates,
        random_state=0,
    )
    model, took = _fitted(OUT / f"ebm01_{name.replace(' ', '_')}_{updates}.model", model, X)
    finite = bool(np.isfinite(model.components_).all())
    return model, [Line(f"{len(X)} segments of {name}, {model.n_iter_} updates", "run to the end", took, finite)]


def _images(setting: str) -> tuple[Any, Gabors, list[Line]]:
    """Fit 768 filters of 16×16 pixels, γ log(1 + h²), 30 leapfrog steps, decay 1e-4 (EBM01 §6)."""
    if setting not in IMAGES:
        raise ValueError(f"Unknown setting {setting!r}. Known: {', '.join(map(repr, IMAGES))}.")
    side, n_components, n_leapfrog, n_updates, rate = IMAGES[setting]
    name, X = patches(side)
    model = EnergyComponents(
        n_components,
        expert="student",
        whiten="zca",
        sampler=Hamiltonian(n_leapfrog),
        init="unit",
        learning_rate=rate,
        weight_decay=1e-4,
        max_iter=n_updates,
        random_state=0,
    )
    kept = OUT / f"ebm01_{name.replace(' ', '_')}_{side}_{n_components}_{n_updates}.model"
    model, took = _fitted(kept, model, X)
    gabors = fit_gabors(model.whitened_components_, (side, side))
    share = float(gabors.localized.mean())
    return model, gabors, [
        Line(f"{len(X)} patches of {name}, {model.n_iter_} updates", "run to the end", took,
             bool(np.isfinite(model.components_).all())),
        Line("filters that a Gabor function describes (error < 0.3, inside, size <= side/2)",
             f">= {EXPECTED_GABORS:.0%} (paper: about 87 %, by eye)",
             f"{int(gabors.localized.sum())} of {len(gabors.error)} ({share:.0%})", share >= EXPECTED_GABORS),
    ]  # fmt: skip
