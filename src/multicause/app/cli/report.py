"""Command ``multicause report``: write the report of a fitted model again, or compare several runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from multicause.app.cli.options import (
    Device,
    FileOptions,
    Force,
    Json,
    Verbose,
    with_option_groups,
)
from multicause.app.cli.output import Output, command
from multicause.runtime.file_kinds import PAGES

if TYPE_CHECKING:
    from multicause.app.cli.runs import Run
    from multicause.app.report.runs import ComparedRun

OTHER_DATA = "The runs were fitted to different data, so that R² and scores are not comparable; name data with --data"


@with_option_groups
def report(
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN", help="Folder that 'multicause fit' wrote; several are compared.", show_default=False
        ),
    ],
    data: Annotated[
        list[Path] | None,
        typer.Option(
            help="Data to explain; by default those of the fit, read again. May be repeated.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Output file; by default report.html in the folder of the run, or comparison.html for several runs."
        ),
    ] = None,
    *,
    files: FileOptions,
    device: Device = "auto",
    force: Force = False,
    json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Write the report of a fitted model again, or for other data; compare several runs on one page.

    Examples:
      multicause report run

      multicause report run --data test.csv --out test.html

      multicause report run1 run2 run3 --data test.csv --out comparison.html
    """
    with command(json, verbose) as output:
        from multicause.app.cli.file_names import REPORT, check_data, check_ending
        from multicause.app.writing import check_file

        if out is None and len(runs) > 1:
            out = Path("comparison.html")
        if out is not None:
            check_ending(out, PAGES)
            check_file(out, force)
        check_data(data or [])
        settings = files.settings()
        if data is None and any(value is not None for value in settings.values()):
            raise ValueError("Options of files, such as --sep and --array, are for other data; name them with --data.")

        from multicause.app.cli.runs import open_run

        opened = [open_run(run, device) for run in runs]
        if len(runs) == 1:
            write_one(output, opened[0], data, runs[0] / REPORT if out is None else out, settings)
        else:
            assert out is not None
            compare(output, opened, data, out, settings)


def write_one(output: Output, fitted: Run, data: list[Path] | None, out: Path, settings: dict[str, Any]) -> None:
    """Write the report of one run; ``settings`` say how other data are read."""
    from multicause.app.cli.fitting import described_rows, write_run_report
    from multicause.runtime.paths import file_of

    paths = data or fitted.paths
    missing = [path for path in paths if not file_of(path).exists()]
    if missing:
        raise FileNotFoundError(
            f"The data of this run are no longer at {str(missing[0])!r}; give their path with --data."
        )
    described = described_rows(fitted.read(paths, memory_budget=fitted.memory_budget, **settings), fitted.memory_budget)
    write_run_report(out, fitted.model, described, paths, fitted.settings)
    output.say(f"Report: {out}")
    output.result(out=str(out), bytes=out.stat().st_size)


def compare(output: Output, runs: list[Run], data: list[Path] | None, out: Path, settings: dict[str, Any]) -> None:
    """Write a page that compares runs, on their own data or on the given ones."""
    from multicause.app.report.runs import write_runs_comparison

    compared = [_compared(run, data, settings) for run in runs]
    same_data = bool(data) or len({tuple(run.paths) for run in runs}) == 1
    means = write_runs_comparison(out, compared, same_data=same_data)
    names = dict.fromkeys(name for run in compared for name in run.facts)
    rows = [[name, *(run.facts.get(name, "–") for run in compared)] for name in names]
    output.table("comparison", ["", *(run.name for run in compared)], rows)
    if not same_data:
        output.say(f"{OTHER_DATA}.", style="yellow")
    output.say(f"Comparison: {out}")
    facts = [run.facts for run in compared]
    output.result(out=str(out), runs=[run.name for run in compared], facts=facts, similarity=means)


def _compared(run: Run, data: list[Path] | None, reading: dict[str, Any]) -> ComparedRun:
    """Return the components and facts of a run for the comparison; R² is that of its fit, or of other data."""
    import numpy as np

    from multicause.app.cli.file_names import describe_paths
    from multicause.app.cli.fitting import described_rows
    from multicause.app.report.runs import ComparedRun
    from multicause.metrics.reconstruction import reconstruction_quality

    settings = run.settings
    values = {"r2": settings.get("r2"), "r2_without_row_means": settings.get("r2_without_row_means")}
    score, summary = settings.get("lower_bound"), settings["data"].get("summary", "")
    if data:
        described = described_rows(run.read(data, memory_budget=run.memory_budget, **reading), run.memory_budget)
        rows, summary = described.rows, described.summary
        values = dict.fromkeys(values)
        if hasattr(run.model, "reconstruct"):
            values = dict(reconstruction_quality(run.model, rows)._asdict())
        score = float(np.mean(run.model.score_samples(rows)))
    steps = [name for name, used in settings.get("preparation", {}).items() if used]
    facts = {
        "model": settings["estimator"],
        "data": describe_paths([Path(path.name) for path in (data or run.paths)]),
        "rows": summary,
        "prepared by": ", ".join(f"--{name}" for name in steps) or "nothing",
        "components": str(len(run.model.components_)),
        "outcome": str(settings.get("outcome")),
        "iterations": str(settings.get("n_iter")),
        f"mean {run.model.value_labels().score}" if data else str(settings.get("lower_bound_is")): _text(score),
        "variance explained, R²": _text(values["r2"]),
        "R² without row means": _text(values["r2_without_row_means"]),
        "seconds": f"{settings['seconds']:.1f}" if settings.get("seconds") is not None else "–",
    }
    return ComparedRun(run.folder.name, np.asarray(run.model.components_), run.image_shape, run.data["kind"], facts)


def _text(value: float | None) -> str:
    return "–" if value is None else f"{value:.4g}".replace("-", "−")
