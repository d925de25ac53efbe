"""The commands of ``multicause``."""

from __future__ import annotations

import typer

from multicause.cli.apply import reconstruct, sample, transform
from multicause.cli.benchmark import benchmark
from multicause.cli.demo import demo
from multicause.cli.fit import fit
from multicause.cli.report import report
from multicause.cli.reproduce import reproduce

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
for function in (demo, fit, transform, reconstruct, sample, report, reproduce, benchmark):
    app.command()(function)


@app.callback()
def multicause() -> None:
    """Finds the hidden causes of data.

    Begin with:  multicause demo

    Your own images:  multicause fit photos --patches 10x10 --components 50 --out run
    """
