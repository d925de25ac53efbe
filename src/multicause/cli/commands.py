"""The commands of ``multicause``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from multicause.experiments import NAMES, experiment

app = typer.Typer(help="Finds the hidden causes of data.", no_args_is_help=True, add_completion=False)
console = Console()


@app.callback()
def multicause() -> None:
    """Finds the hidden causes of data."""


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the picture; made if it does not exist.")] = Path("out/demo"),
    seed: Annotated[int, typer.Option(help="Seed of the data and of learning.", min=0, max=2**32 - 1)] = 0,
) -> None:
    """Find the hidden bars in 500 noisy images, print what was found, and draw it.

    Example: multicause demo --out out/demo
    """
    from multicause.cli.demo import run_demo

    try:
        run_demo(console, out, seed)
    except OSError as error:
        typer.echo(f"Error: cannot write to {out}: {error.strerror}. Choose another folder with --out.", err=True)
        raise typer.Exit(2) from None


@app.command()
def reproduce(
    name: Annotated[str, typer.Argument(help=f"Experiment: {', '.join(NAMES)}.")] = "",
    trials: Annotated[int, typer.Option(help="Number of trials.", min=1)] = 20,
    setting: Annotated[
        str,
        typer.Option(help="'default' settings, the 'paper's, or others; each experiment has its own."),
    ] = "",
    jobs: Annotated[int, typer.Option(help="Processes that share the trials; -1 uses all cores.")] = 1,
    list_names: Annotated[bool, typer.Option("--list", help="List the experiments.")] = False,
) -> None:
    """Repeat an experiment of the papers and print its numbers beside theirs.

    Examples: multicause reproduce mca_ex --trials 20, multicause reproduce et10 --trials 50 --jobs 2
    """
    if list_names or not name:
        console.print("\n".join(NAMES))
        return
    try:
        lines = experiment(name)(trials, jobs=jobs, **({"setting": setting} if setting else {}))
    except ValueError as error:
        typer.echo(f"Error: {error}", err=True)
        raise typer.Exit(2) from None
    table = Table(title=f"{name}, {trials} trials" + (f", {setting} settings" if setting else ""))
    for heading in ("", "asked", "found", ""):
        table.add_column(heading)
    for line in lines:
        table.add_row(line.what, line.asked, line.found, "[green]yes" if line.reached else "[red]no")
    console.print(table)
    raise typer.Exit(0 if all(line.reached for line in lines) else 1)
