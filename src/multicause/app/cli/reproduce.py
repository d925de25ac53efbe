"""Command ``multicause reproduce``: repeat one experiment of the papers, or all of them on one page."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any

import typer
from rich.text import Text

from multicause.app.cli.file_names import check_ending
from multicause.app.cli.options import Json, Verbose
from multicause.app.cli.output import Output, command, describe
from multicause.app.cli.quitting import interrupted_by_exception
from multicause.app.experiments import DURATIONS, NAMES, PAPERS, QUICK, SUBJECTS, experiment, quick_run
from multicause.runtime.file_kinds import PAGES

ALL = "all"
TRIALS = 20


def reproduce(
    name: Annotated[str, typer.Argument(help=f"Experiment: {', '.join(NAMES)}, or {ALL}.")] = "",
    trials: Annotated[
        int | None, typer.Option(help=f"Number of trials: {TRIALS}, or few with --quick.", min=1, show_default=False)
    ] = None,
    setting: Annotated[
        str,
        typer.Option(help="Settings: 'default', 'paper' or others; they depend on the experiment."),
    ] = "",
    jobs: Annotated[int, typer.Option(help="Number of processes that run the trials; -1 uses all cores.")] = 1,
    quick: Annotated[bool, typer.Option("--quick", help="Few trials and short learning.")] = False,
    out: Annotated[Path, typer.Option(help="With 'all': page with all tables and figures, an html file.")] = Path(
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

      multicause reproduce peers --quick

      multicause reproduce all --quick
    """
    with command(json, verbose) as output:
        if list_names or not name:
            quickly = {key: short.seconds for key, short in QUICK.items()}
            cells = [
                [key, SUBJECTS[key], DURATIONS[key], f"{quickly[key]} s" if key in quickly else ""] for key in NAMES
            ]
            headings = ["name", "what it reproduces", "takes about, on two cores", "CPU time with --quick"]
            output.table("experiments", headings, cells, texts=3)
            for paper in PAPERS.values():
                output.say(paper, style="dim")
            output.say("Times of full runs are estimates; those with --quick were measured.", style="dim")
            output.result(experiments=list(NAMES), subjects=SUBJECTS, durations=DURATIONS, quick_seconds=quickly)
            return
        if name == ALL:
            check_ending(out, PAGES)  # a browser shows a file without it as text
            reproduce_all(output, quick, jobs, out)
            return
        runner, short = experiment(name), quick_run(name) if quick else None
        trials = trials or (short.trials if short else TRIALS)
        setting = setting or (short.setting if short else "")
        lines = []
        with warnings_of_fits_ignored(), nullcontext() if jobs == 1 else interrupted_by_exception():
            found = runner(trials, jobs=jobs, **({"setting": setting} if setting else {}))
            for line in found:
                lines.append(line)
                if isinstance(found, Iterator):  # it takes long, and reports results as they are found
                    output.say(f"{line.what}: {line.found}", style="dim")
        title = f"{name}, {trials} trials" + (f", {setting} settings" if setting else "")
        marks = {True: Text("yes", style="green"), False: Text("no", style="red")}
        rows = [(line.what, line.expected, line.found, marks[bool(line.reached)]) for line in lines]
        output.table(title, ["", "expected", "found", ""], rows)
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


@contextmanager
def warnings_of_fits_ignored() -> Iterator[None]:
    """Ignore that fits end early or lose a cause: lines of an experiment count how many did not.

    Functions that run in other processes (``--jobs``) do that themselves.
    """
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


def reproduce_all(output: Output, quick: bool, jobs: int, out: Path) -> None:
    """Run every experiment and write one page; it is written again after each, so that nothing is lost.

    An experiment that fails is reported on the page, the others are run, and the exit code is 1.
    """
    from multicause.app.report.reproduction import Section, write_reproduction

    out.parent.mkdir(parents=True, exist_ok=True)
    sections: list[Section] = []
    for name, (trials, setting, _) in QUICK.items():
        options: dict[str, Any] = {"setting": setting} if quick and setting else {}
        output.say(f"{name}: {SUBJECTS[name]}")
        started, lines, problem = perf_counter(), [], ""
        try:
            run = experiment(name)
            with warnings_of_fits_ignored():
                lines = list(run(trials, jobs=jobs, **options) if quick else run(jobs=jobs))
        except Exception as error:  # any error: the other experiments are still run
            problem = f"{type(error).__name__}: {describe(error)}"
        seconds = perf_counter() - started
        reached = sum(line.reached for line in lines)
        summary = f"failed: {problem}" if problem else f"{reached} of {len(lines)} reached"
        output.say(f"  {summary}, {seconds:.0f} s", style="red" if problem else "dim")
        sections.append(Section(name, SUBJECTS[name], lines, seconds, problem))
        write_reproduction(out, sections, quick=quick, n_experiments=len(QUICK))
    failed = [section.name for section in sections if section.problem]
    output.say(f"Page: {out}")
    if failed:
        output.say(f"Failed: {', '.join(failed)}.", style="red")
    results = {
        section.name: {
            "reached": sum(bool(line.reached) for line in section.lines),
            "lines": len(section.lines),
            "seconds": section.seconds,
            "problem": section.problem or None,
        }
        for section in sections
    }
    output.result(out=str(out), experiments=list(results), results=results, failed=failed)
    raise typer.Exit(1 if failed else 0)
