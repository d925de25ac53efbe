"""Command ``multicause reproduce``: repeat an experiment of the papers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from typing import Annotated

import typer

from multicause.app.cli.options import Json, Verbose
from multicause.app.cli.output import command
from multicause.app.cli.quitting import interrupted_by_exception
from multicause.app.experiments import NAMES, SUBJECTS, experiment


def reproduce(
    name: Annotated[str, typer.Argument(help=f"Experiment: {', '.join(NAMES)}.")] = "",
    trials: Annotated[int, typer.Option(help="Number of trials.", min=1)] = 20,
    setting: Annotated[
        str,
        typer.Option(help="Settings: 'default', 'paper' or others; they depend on the experiment."),
    ] = "",
    jobs: Annotated[int, typer.Option(help="Number of processes that run the trials; -1 uses all cores.")] = 1,
    list_names: Annotated[bool, typer.Option("--list", help="List the experiments.")] = False,
    json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Repeat an experiment of the papers and print its results beside the published ones.

    Examples:
      multicause reproduce mca_ex --trials 20

      multicause reproduce et10 --trials 50 --jobs 2
    """
    with command(json, verbose) as output:
        if list_names or not name:
            output.table("experiments", ["name", "what it reproduces"], [[key, SUBJECTS[key]] for key in NAMES])
            output.result(experiments=list(NAMES), subjects=SUBJECTS)
            return
        lines = []
        with nullcontext() if jobs == 1 else interrupted_by_exception():
            found = experiment(name)(trials, jobs=jobs, **({"setting": setting} if setting else {}))
            for line in found:
                lines.append(line)
                if isinstance(found, Iterator):  # it takes long, and reports results as they are found
                    output.say(f"{line.what}: {line.found}", style="dim")
        title = f"{name}, {trials} trials" + (f", {setting} settings" if setting else "")
        cells = [[line.what, line.asked, line.found, "[green]yes" if line.reached else "[red]no"] for line in lines]
        output.table(title, ["", "asked", "found", ""], cells)
        reached = all(line.reached for line in lines)
        output.result(
            experiment=name,
            trials=trials,
            reached=reached,
            lines=[{"what": a.what, "asked": a.asked, "found": a.found, "reached": bool(a.reached)} for a in lines],
        )
        raise typer.Exit(0 if reached else 1)
