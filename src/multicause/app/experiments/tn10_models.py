"""TN10 on small data: clusters (figures 10.1, 10.2), a noisy sensor (10.3), planted sources, and binary bars."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.decomposition import FastICA
from sklearn.exceptions import ConvergenceWarning

from multicause import FactorAnalysis, HelmholtzMachine, IndependentComponents, MixtureOfGaussians, PrincipalComponents
from multicause.app.experiments.table import Line
from multicause.datasets import make_bars
from multicause.metrics import amari_distance, found_causes
from multicause.updates.wake_sleep import WakeSleep

OUT = Path("out/reproduce")
SETTINGS = ("default", "quick")
# Part of all passes over the bars that the setting "quick" makes.
QUICK_PASSES = 0.5
# Centres of the two neurons of figure 10.1, their spread, and an initial guess.
CENTRES, SPREAD = np.array([[0.0, 1.0], [1.0, 0.0]]), 0.35
GUESS, GUESSED_SPREAD = np.array([[0.2, -0.4], [0.9, 0.9]]), 0.5


def is_quick(setting: str) -> bool:
    """Return whether an experiment should learn only briefly; raise ValueError for unknown settings."""
    if setting not in SETTINGS:
        raise ValueError(f"Unknown setting {setting!r}. Known: {', '.join(map(repr, SETTINGS))}.")
    return setting == "quick"


def figure(rows: int, columns: int, size: tuple[float, float]) -> tuple[Any, Any]:
    """Create a figure that is drawn into a file."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    return plt.subplots(rows, columns, figsize=size, layout="constrained", squeeze=False)


def save(drawn: Any, name: str) -> Line:
    """Write a picture, and return a line with its path."""
    from matplotlib import pyplot as plt

    OUT.mkdir(parents=True, exist_ok=True)
    path = OUT / f"{name}.png"
    drawn.savefig(path, dpi=120)
    plt.close(drawn)
    return Line("picture", "", str(path), True)


def clustering(trials: int = 1, *, setting: str = "default", jobs: int = 1) -> list[Line]:
    """Draw figures 10.1 and 10.2: 40 points of two clusters, the initial guess, some steps of EM, and the result."""
    is_quick(setting)
    random = np.random.RandomState(10)
    X = np.concatenate([random.normal(centre, SPREAD, (20, 2)) for centre in CENTRES])
    models = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for steps in (0, 1, 3, 8, 500):
            learn: tuple[str, ...] = ("components", "activity", "noise") if steps else ()
            models.append(
                MixtureOfGaussians(2, init=GUESS, noise_scale=GUESSED_SPREAD, learn=learn, max_iter=max(steps, 1)).fit(
                    X
                )
            )
    drawn, axes = figure(2, 3, (10, 6.6))
    _cloud(axes[0, 0], X, "10.1A: data")
    for ax, model, title in ((axes[0, 1], models[0], "10.1B: first guess"), (axes[0, 2], models[-1], "10.1C: learned")):
        _cloud(ax, model.sample(40, random_state=0)[0], title + ", and its samples")
        _circles(ax, model)
    for ax, model, steps in zip(axes[1], models[1:4], (1, 3, 8), strict=True):
        _circles(ax, model)
        chances = model.predict_proba(X)[:, 0]
        for point, chance in zip(X, chances, strict=True):
            ax.text(*point, "A" if chance > 0.5 else "B", fontsize=4 + 12 * abs(chance - 0.5), ha="center")
        ax.set(xlim=(-1.2, 2.2), ylim=(-1.2, 2.2), aspect="equal", title=f"10.2: after {steps} steps of EM")
    final = models[-1]
    error = max(np.linalg.norm(final.components_ - centre, axis=1).min() for centre in CENTRES)
    bounds = ", ".join(f"{model.lower_bound_:.2f}" for model in models)
    return [
        Line("fig. 10.1: distance of means from the true ones", "< 0.25", f"{error:.2f}", error < 0.25),
        Line("fig. 10.2: log-likelihood after 0, 1, 3, 8 steps and at the end", "rises", bounds, _rises(models)),
        save(drawn, "tn10_1_clustering"),
    ]


def _rises(models: list[Any]) -> bool:
    return bool((np.diff([model.lower_bound_ for model in models]) > 0).all())


def _cloud(ax: Any, points: np.ndarray, title: str) -> None:
    ax.plot(*points.T, "x", color="0.3")
    ax.set(xlim=(-1.2, 2.2), ylim=(-1.2, 2.2), aspect="equal", title=title)


def _circles(ax: Any, model: Any) -> None:
    """Draw means, and circles of twice the standard deviation."""
    from matplotlib.patches import Circle

    for name, centre, variance in zip("AB", model.components_, model.noise_variance_, strict=True):
        ax.add_patch(Circle(centre, 2 * np.sqrt(variance), fill=False, color="C0"))
        ax.text(*centre, name, fontsize=16, color="C0", ha="center", va="center")


def factors(trials: int = 1, *, setting: str = "default", jobs: int = 1) -> list[Line]:
    """Draw figure 10.3: one cause seen by three sensors, with equal noise and with one much noisier sensor."""
    is_quick(setting)
    random = np.random.RandomState(0)
    cause = random.normal(size=500)
    drawn, axes = figure(2, 2, (7, 6.6))
    lines = []
    for row, deviation in zip(axes, (0.5, 3.0), strict=True):
        X = cause[:, None] + random.normal(size=(500, 3)) * [0.5, 0.5, deviation]
        found = {}
        for ax, model, name in zip(row, (FactorAnalysis(1), PrincipalComponents(1)), ("factor", "PCA"), strict=True):
            v = model.set_params(random_state=0).fit_transform(X)[:, 0]
            correlation = float(np.corrcoef(v, cause)[0, 1])
            ax.plot(cause, np.sign(correlation) * v, ".", markersize=2)
            ax.set(xlabel="true cause", ylabel="v", title=f"{name}, third sensor's noise {deviation}")
            found[name] = abs(correlation)
        noisy = deviation > 1
        lines += [
            Line(f"fig. 10.3: correlation, {name}, noise {deviation}", expected, f"{value:.3f}", reached)
            for name, value, expected, reached in (
                ("factor analysis", found["factor"], ">= 0.9", found["factor"] >= 0.9),
                (
                    "PCA",
                    found["PCA"],
                    "clearly lower" if noisy else ">= 0.9",
                    found["PCA"] < 0.8 if noisy else found["PCA"] >= 0.9,
                ),
            )
        ]
    return [*lines, save(drawn, "tn10_3_factors")]


def sources(trials: int = 1, *, setting: str = "default", jobs: int = 1) -> list[Line]:
    """Compare the Amari distance on planted sparse sources with FastICA's and picard's."""
    is_quick(setting)
    random = np.random.RandomState(0)
    A = random.normal(size=(10, 10))
    X = random.laplace(size=(5000, 10)) @ A
    ours = amari_distance(IndependentComponents(random_state=0).fit(X).components_, A)
    fast = amari_distance(FastICA(whiten="unit-variance", random_state=0, max_iter=1000).fit(X).mixing_.T, A)
    others = {"FastICA": fast}
    try:
        from picard import picard
    except ImportError:
        pass
    else:
        K, W, _ = picard(X.T, ortho=False, extended=False, tol=1e-6, random_state=0)
        others["picard"] = amari_distance(np.linalg.inv(W @ K).T, A)
    expected = ", ".join(f"{name} {value:.3f}" for name, value in others.items())
    # Two solvers stop at slightly different positions of the same maximum.
    reached = all(ours <= value + 1e-3 for value in others.values())
    return [Line("ICA: Amari distance on 10 planted sources", f"<= {expected}", f"{ours:.3f}", reached)]


def bars(trials: int = 10, *, setting: str = "default", jobs: int = 1) -> Iterator[Line]:
    """Run the Helmholtz machine on binary bars: plain wake-sleep, and the default with non-negative weights."""
    return _bars(trials, QUICK_PASSES if is_quick(setting) else 1.0)


def _bars(trials: int, part_of_passes: float) -> Iterator[Line]:
    data = make_bars(1000, value=1.0, noise=None, random_state=0)
    X = data.data.astype(np.float32)
    recipes = {
        "plain wake–sleep": (10, WakeSleep(n_particles=1), 1, 200),
        "the same, best of 4 starts": (10, WakeSleep(n_particles=1), 4, 200),
        "10 particles, G ≥ 0, 15 causes, best of 4 starts": (15, WakeSleep(nonnegative=True), 4, 100),
    }
    model = None
    for name, (n_components, update, n_init, max_iter) in recipes.items():
        found = []
        for seed in range(trials):
            model = HelmholtzMachine(
                n_components,
                update=update,
                n_init=n_init,
                max_iter=int(part_of_passes * max_iter),
                tol=0,
                random_state=seed,
            )
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                model.fit(X)
            projective = model.inverse_transform(np.eye(n_components))
            shown = found_causes(projective, data.causes) | found_causes(model.receptive_fields_, data.causes)
            found.append(int(shown.sum()))
        every = sum(count == 10 for count in found)
        last = name == list(recipes)[-1]
        yield Line(
            f"Helmholtz machine, {name}: runs with all 10 bars (mean number of bars)",
            f">= {round(0.8 * trials)} of {trials}" if last else "for comparison",
            f"{every} ({np.mean(found):.1f})",
            every >= 0.8 * trials if last else True,
        )
    assert model is not None
    from multicause.plotting import draw_images

    drawn, axes = figure(4, 1, (7, 8))
    draw_images(axes[0, 0], X[:20], (5, 5), title="data: 20 of 1000 images")
    draw_images(axes[1, 0], model.inverse_transform(np.eye(15)), (5, 5), columns=15, title="projective fields")
    draw_images(axes[2, 0], model.receptive_fields_, (5, 5), columns=15, title="receptive fields (recognition weights)")
    draw_images(axes[3, 0], model.sample(20, random_state=0)[0], (5, 5), title="fantasies")
    yield save(drawn, "tn10_8_helmholtz_machine")
