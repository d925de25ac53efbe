"""Commands of ``multicause``."""

from __future__ import annotations

from typing import Annotated

import typer

from multicause.app.cli.apply import reconstruct, sample, transform
from multicause.app.cli.benchmark import benchmark
from multicause.app.cli.demo import demo
from multicause.app.cli.fit import fit
from multicause.app.cli.output import Command, Commands
from multicause.app.cli.report import report
from multicause.app.cli.reproduce import reproduce
from multicause.app.cli.restore import denoise, inpaint
from multicause.version import __version__

app = typer.Typer(cls=Commands, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
for function in (demo, fit, transform, reconstruct, sample, denoise, inpaint, report, reproduce, benchmark):
    app.command(cls=Command)(function)


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"multicause {__version__}")
        raise typer.Exit


@app.callback()
def multicause(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    """Find the hidden causes of data.

    Start with:  multicause demo

    Your own images:  multicause fit photos --patches 10x10 --components 50 --out run

    An image without its noise:  multicause denoise noisy.png --out clean.png
    """
