"""Command ``multicause fit``: learn the causes of data from files."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

import typer

from multicause.app.cli.engines import COMPUTING, ENGINE_OPTIONS, EngineChoice
from multicause.app.cli.models import AUTO, MODELS
from multicause.app.cli.options import (
    Device,
    FileOptions,
    Force,
    Json,
    MemoryBudget,
    Seed,
    Verbose,
    shape_from,
    whole_numbers,
    with_option_groups,
)
from multicause.app.cli.output import command

LEARNING, PREPARING, DATA = "Learning", "Preparation of rows", "Data"


@with_option_groups
def fit(
    context: typer.Context,
    data: Annotated[
        list[Path] | None,
        typer.Argument(
            help="npy, npz, csv, tsv (or .gz), parquet, h5 or zarr; images or wav files, or a folder of them.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Output folder of the run; must not exist.", show_default=False)
    ] = None,
    resume: Annotated[
        Path | None,
        typer.Option(
            help="Folder of an interrupted or stopped run, to resume from its last checkpoint.", show_default=False
        ),
    ] = None,
    model: Annotated[
        str,
        typer.Option(
            help=f"auto (chosen by the kind of data), or one of {', '.join(MODELS)}.", rich_help_panel=LEARNING
        ),
    ] = AUTO,
    components: Annotated[
        str,
        typer.Option(
            help="Number of components, or several such as 5,10,20, from which held-out scores choose.",
            rich_help_panel=LEARNING,
        ),
    ] = "20",
    noise: Annotated[
        str | None,
        typer.Option(
            help="gaussian, diagonal_gaussian, poisson, bernoulli or leaky_bernoulli, if the model has a choice.",
            rich_help_panel=LEARNING,
        ),
    ] = None,
    posterior: Annotated[
        str | None,
        typer.Option(
            help="exact, truncated, preselected, beam or evolved; by default chosen by the number of causes.",
            rich_help_panel=LEARNING,
        ),
    ] = None,
    iterations: Annotated[
        int | None,
        typer.Option(
            help="Maximum number of iterations; the default depends on the model.", min=1, rich_help_panel=LEARNING
        ),
    ] = None,
    starts: Annotated[
        int | None, typer.Option(help="Number of random starts; the best is kept.", min=1, rich_help_panel=LEARNING)
    ] = None,
    seed: Seed = 0,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="Any other setting of the model, such as tol=1e-4 or posterior__max_active=3; may be repeated.",
            rich_help_panel=LEARNING,
        ),
    ] = None,
    center: Annotated[
        bool | None,
        typer.Option(
            "--center/--no-center",
            help="Subtract the mean of each row; by default for patches with --model auto.",
            rich_help_panel=PREPARING,
        ),
    ] = None,
    standardize: Annotated[
        bool | None,
        typer.Option(
            "--standardize/--no-standardize",
            help="Give each column mean 0 and variance 1; by default for tables of measurements with --model auto.",
            rich_help_panel=PREPARING,
        ),
    ] = None,
    whiten: Annotated[
        bool | None,
        typer.Option(
            "--whiten/--no-whiten", help="Remove correlations between columns (ZCA).", rich_help_panel=PREPARING
        ),
    ] = None,
    patches: Annotated[
        str | None,
        typer.Option(
            metavar="HEIGHTxWIDTH",
            help="Cut images into patches of this size, such as 10x10.",
            rich_help_panel=DATA,
        ),
    ] = None,
    count: Annotated[
        int | None, typer.Option(help="Number of patches, or of pieces of sound.", min=1, rich_help_panel=DATA)
    ] = None,
    scale: Annotated[float, typer.Option(help="Value of a white pixel.", rich_help_panel=DATA)] = 10.0,
    image_shape: Annotated[
        str | None,
        typer.Option(metavar="HEIGHTxWIDTH", help="Image size of the rows of a table.", rich_help_panel=DATA),
    ] = None,
    sound: Annotated[
        str, typer.Option(help="Representation of recordings: spectrogram or waveform.", rich_help_panel=DATA)
    ] = "spectrogram",
    frames: Annotated[
        int, typer.Option(help="Number of windows in a row's spectrogram.", min=1, rich_help_panel=DATA)
    ] = 9,
    length: Annotated[
        int, typer.Option(help="Number of samples in a row's waveform.", min=2, rich_help_panel=DATA)
    ] = 128,
    sample_rate: Annotated[
        int, typer.Option(help="Sample rate in Hz, to which sounds are resampled.", min=1000, rich_help_panel=DATA)
    ] = 8000,
    *,
    files: FileOptions,
    index: Annotated[
        str | None,
        typer.Option(
            help="Name or number (from 0) of the column that identifies rows and is not a feature, or 'none'.",
            rich_help_panel=DATA,
        ),
    ] = None,
    drop: Annotated[
        list[str] | None,
        typer.Option(metavar="NAMES", help="Columns to leave out, such as a,b; may be repeated.", rich_help_panel=DATA),
    ] = None,
    dtype: Annotated[str, typer.Option(help="float64 or float32.", rich_help_panel=COMPUTING)] = "float64",
    device: Device = "auto",
    memory: MemoryBudget = "2GiB",
    where: EngineChoice,
    report: Annotated[bool, typer.Option(help="Whether to write report.html.", rich_help_panel=COMPUTING)] = True,
    checkpoint: Annotated[
        float, typer.Option(help="Seconds between checkpoints.", min=0, rich_help_panel=COMPUTING)
    ] = 60.0,
    force: Force = False,
    json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Learn the causes of your data, and write a folder with the model and a report.

    Examples:
      multicause fit photos --patches 10x10 --count 40000 --components 50 --out run

      multicause fit table.csv --drop id --model nonnegative --noise poisson --out run

      multicause fit speech.wav --components 12 --out run

      multicause fit table.csv --components 5,10,20,40 --out run

      multicause fit rows.npy --image-shape 28x28 --model sparse --out run --json

      multicause fit rows/*.parquet --components 200 --out run

      multicause fit rows.npy --engine dask --scheduler tcp://scheduler:8786 --out run

      multicause fit --resume run

    Ctrl-C stops learning and keeps the model so far; 'multicause fit --resume run' resumes it.
    """
    with command(json, verbose) as output:
        from multicause.app.cli.file_names import FILES, check_data
        from multicause.app.cli.unfinished import Request, check_unfinished, is_stopped, read_request
        from multicause.app.writing import check_place

        # Invalid options are refused before modules are imported that take seconds.
        recorded = None
        if resume is not None:
            if out is not None and out.resolve() != resume.resolve():
                raise ValueError(f"--resume writes its result to {str(resume)!r}; leave out --out.")
            out = resume
            check_unfinished(out, resume=True, force=force)
            recorded = read_request(resume)
        elif not data or out is None:
            raise ValueError("Name the data and a folder for the result: multicause fit DATA --out RUN.")
        else:
            check_unfinished(out, resume=False, force=force)
        check_place(out, force or (recorded is not None and is_stopped(out)), FILES)
        check_data(data or [])
        numbers = whole_numbers(components, "--components")
        where.check()

        from multicause.app.cli.fitting import fit_run
        from multicause.app.cli.resuming import check_same
        from multicause.datasets.reading import Reading

        reading = Reading(
            **files.settings(),
            index=index,
            drop=tuple(drop or ()),
            image_shape=shape_from(image_shape, "--image-shape"),
            patches=shape_from(patches, "--patches"),
            count=count,
            scale=scale,
            sound=sound,
            frames=frames,
            length=length,
            sample_rate=sample_rate,
            dtype=dtype,
            seed=seed,
        )
        parameters = {
            "n_components": numbers[0] if len(numbers) == 1 else numbers,
            "noise": noise,
            "posterior": posterior,
            "max_iter": iterations,
            "n_init": starts,
            "random_state": seed,
        }
        paths = [str(path.expanduser().resolve()) for path in data or ()]
        steps = {"center": center, "standardize": standardize, "whiten": whiten}
        extra, place = list(settings or ()), asdict(where)
        request = Request(paths, model, parameters, extra, reading.settings(), memory, report, place, steps)
        if recorded is not None:
            given = {name for name in context.params if _is_given(context, name)}
            check_same(given, request, recorded)
            request = replace(
                recorded,
                with_report=report if "report" in given else recorded.with_report,
                engine=place if given.intersection(ENGINE_OPTIONS) else recorded.engine,
            )
        summary = fit_run(
            output, request, out, device=device, every=checkpoint, resume=recorded is not None, force=force
        )
        output.result(out=str(out), **summary)


def _is_given(context: typer.Context, name: str) -> bool:
    """Return whether the user gave an option, so that it does not have its default."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"
