"""Commands ``multicause transform``, ``sample`` and ``reconstruct``, which apply a fitted model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from multicause.app.cli.message_translation import errors_in_options
from multicause.app.cli.options import (
    DataPaths,
    Device,
    FileOptions,
    Force,
    Json,
    RunFolder,
    Seed,
    Verbose,
    with_option_groups,
)
from multicause.app.cli.output import Output, command
from multicause.runtime.file_kinds import IMAGES, NPY, PNG, SOUNDS, WRITTEN_IMAGES, WRITTEN_TABLES, suffix_of

if TYPE_CHECKING:
    from multicause.engines.source import Source

OutFile = Annotated[Path, typer.Option(help="Output file; its suffix selects the format.", show_default=False)]


@with_option_groups
def transform(
    run: RunFolder,
    data: DataPaths,
    out: Annotated[
        Path,
        typer.Option(
            help="Output file, whose suffix selects the format, or a folder for maps of causes.", show_default=False
        ),
    ],
    step: Annotated[
        int | None,
        typer.Option(help="Distance between patches of an image in pixels; by default they do not overlap.", min=1),
    ] = None,
    *,
    files: FileOptions,
    device: Device = "auto",
    force: Force = False,
    json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Infer the causes of each row of some data: probabilities, or values of the causes.

    Columns of a table that the model does not use, such as identifiers, come first in a csv or parquet file. Patches of
    images lie on a grid, and keep their places: columns file, row and column of a table, or one map per cause.

    Examples:
      multicause transform run more.csv --out causes.csv

      multicause transform run photos --out causes.csv

      multicause transform run photo.png --step 1 --out maps
    """
    with command(json, verbose) as output:
        from multicause.app.cli.file_names import check_data, check_ending
        from multicause.app.writing import check_file, check_free

        if out.suffix:
            check_ending(out, WRITTEN_TABLES)
            check_file(out, force)
        else:
            check_free(out, force)
        check_data(data)

        import numpy as np

        from multicause.app.cli.fitting import print_data
        from multicause.app.cli.results import component_names, write_table
        from multicause.app.cli.runs import open_run
        from multicause.app.cli.whole_files import are_pictures, write_cause_maps
        from multicause.engines.source import Source

        fitted = open_run(run, device)
        if fitted.data["kind"] == "patches" and are_pictures(data):
            write_cause_maps(output, fitted, data, out, step, force)
            return
        if step is not None or not out.suffix:
            folder = f"a folder ({str(out)!r}), without one of {', '.join(WRITTEN_TABLES)},"
            refused = folder if step is None else "--step"
            raise ValueError(f"{refused} is only for models of patches and data that are images.")
        user_data = fitted.read(
            data,
            memory_budget=fitted.memory_budget,
            **files.settings(),
        )
        print_data(output, data, user_data)
        if isinstance(user_data.rows, Source):
            check_array_file(out, user_data.rows, fitted)
            with errors_in_options(fitted.model):
                causes = fitted.model.transform(user_data.rows, out=out)
        else:
            with errors_in_options(fitted.model):
                causes = np.asarray(fitted.model.transform(user_data.rows))
            print_lost(output, out, write_table(out, causes, component_names(fitted.model), user_data.others()))
        output.say(f"Causes of {causes.shape[0]} rows: {out}")
        output.result(out=str(out), shape=list(causes.shape))


def sample(
    run: RunFolder,
    out: OutFile,
    count: Annotated[int, typer.Option(help="Number of rows.", min=1)] = 100,
    seed: Seed = 0,
    device: Device = "auto",
    force: Force = False,
    json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Draw new rows from a fitted model, as a table or, if rows are images, as a picture.

    Examples:
      multicause sample run --count 1000 --out new.npy

      multicause sample run --count 40 --out new.png
    """
    with command(json, verbose) as output:
        from multicause.app.cli.file_names import check_ending
        from multicause.app.writing import check_file

        check_ending(out, (*WRITTEN_TABLES, PNG))
        check_file(out, force)

        import numpy as np

        from multicause.app.cli.results import write_mosaic, write_table
        from multicause.app.cli.runs import open_run

        fitted = open_run(run, device)
        shape = fitted.image_shape
        if suffix_of(out) != PNG:
            shape = None
        elif shape is None:
            raise ValueError(f"Rows of this model are not images; choose one of {', '.join(WRITTEN_TABLES)}.")
        with errors_in_options(fitted.model):
            rows = np.asarray(fitted.model.sample(count, random_state=seed)[0])
        if shape is not None:
            write_mosaic(out, rows, shape, f"{count} samples of {fitted.settings['estimator']}")
        else:
            write_table(out, rows, fitted.data["names"])
        output.say(f"{count} new rows: {out}")
        output.result(out=str(out), shape=list(rows.shape))


@with_option_groups
def reconstruct(
    run: RunFolder,
    data: DataPaths,
    out: Annotated[
        Path, typer.Option(help="Output file, or folder for several images or recordings.", show_default=False)
    ],
    step: Annotated[int, typer.Option(help="Distance between patches of an image in pixels.", min=1)] = 1,
    noise_level: Annotated[
        str,
        typer.Option(
            help="Standard deviation of the noise in images, of which white is 1; 'auto' estimates it, also in "
            "recordings, and 'none' reconstructs from the causes alone."
        ),
    ] = "auto",
    impute: Annotated[bool, typer.Option("--impute", help="Keep observed values and fill in missing ones.")] = False,
    *,
    files: FileOptions,
    device: Device = "auto",
    force: Force = False,
    json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Remove noise from data: replace them by what the causes of a fitted model explain.

    Patches of an image overlap and are averaged. Recordings become wav files at their own sample rate, with the phases
    of the recording.

    Examples:
      multicause reconstruct run noisy.png --out clean.png

      multicause reconstruct run noisy.wav --out clean.wav

      multicause reconstruct run noisy.csv --out clean.csv

      multicause reconstruct run gaps.csv --impute --out whole.csv
    """
    with command(json, verbose) as output:
        from multicause.app.cli.file_names import check_data, describe_paths
        from multicause.app.writing import check_file, check_free

        check_free(out, force)
        check_data(data)
        several = len(data) > 1 or data[0].is_dir()
        if several and suffix_of(out) in (*WRITTEN_IMAGES, *SOUNDS):
            what = "There are several paths" if len(data) > 1 else f"{str(data[0])!r} is a folder"
            raise ValueError(f"{what}, so --out must be a folder, too; got {str(out)!r}.")

        from multicause.app.cli.fitting import print_data
        from multicause.app.cli.runs import open_run
        from multicause.app.cli.whole_files import are_pictures, reconstruct_images, reconstruct_recordings

        fitted = open_run(run, device)
        if not hasattr(fitted.model, "reconstruct"):
            raise ValueError(f"{fitted.settings['estimator']} cannot reconstruct: its filters do not generate data.")
        as_sounds = fitted.data["kind"] in ("spectrogram", "waveform") and suffix_of(out) not in WRITTEN_TABLES
        as_images = not as_sounds and are_pictures(data)
        if out.suffix:
            check_file(out, force)
        if fitted.data["kind"] == "patches" and not as_images:
            raise ValueError(
                f"This model was fitted to patches, so it reconstructs images; got {describe_paths(data)}. "
                f"Expected a folder, or files that end in {', '.join(IMAGES)}."
            )
        if impute and as_images:
            raise ValueError(
                "--impute fills in missing values of tables, which are empty or NaN; image files have none."
            )
        if impute and not hasattr(fitted.model, "impute"):
            raise ValueError(f"{fitted.settings['estimator']} cannot fill in missing values.")
        if fitted.data["kind"] == "patches" or (as_images and fitted.data["kind"] == "images"):
            reconstruct_images(output, fitted, data, out, step, noise_level, force)
        elif as_sounds:
            if impute:
                raise ValueError("--impute fills in missing values of tables; recordings have none.")
            reconstruct_recordings(output, fitted, data, out, files.channel, noise_level, force)
        else:
            user_data = fitted.read(
                data,
                memory_budget=fitted.memory_budget,
                **files.settings(),
            )
            print_data(output, data, user_data)
            _reconstruct_rows(output, fitted, user_data, out, impute)


def check_array_file(out: Path, source: Source, fitted: Any) -> None:
    """Raise ValueError if results of data larger than memory cannot be written to a file."""
    if suffix_of(out) != NPY:
        raise ValueError(
            f"{source.name} exceeds the memory budget ({fitted.memory_budget}), so results must be written as .npy; "
            f"got {str(out)!r}."
        )
    if fitted.model.preparation.changes_rows:
        raise ValueError(
            f"{source.name} exceeds the memory budget ({fitted.memory_budget}), and rows that are centred, "
            "standardized or whitened must be in memory. Split the file."
        )


def print_lost(output: Output, out: Path, lost: list[str]) -> None:
    """Print which columns of the data a file of arrays cannot hold."""
    if lost:
        output.say(f"Not in {out}, which holds numbers only (csv and parquet hold all): {', '.join(lost)}.", "yellow")


def _reconstruct_rows(output: Output, fitted: Any, data: Any, out: Path, impute: bool) -> None:
    import numpy as np

    from multicause.app.cli.file_names import check_ending
    from multicause.app.cli.results import write_table
    from multicause.engines.source import Source

    check_ending(out, WRITTEN_TABLES)
    method = fitted.model.impute if impute else fitted.model.reconstruct
    if isinstance(data.rows, Source):
        check_array_file(out, data.rows, fitted)
        with errors_in_options(fitted.model):
            shape = method(data.rows, out=out).shape
        output.say(f"{shape[0]} rows{', with missing values filled in' if impute else ''}: {out}")
        output.result(out=str(out), shape=list(shape))
        return
    with errors_in_options(fitted.model):
        rows = np.asarray(method(data.rows))
    print_lost(output, out, write_table(out, rows, data.names, data.others()))
    if impute:
        n_missing = int(np.isnan(data.rows).sum())
        output.say(f"{len(rows)} rows, in which {n_missing:,} missing values were filled in: {out}")
        output.result(out=str(out), shape=list(rows.shape), n_missing=n_missing)
        return
    error = float(np.sqrt(np.nanmean((rows - data.rows) ** 2, dtype=float)))
    output.say(f"{len(rows)} rows, with a root-mean-square difference of {error:.4g} from the data: {out}")
    output.result(out=str(out), shape=list(rows.shape), root_mean_square=error)
