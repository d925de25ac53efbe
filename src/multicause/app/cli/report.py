"""Command ``multicause report``: write the report of a fitted model again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from multicause.app.cli.options import Device, Force, Json, RunFolder, Verbose
from multicause.app.cli.output import command


def report(
    run: RunFolder,
    data: Annotated[
        list[Path] | None,
        typer.Option(
            help="Data to explain; by default those of the fit, read again. May be repeated.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Output file; by default report.html in the folder of the run.")
    ] = None,
    device: Device = "auto",
    force: Force = False,
    json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Write the report of a fitted model again, or for other data.

    Examples:
      multicause report run

      multicause report run --data test.csv --out test.html
    """
    with command(json, verbose) as output:
        from multicause.app.cli.places import PAGES, REPORT, check_data, check_ending
        from multicause.app.writing import check_file

        if out is not None:
            check_ending(out, PAGES)
            check_file(out, force)
        check_data(data or [])

        from multicause.app.cli.fitting import described_rows, write_run_report
        from multicause.app.cli.runs import open_run
        from multicause.runtime.paths import file_of

        fitted = open_run(run, device)
        paths = data or fitted.paths
        missing = [path for path in paths if not file_of(path).exists()]
        if missing:
            raise FileNotFoundError(
                f"The data of this run are no longer at {str(missing[0])!r}; give their path with --data."
            )
        found = described_rows(fitted.read(paths, memory_budget=fitted.memory_budget), fitted.memory_budget)
        out = run / REPORT if out is None else out
        write_run_report(out, fitted.model, found, paths, fitted.settings)
        output.say(f"Report: {out}")
        output.result(out=str(out), bytes=out.stat().st_size)
