"""Command ``multicause demo``: find bars that occlude each other in noisy images, and the edges of a photograph."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import Annotated, Any

import typer

from multicause.app.cli.options import Json, Seed, Verbose
from multicause.app.cli.output import Output, command
from multicause.app.cli.quitting import fits_may_stop


def demo(
    out: Annotated[Path, typer.Option(help="Folder for picture and report; created if it does not exist.")] = Path(
        "out/demo"
    ),
    seed: Seed = 0,
    json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Find the hidden bars in 500 noisy images and the edges of a photograph; draw both, and write a report.

    Example:
      multicause demo --out out/demo
    """
    with command(json, verbose) as output:
        from multicause.app.writing import parents_of

        with parents_of(out / "report.html"):
            output.result(out=str(out), **run_demo(output, out, seed), **show_photograph(output, out, seed))


def run_demo(output: Output, out: Path, seed: int) -> dict[str, Any]:
    """Run the demo, print a table, and write ``bars.png`` and ``report.html`` into the folder ``out``."""
    import numpy as np

    from multicause import MaximalCauses
    from multicause.app.cli.progress import FitProgress
    from multicause.app.experiments.bars_reference import generating_bound
    from multicause.app.report import write_report
    from multicause.datasets import make_bars
    from multicause.metrics import recovered_causes

    bars = make_bars(500, noise="poisson", random_state=seed)
    output.say(
        "500 images of 5×5 pixels. Each shows about two of ten bars, which occlude each other, under Poisson noise.\n"
        "MaximalCauses only knows the number of causes."
    )
    model = MaximalCauses(10, noise="poisson", random_state=seed)
    if output.console.is_terminal and not output.as_json:
        model.set_callbacks(FitProgress(output.console))
    started = perf_counter()
    with fits_may_stop():
        model.fit(bars.data)
    seconds = perf_counter() - started

    recovery, reference = recovered_causes(model, bars.causes), generating_bound(model, bars)
    lit = model.components_[recovery.mapping][bars.causes > 0]
    error = float(np.abs(model.activity_[recovery.mapping] - bars.states.mean(axis=0)).mean())
    lines = [
        ["bars with their own cause", str(recovery.n_found), str(len(bars.causes))],
        ["mean absolute error of the weights", f"{recovery.mean_absolute_error:.3f}", "0"],
        ["mean weight of bar pixels", f"{lit.mean():.2f}", "10"],
        ["mean error of the causes' frequency", f"{error:.4f}", "0"],
        ["mean log evidence of an image", f"{model.lower_bound_:.3f}", f"{reference:.3f}"],
    ]
    title = f"Learned in {model.n_iter_} iterations, {seconds:.1f} s ({model.outcome_})"
    output.table(title, ["", "found", "truth"], lines)
    picture, report = out / "bars.png", out / "report.html"
    draw(picture, bars, model, recovery, reference)
    write_report(model, bars.data, report, image_shape=bars.image_shape, title="Bars that occlude each other")
    output.say(f"Picture: {picture}\nReport: {report}")
    return {
        "bars": len(bars.causes),
        "found": int(recovery.n_found),
        "outcome": model.outcome_,
        "n_iter": int(model.n_iter_),
        "lower_bound": float(model.lower_bound_),
        "generating_bound": float(reference),
        "seconds": seconds,
        "picture": str(picture),
        "report": str(report),
    }


def show_photograph(output: Output, out: Path, seed: int) -> dict[str, Any]:
    """Learn components of patches of a photograph, and draw them into ``photo.png`` in the folder ``out``."""
    from matplotlib import pyplot as plt
    from skimage.data import camera

    from multicause import IndependentComponents
    from multicause.app.preparation import PreparedModel, RowPreparation
    from multicause.datasets import make_patches, reconstruct_image
    from multicause.plotting import draw_images

    image = camera()
    patches = make_patches(image, 5000, shape=(8, 8), random_state=seed).data
    steps = RowPreparation(center=True)
    started = perf_counter()
    model = PreparedModel(IndependentComponents(16, random_state=seed).fit(steps.apply(patches)), steps)
    seconds = perf_counter() - started
    again = reconstruct_image(model, image.astype(float), (8, 8), step=4)
    explained = 1 - float(((again - image) ** 2).mean()) / float(image.var())
    figure, axes = plt.subplots(1, 3, figsize=(11, 3.9), layout="constrained")
    for axis, picture, title in ((axes[0], image, "a photograph"), (axes[2], again, "from 16 components")):
        axis.imshow(picture, cmap="gray", vmin=0, vmax=255)
        axis.set_title(title)
        axis.axis("off")
    draw_images(axes[1], model.components_, (8, 8), columns=4, title="components of its patches, 8×8")
    path = out / "photo.png"
    _save(figure, path)
    output.say(
        f"And a photograph: IndependentComponents learned 16 components of its patches in {seconds:.1f} s, which "
        f"explain {explained:.1%} of its variance.\nPicture: {path}"
    )
    return {"photograph": str(path), "photograph_r2": explained}


def draw(path: Path, bars: Any, model: Any, recovery: Any, reference: float) -> None:
    """Draw data, true causes, learned components in the same order, and the bound."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    from multicause.plotting import ConvergenceDisplay, draw_images

    figure, axes = plt.subplots(4, 1, figsize=(7, 6.6), height_ratios=[2.2, 1, 1, 2.2], layout="constrained")
    draw_images(axes[0], bars.data[:20], bars.image_shape, title="data: 20 of 500 images")
    draw_images(axes[1], bars.causes, bars.image_shape, title="the true causes, never shown to the model")
    order = [*recovery.mapping, *(h for h in range(len(model.components_)) if h not in recovery.mapping)]
    draw_images(axes[2], model.components_[order], bars.image_shape, title="learned components, in the same order")
    ConvergenceDisplay.from_estimator(model, reference=reference, ax=axes[3])
    _save(figure, path)


def _save(figure: Any, path: Path) -> None:
    """Write a figure when it is complete."""
    import io

    from matplotlib import pyplot as plt

    from multicause.persistence.container import write_whole

    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=130)
    plt.close(figure)
    write_whole(path, buffer.getvalue())
