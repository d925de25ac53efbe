"""Fit of the command line: read data, build the model, show progress, and write a folder."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from multicause.app.cli.choosing import Choice, choose
from multicause.app.cli.engines import EngineChoice
from multicause.app.cli.file_names import FILES, MODEL, REPORT, describe_paths
from multicause.app.cli.message_translation import (
    errors_in_options,
    in_options,
    reading_errors_in_options,
    reading_in_options,
)
from multicause.app.cli.models import AUTO, make_model
from multicause.app.cli.output import Output
from multicause.app.cli.progress import FitProgress
from multicause.app.cli.quitting import fits_may_stop
from multicause.app.cli.runs import describe_run, write_run
from multicause.app.cli.unfinished import Request, checkpoints_of, is_stopped, keep_for_resuming
from multicause.app.preparation import PreparedModel, RowPreparation, fit_preparation
from multicause.app.writing import new_folder
from multicause.arrays import bytes_from
from multicause.callbacks import Checkpoint
from multicause.datasets.reading import Reading, UserData, read_data
from multicause.engines import Dask, Local
from multicause.engines.dask_clusters import dashboard_link
from multicause.engines.source import Source
from multicause.outcomes import Outcome
from multicause.persistence import newest_checkpoint
from multicause.runtime.devices import use_device

# Labels of reconstruction quality in the summary of a fit, and their names in its settings.
QUALITY = {"variance explained, R²": "r2", "R² without row means": "r2_without_row_means"}

# Fields of the comparison of numbers of components that a run stores.
CURVE = ("numbers", "scores", "errors", "deficits", "deficit_errors")
# Rows of data larger than memory that are used for reconstructions and the report.
ROWS_TO_DESCRIBE = 10_000


def fit_run(
    output: Output, request: Request, out: Path, *, device: str, every: float, resume: bool, force: bool
) -> dict[str, Any]:
    """Learn from files or folders and write the folder of the run; return its settings."""
    bytes_from(request.memory)
    place = EngineChoice(**request.engine)
    engine = place.make(request.memory)
    numbers = request.parameters["n_components"]
    several = isinstance(numbers, list)
    first = {**request.parameters, "n_components": numbers[0]} if several else request.parameters
    if request.name != AUTO:
        # Wrong settings are refused before data are read.
        checked_model(request.name, {**first, "engine": engine}, request.extra)
    use_device(device)
    paths = [Path(path) for path in request.paths]
    with reading_errors_in_options():
        data = read_data(paths, Reading.from_settings(request.reading), memory_budget=request.memory)
    data = data._replace(remarks=tuple(map(reading_in_options, data.remarks)))
    check_rows(data, paths)
    print_data(output, paths, data)
    choice = chosen_model(request, data, numbers if several else [numbers])
    for reason in choice.reasons:
        output.say(reason)
    settings_of_model = {**choice.settings, **{key: value for key, value in first.items() if value is not None}}
    model = checked_model(choice.name, {**settings_of_model, "engine": engine}, request.extra)
    if place.name == "dask":
        print_cluster(output, engine)
    preparation = prepare(data, choice)
    prepared = data._replace(rows=preparation.apply(data.rows)) if preparation.changes_rows else data
    if several:
        curve = chosen_components(output, model, prepared, numbers, request)
        model.set_params(n_components=curve["best"])
        # A resumed run uses the number that was chosen.
        request = replace(request, parameters={**request.parameters, "n_components": curve["best"]}, curve=curve)
    with checkpoints_of(out, request, resume=resume, force=force) as checkpoints:
        seconds, notes = learn(output, model, prepared, checkpoints, every)
        with output.working("Describing what was learned, and writing the run"):
            # The described rows are in this process, and a saved model must not depend on a cluster.
            model.engine = Local(memory_budget=request.memory)
            shown = described_rows(data, request.memory)
            remarks = [*shown.remarks, *notes]
            fitted = PreparedModel(model, preparation)
            settings = describe_run(paths, data, shown, choice.name, fitted, seconds, remarks)
            settings["reasons"] = list(choice.reasons)
            settings["preparation"] = {key: getattr(choice, key) for key in ("center", "standardize", "whiten")}
            settings["engine"] = {**request.engine, "engine": place.name}
            settings["component_curve"] = request.curve
            with new_folder(out, force=force or (resume and is_stopped(out)), files=FILES) as folder:
                write_run(folder, fitted, settings)
                if request.with_report:
                    write_run_report(folder / REPORT, fitted, shown, paths, settings)
                if model.outcome_ == Outcome.STOPPED:
                    keep_for_resuming(checkpoints, folder)
    print_summary(output, out, model, settings, notes, request.with_report)
    return settings


def checked_model(name: str, settings: dict[str, Any], extra: Sequence[str]) -> Any:
    """Return a model with these options and settings; raise an error for those that no data would suit."""
    model = make_model(name, settings, extra)
    with errors_in_options(model):
        model.check_settings()
    return model


def check_rows(data: UserData, paths: Sequence[Path]) -> None:
    """Raise ValueError for data of a single row, and suggest how to get more."""
    if len(data.rows) > 1:
        return
    remedies = {
        "images": "A whole image is one row. Cut it into patches, such as --patches 8x8, or name more images.",
        "patches": "Ask for more patches with --count.",
        "spectrogram": "Use a longer recording, fewer --frames, or a larger --count.",
        "waveform": "Use a longer recording, a smaller --length, or a larger --count.",
    }
    remedy = remedies.get(data.kind, "Name a table with more rows.")
    raise ValueError(f"{describe_paths(paths)} gives one row, and at least two are needed to learn from. {remedy}")


def chosen_model(request: Request, data: UserData, numbers: list[int]) -> Choice:
    """Return the model and the preparation of a fit, chosen by some of its rows."""
    given = {key: request.parameters[key] for key in ("noise", "posterior", "n_init")}
    given = {key: value for key, value in given.items() if value is not None}
    if request.extra:
        given["extra"] = request.extra
    rows = described_rows(data, request.memory).rows
    in_memory = not isinstance(data.rows, Source)
    return choose(
        request.name, data.kind, rows, numbers=numbers, given=given, in_memory=in_memory, **request.preparation
    )


def prepare(data: UserData, choice: Choice) -> RowPreparation:
    """Return the preparation of the rows; those that exceed the memory budget cannot be prepared."""
    steps = {"center": choice.center, "standardize": choice.standardize, "whiten": choice.whiten}
    asked = [f"--{name}" for name, wanted in steps.items() if wanted]
    if asked and isinstance(data.rows, Source):
        raise ValueError(
            f"{' and '.join(asked)} needs rows in memory, but they exceed the memory budget. Raise --memory, or "
            f"prepare the file itself and use --no-{asked[0][2:]}."
        )
    return fit_preparation(data.rows, **steps) if asked else RowPreparation()


def chosen_components(
    output: Output, model: Any, data: UserData, numbers: list[int], request: Request
) -> dict[str, Any]:
    """Compare numbers of components by held-out scores, print the chosen one, and return the curve."""
    from multicause.selection import component_curve

    shown = described_rows(data, request.memory)
    copy = clone(model).set_params(engine=Local(memory_budget=request.memory))
    output.say(f"Comparing {', '.join(map(str, numbers))} components by held-out rows.")
    with warnings.catch_warnings():
        # Outcomes of fits to folds are not relevant; the fit to all rows reports its own.
        warnings.simplefilter("ignore", ConvergenceWarning)
        with errors_in_options(model):
            curve = component_curve(
                copy,
                shown.rows,
                numbers,
                random_state=request.parameters["random_state"],
                progress=lambda number, score: output.say(f"{number} components: mean score {score:.4f}", style="dim"),
            )
    lines = [
        [str(number), f"{score:.4f}", f"{deficit:.4f} ± {error:.4f}"]
        for number, score, deficit, error in zip(
            curve.numbers, curve.scores, curve.deficits, curve.deficit_errors, strict=True
        )
    ]
    output.table("held-out rows", ["components", "mean score", "below the highest"], lines)
    output.say(f"Chosen: {curve.best} components, the smallest number that is not clearly below the highest score.")
    values = {name: np.asarray(getattr(curve, name)).tolist() for name in CURVE}
    return {**values, "best": curve.best}


def described_rows(data: UserData, memory_budget: str | int) -> UserData:
    """Return data in memory; for data larger than memory, a random sample of the rows."""
    if not isinstance(data.rows, Source):
        return data
    sample = Local(memory_budget=memory_budget).load(data.rows).sample(ROWS_TO_DESCRIBE, np.random.RandomState(0))
    remark = f"Reconstructions and the report are of a random sample of {sample.n_rows:,} of {len(data.rows):,} rows."
    return data._replace(rows=sample.rows(), remarks=(*data.remarks, remark))


def print_cluster(output: Output, engine: Dask) -> None:
    """Connect to a cluster and print the address of its dashboard."""
    try:
        client = engine.client()
    except TimeoutError as error:
        raise TimeoutError(str(error).replace(", or wait longer with engine=Dask(timeout=...)", "")) from error
    workers = client.nthreads()
    output.say(f"Dask cluster {client.scheduler.address}: {len(workers)} workers, {sum(workers.values())} threads.")
    dashboard = dashboard_link(client)
    if dashboard is not None:
        output.say(f"Dashboard: {dashboard}")


def print_data(output: Output, paths: Sequence[Path], data: UserData) -> None:
    """Print how the data were read."""
    output.say(f"{describe_paths(paths)}: {data.summary}.")
    for remark in data.remarks:
        output.say(remark, style="yellow")


def learn(output: Output, model: Any, data: UserData, checkpoints: Path, every: float) -> tuple[float, list[str]]:
    """Fit, resuming from the newest checkpoint if there is one; return the seconds it took and its warnings."""
    callbacks: list[Any] = [Checkpoint(checkpoints, seconds=every)]
    if output.console.is_terminal and not output.as_json:
        callbacks.append(FitProgress(output.console))
    model.set_callbacks(*callbacks)
    resume = newest_checkpoint(checkpoints)
    if resume is not None:
        output.say(f"Resuming from {resume.name}.")
    started = perf_counter()
    with warnings.catch_warnings(record=True) as caught, fits_may_stop():
        warnings.simplefilter("always")
        with errors_in_options(model):
            model.fit(data.rows, resume=None if resume is None else checkpoints)
    seconds, parameters = perf_counter() - started, model.get_params(deep=False)
    return seconds, list(dict.fromkeys(in_options(str(warning.message), parameters) for warning in caught))


def write_run_report(
    path: Path, model: PreparedModel, data: UserData, paths: Sequence[Path], settings: dict[str, Any]
) -> None:
    """Write the report of a run."""
    from multicause.app.report import write_report
    from multicause.app.report.media import axes_of, media_of

    write_report(
        model.estimator,
        data.rows,
        path,
        image_shape=data.image_shape,
        kind=data.kind,
        feature_names=data.names,
        title=f"{settings['estimator']}: {describe_paths([Path(path.name) for path in paths])}",
        warnings=settings["warnings"],
        component_curve=settings.get("component_curve"),
        reasons=settings.get("reasons", ()),
        media=media_of(model, data.kind, data.files, data.reading),
        axes=axes_of(data.kind, data.reading),
        preparation=model.preparation,
    )


def print_summary(
    output: Output, out: Path, model: Any, settings: dict[str, Any], notes: Sequence[str], with_report: bool
) -> None:
    """Print a summary of the fit."""
    bound = settings["lower_bound"]
    lines = [
        ["outcome", settings["outcome"]],
        ["iterations", str(settings["n_iter"])],
        [settings["lower_bound_is"], "not known" if bound is None else f"{bound:.4f}"],
        *([name, f"{settings[key]:.3f}"] for name, key in QUALITY.items() if settings[key] is not None),
        ["seconds", f"{settings['seconds']:.1f}"],
    ]
    output.table(f"{settings['estimator']}, {len(model.components_)} components", ["", ""], lines)
    for note in notes:
        output.say(f"Warning: {note}", style="yellow")
    output.say(f"Model: {out / MODEL}")
    if with_report:
        output.say(f"Report: {out / REPORT}")
    if is_stopped(out):
        output.say(f"Stopped by Ctrl-C. Resume with: multicause fit --resume {out}")
