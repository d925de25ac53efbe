"""Bars tests of MCA08 and GSN07, and phonemes: MCA₃, R-MCA₂ and the network, with the papers' or default settings.

Reliability is the share of trials in which each true cause, presented alone, makes a different single cause most
probable (MCA08 §6.5). Trials run in parallel (:func:`multicause.fit_trials`).
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from scipy.stats import binomtest, fisher_exact
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from multicause import MaximalCauses, RestrictedMaximalCauses, SoftmaxNetwork, fit_trials
from multicause.annealing import ConditionalCooling, LinearCooling
from multicause.app.experiments.ebm01_separation import save_picture
from multicause.app.experiments.table import Line
from multicause.combinations import Maximum
from multicause.datasets import make_bars, make_patches, make_phoneme_mixtures
from multicause.datasets.files import read_image, stored
from multicause.metrics import recovered_causes
from multicause.plotting import draw_images
from multicause.posteriors import Truncated

SETTINGS = ("paper", "default")
FIRST_SEED = 1000
# A share is significantly below the paper's if Fisher's exact test says so at this level, one-sided.
LEVEL = 0.05
DEFAULT_ASKED = 0.99
NAMES = {"mca3": "MCA₃", "rmca2": "R-MCA₂", "network": "network", "slow": "NN_slow"}
# Where the paper's six recordings are replaced by real ones, if there are any.
PHONEMES = "phonemes/wav8k/timit_*.wav"


@dataclass(frozen=True)
class Test:
    """One row of the papers' tables."""

    name: str
    n_components: int
    paper: dict[str, float]  # reliability by algorithm
    n_trials: int = 25
    data: dict[str, Any] = field(default_factory=dict)
    temperatures: dict[str, float] = field(default_factory=dict)  # where they are not those of all bars tests
    start: str = "random"  # of networks: flat, as in MCA08 appendix E.1
    beaten: bool = True  # whether default settings must be better than the paper's results

    def make(self, seed: int) -> Any:
        """Generate the data of one trial."""
        if self.name == "phonemes":
            waveforms = PHONEMES if stored(str(Path(PHONEMES).parent)) else None
            return make_phoneme_mixtures(500, waveforms=waveforms, random_state=seed)
        return make_bars(**{"n_samples": 500, "random_state": seed} | self.data)


TESTS = (
    Test("standard, Poisson noise", 10, {"mca3": 0.90, "rmca2": 0.98, "network": 1.0}, 100, {"noise": "poisson"}),
    Test("standard", 10, {"mca3": 0.81, "rmca2": 0.96, "network": 1.0}, 100),
    Test("standard, H = 12", 12, {"mca3": 1.0, "rmca2": 1.0, "network": 1.0}, 100),
    Test("three bars on average, H = 20", 20, {"mca3": 0.92, "rmca2": 0.96, "network": 1.0}, 25, {"activity": 0.3}),
    Test("unequal, γ = 0.5, H = 20", 20, {"mca3": 1.0}, 25, {"kind": "unequal", "imbalance": 0.5}),
    Test(
        "unequal, γ = 0.6, H = 20",
        20,
        {"mca3": 0.88, "rmca2": 0.96, "network": 1.0},
        25,
        {"kind": "unequal", "imbalance": 0.6},
    ),
    Test("widths, H = 12", 12, {"mca3": 0.84, "rmca2": 1.0, "network": 1.0}, 25, {"kind": "widths"}),
    Test(
        "overlapping 9×9, H = 32, N = 400",
        32,
        {"mca3": 1.0, "rmca2": 1.0, "network": 0.96},
        25,
        {"kind": "overlapping", "n_samples": 400},
    ),
    Test(
        "short bars 3×3, H = 24",
        24,
        {"mca3": 1.0, "rmca2": 1.0, "network": 1.0},
        25,
        {"kind": "short"},
        {"network": 3.0},
    ),
    Test(
        "8×8, four bars on average, H = 32, N = 1000",
        32,
        {"mca3": 0.80, "rmca2": 0.76, "network": 1.0},
        25,
        {"size": 8, "activity": 0.25, "n_samples": 1000},
    ),
    Test(
        "two bars and more, Poisson noise", 10, {"mca3": 0.69}, 100, {"min_active": 2, "noise": "poisson"}, beaten=False
    ),
    Test("two bars and more", 10, {"mca3": 0.37}, 100, {"min_active": 2}, beaten=False),
    Test("intensities and widths (GSN07)", 6, {"slow": 0.96}, 100, {"kind": "intensities", "noise": "poisson"}),
    Test(
        "phonemes",
        12,
        {"mca3": 0.84, "rmca2": 1.0, "network": 1.0},
        25,
        temperatures={"mca3": 70.0, "rmca2": 100.0, "network": 70.0},
        start="mean",  # from flat weights networks miss a phoneme in some trials
    ),
)


def paper_model(algorithm: str, test: Test, n_features: int) -> Any:
    """Return an algorithm with the settings of MCA08 appendix E or of GSN07, except the network's start on phonemes."""
    H, D = test.n_components, n_features
    if algorithm == "mca3":
        return MaximalCauses(
            H,
            noise="poisson",
            combination=Maximum(credit="sigmoid", least_temperature=1.0),
            posterior=Truncated(3),
            annealing=ConditionalCooling(test.temperatures.get("mca3", 0.4 * D + 1), final=1.5),
            activity=1 / H,
            max_iter=2000,
        )
    restricted: dict[str, Any] = {"total": 2.0 * D, "activity": 2 / H}
    if algorithm == "rmca2":
        start = test.temperatures.get("rmca2", 0.7 * D + 1)
        return RestrictedMaximalCauses(H, annealing=ConditionalCooling(start, final=1.5), max_iter=2000, **restricted)
    if algorithm == "network":
        temperature = test.temperatures.get("network", 16.0)
        return SoftmaxNetwork(
            H, temperature=temperature, component_noise=0.02, init=test.start, max_iter=2000, **restricted
        )
    cooling = LinearCooling(18.0, n_iter=150, hold=1 / 3, settle=0.0)
    return SoftmaxNetwork(
        H,
        annealing=cooling,
        learning_rate=0.1,
        component_noise=0.0,
        max_iter=150,
        n_init=1,
        hold=1,
        init="random",
        **restricted,
    )


def default_model(algorithm: str, test: Test) -> Any:
    """Return an algorithm with default settings, given the number of causes and the noise, if there is any."""
    if algorithm == "mca3":
        return MaximalCauses(test.n_components, noise=test.data.get("noise") or "gaussian")
    if algorithm == "rmca2":
        return RestrictedMaximalCauses(test.n_components)
    return SoftmaxNetwork(test.n_components)


def fitted(test: Test, algorithm: str, n_trials: int, setting: str = "paper", jobs: int = 1) -> tuple[list, list]:
    """Return the fitted models of all trials, and their data."""
    sets = [test.make(FIRST_SEED + t) for t in range(n_trials)]
    paper = setting == "paper"
    model = paper_model(algorithm, test, sets[0].data.shape[1]) if paper else default_model(algorithm, test)
    X = [each.data for each in sets]
    if isinstance(model, SoftmaxNetwork):
        known = [each.causes for each in sets] if model.annealing is None and paper else None
        return fit_trials(model, X, random_state=FIRST_SEED, causes=known), sets
    if paper:
        return fit_trials(model, X, random_state=FIRST_SEED), sets
    return Parallel(n_jobs=jobs)(delayed(_fit)(model, x, FIRST_SEED + t) for t, x in enumerate(X)), sets


def _fit(model: Any, X: np.ndarray, seed: int) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return clone(model).set_params(random_state=seed).fit(X)


def mca08(trials: int = 0, *, setting: str = "paper", jobs: int = 1) -> Iterator[Line]:
    """Yield the whole table as it is computed.

    ``trials`` limits the trials of a row, 0 runs as many as the papers did.
    """
    if setting not in SETTINGS:
        raise ValueError(f"Unknown setting {setting!r}. Known: {', '.join(map(repr, SETTINGS))}.")
    return (
        line
        for test in TESTS
        if setting == "paper" or test.beaten
        for algorithm in test.paper
        for line in _lines(test, algorithm, min(trials or test.n_trials, test.n_trials), setting, jobs)
    )


def _lines(test: Test, algorithm: str, n: int, setting: str, jobs: int) -> list[Line]:
    """Return one cell of the table, and further statistics for the first row."""
    models, sets = fitted(test, algorithm, n, setting, jobs)
    n_recovered = sum(recovered_causes(m, d.causes).injective for m, d in zip(models, sets, strict=True))
    more = setting == "paper" and test is TESTS[0]
    return [_line(test, algorithm, n_recovered, n, setting), *(_recovery(algorithm, models, sets) if more else [])]


def _line(test: Test, algorithm: str, n_recovered: int, n: int, setting: str) -> Line:
    paper = test.paper[algorithm]
    interval = binomtest(n_recovered, n).proportion_ci(0.95)
    measured = f"{n_recovered} of {n} ({interval.low:.0%}–{interval.high:.0%})"
    if setting == "default":
        reached = n_recovered >= int(np.floor(DEFAULT_ASKED * n))
        return Line(
            f"{test.name}: {type(default_model(algorithm, test)).__name__}", f"{DEFAULT_ASKED:.0%}", measured, reached
        )
    theirs = round(paper * test.n_trials)
    table = [[n_recovered, n - n_recovered], [theirs, test.n_trials - theirs]]
    below = fisher_exact(table, alternative="less").pvalue < LEVEL
    return Line(f"{test.name}: {NAMES[algorithm]}", f"{paper:.0%} of {test.n_trials}", measured, not below)


def _recovery(algorithm: str, models: list, sets: list) -> list[Line]:
    """Return the statistics of MCA08 §6.4 on weights, activities and learning times, for trials that found all bars."""
    name = NAMES[algorithm]
    if algorithm == "network":
        times = np.array([model.n_learned_ for model in models])
        share = float(np.mean(times < 1000))
        return [Line(f"{name}: trials that need fewer than 1000 presentations", "most", f"{share:.0%}", share > 0.5)]
    bars, dark, errors = [], [], []
    for model, data in zip(models, sets, strict=True):
        recovery = recovered_causes(model, data.causes)
        if not recovery.injective:
            continue
        W = model.components_[recovery.mapping]
        bars.append(W[data.causes > 0])
        dark.append(W[data.causes == 0])
        errors.append(np.abs(model.activity_[recovery.mapping] - data.states.mean(axis=0)).mean())
    if not bars:
        return []
    pixels, background = np.concatenate(bars), np.concatenate(dark)
    near = abs(pixels.mean() - 10) < 0.1
    measured = f"{pixels.mean():.2f} ± {pixels.std():.2f}"
    if algorithm == "rmca2":
        return [
            Line(f"{name}: bar pixels", "10.0 ± 0.8", measured, bool(near and pixels.std() < 0.85)),
            Line(f"{name}: largest background", "< 1e-20", f"{background.max():.1e}", bool(background.max() < 1e-20)),
        ]
    error = float(np.mean(errors))
    return [
        Line(f"{name}: bar pixels", "10.0 ± 0.5", measured, bool(near and pixels.std() < 0.55)),
        Line(
            f"{name}: background",
            "0.05 ± 0.02",
            f"{background.mean():.3f} ± {background.std():.3f}",
            bool(0.04 < background.mean() < 0.06 and background.std() < 0.03),
        ),
        Line(f"{name}: error of π", "0.006", f"{error:.4f}", error < 0.0065),
    ]


def patches(trials: int = 1, *, setting: str = "paper", jobs: int = 1) -> list[Line]:
    """Fit R-MCA₂ to 5000 patches of an image of grass (MCA08 §6.9 and figure 12); draw fields and generated patches."""
    path = stored("vanhateren/vanhateren_grass.npz")
    image = read_image(path) if path else None
    if image is not None:  # the paper's segment, at its resolution
        segment = image[-500:, :500].reshape(250, 2, 250, 2)
        image = segment.mean(axis=(1, 3))
    data = make_patches(image, 5000, shape=(10, 10), random_state=FIRST_SEED)
    model = RestrictedMaximalCauses(
        50, total=2.0 * 100, annealing=ConditionalCooling(4.0), max_iter=2000, random_state=FIRST_SEED
    )
    started = perf_counter()
    model = _fit(model, data.data, FIRST_SEED)
    seconds = perf_counter() - started
    rows, _ = model.sample(50, random_state=FIRST_SEED)
    fields = model.components_
    shown = fields / fields.max(axis=1, keepdims=True)
    structured = fields.max(axis=1) > 2 * fields.mean(axis=1)

    def draw(plt: Any) -> Any:
        figure, axes = plt.subplots(1, 3, figsize=(12, 4.4), layout="constrained")
        pictures = (data.data[:50], shown, rows)
        titles = ("patches", "fields (R-MCA₂, H = 50)", "generated patches")
        for axis, images, title in zip(axes, pictures, titles, strict=True):
            scaled = images / np.maximum(images.max(axis=1, keepdims=True), 1e-12)
            draw_images(axis, scaled, (10, 10), columns=10, title=title)
        return figure

    return [
        Line(f"{model.n_iter_} iterations, outcome {model.outcome_}", "run to the end", f"{seconds:.1f} s", True),
        Line(
            "fields with structure (peak above twice the mean)",
            "a large number",
            f"{structured.sum()} of {len(fields)}",
            structured.mean() > 0.5,
        ),
        save_picture("mca08_patches", draw),
    ]
