"""Command ``multicause reproduce``: repeat one experiment of the papers, or all of them on one page."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any

import typer

from multicause.app.cli.options import Json, Verbose
from multicause.app.cli.output import Output, command, describe
from multicause.app.cli.quitting import interrupted_by_exception
from multicause.app.experiments import DURATIONS, NAMES, QUICK, SUBJECTS, experiment

ALL = "all"


def reproduce(
    name: Annotated[str, typer.Argument(help=f"Experiment: {', '.join(NAMES)}, or {ALL}.")] = "",
    trials: Annotated[int, typer.Option(help="Number of trials.", min=1)] = 20,
    setting: Annotated[
        str,
        typer.Option(help="Settings: 'default', 'paper' or others; they depend on the experiment."),
    ] = "",
    jobs: Annotated[int, typer.Option(help="Number of processes that run the trials; -1 uses all cores.")] = 1,
    quick: Annotated[
        bool, typer.Option("--quick", help="With 'all': few trials and short learning, some minutes for each.")
    ] = False,
    out: Annotated[Path, typer.Option(help="With 'all': page with all tables and figures.")] = Path(
        "out/reproduce/all.html"
    ),
    list_names: Annotated[bool, typer.Option("--list", help="List the experiments.")] = False,
    json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Repeat an experiment of the papers and print its results beside the published ones.

    Examples:
      multicause reproduce mca_ex --trials 20

      multicause reproduce et10 --trials 50 --jobs 2

      multicause reproduce all --quick
    """
    with command(json, verbose) as output:
        if list_names or not name:
            cells = [[key, SUBJECTS[key], DURATIONS[key]] for key in NAMES]
            output.table("experiments", ["name", "what it reproduces", "takes, on two cores"], cells)
            output.result(experiments=list(NAMES), subjects=SUBJECTS, durations=DURATIONS)
            return
        if name == ALL:
            reproduce_all(output, quick, jobs, out)
            return
        lines = []
        with nullcontext() if jobs == 1 else interrupted_by_exception():
            found = experiment(name)(trials, jobs=jobs, **({"setting": setting} if setting else {}))
            for line in found:
                lines.append(line)
                if isinstance(found, Iterator):  # it takes long, and reports results as they are found
                    output.say(f"{line.what}: {line.found}", style="dim")
        title = f"{name}, {trials} trials" + (f", {setting} settings" if setting else "")
        cells = [[line.what, line.expected, line.found, "[green]yes" if line.reached else "[red]no"] for line in lines]
        output.table(title, ["", "expected", "found", ""], cells)
        reached = all(line.reached for line in lines)
        output.result(
            experiment=name,
            trials=trials,
            reached=reached,
            lines=[
                {"what": a.what, "expected": a.expected, "found": a.found, "reached": bool(a.reached)} for a in lines
            ],
        )
        raise typer.Exit(0 if reached else 1)


def reproduce_all(output: Output, quick: bool, jobs: int, out: Path) -> None:
    """Run every experiment and write one page; it is written again after each, so that nothing is lost."""
    from multicause.app.report.reproduction import Section, write_reproduction

    out.parent.mkdir(parents=True, exist_ok=True)
    sections: list[Section] = []
    for name in QUICK:
        trials, setting = QUICK[name]
        options: dict[str, Any] = {"setting": setting} if quick and setting else {}
        output.say(f"{name}: {SUBJECTS[name]}")
        started, lines, problem = perf_counter(), [], ""
        try:
            run = experiment(name)
            lines = list(run(trials, jobs=jobs, **options) if quick else run(jobs=jobs))
        except (ValueError, OSError, ImportError, MemoryError, FloatingPointError) as error:
            problem = describe(error)
        reached = sum(line.reached for line in lines)
        output.say(f"  {reached} of {len(lines)} reached{f', {problem}' if problem else ''}", style="dim")
        sections.append(Section(name, SUBJECTS[name], lines, perf_counter() - started, problem))
        write_reproduction(out, sections, quick=quick, n_experiments=len(QUICK))
    output.say(f"Page: {out}")
    output.result(out=str(out), experiments=[section.name for section in sections])
