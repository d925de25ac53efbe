"""One fit of the command line: data, model, progress, and a folder in the end."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

from multicause.cli.models import make_model
from multicause.cli.output import Output
from multicause.cli.runs import MODEL, REPORT, describe_run, write_run
from multicause.datasets.reading import Reading, UserData, read_data
from multicause.writing import check_place, new_folder


def fit_run(
    output: Output,
    path: Path,
    out: Path,
    *,
    name: str,
    parameters: dict[str, Any],
    extra: Sequence[str],
    reading: Reading,
    device: str,
    memory: str,
    force: bool,
    with_report: bool,
) -> dict[str, Any]:
    """Learn from a file or folder and write the folder of the run; returns its settings."""
    check_place(out, force)
    from multicause.arrays import bytes_from, use_device
    from multicause.engines import Local

    bytes_from(memory)
    model = make_model(name, {**parameters, "engine": Local(memory_budget=memory)}, extra)
    use_device(device)
    data = read_data(path, reading)
    output.say(f"{path}: {data.rows.shape[0]} rows of {data.rows.shape[1]} values ({data.kind}).")
    for remark in data.remarks:
        output.say(remark, style="yellow")
    seconds, notes = learn(output, model, data)
    settings = describe_run(path, data, name, model, seconds, [*data.remarks, *notes])
    with new_folder(out, force=force) as folder:
        write_run(folder, model, settings)
        if with_report:
            write_run_report(folder / REPORT, model, data, path, settings)
    tell(output, out, model, settings, notes, with_report)
    return settings


def learn(output: Output, model: Any, data: UserData) -> tuple[float, list[str]]:
    """Fit with a progress bar; returns the seconds it took and its warnings."""
    if output.console.is_terminal and not output.as_json:
        from sklearn.callback import ProgressBar

        model.set_callbacks(ProgressBar())
    started = perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(data.rows)
    seconds = perf_counter() - started
    notes = list(dict.fromkeys(str(warning.message) for warning in caught))
    return seconds, notes


def write_run_report(path: Path, model: Any, data: UserData, path_of_data: Path, settings: dict[str, Any]) -> None:
    """The report of a run."""
    from multicause.report import write_report

    write_report(
        model,
        data.rows,
        path,
        image_shape=data.image_shape,
        kind=data.kind,
        feature_names=data.names,
        title=f"{settings['estimator']}: {path_of_data.name}",
        warnings=settings["warnings"],
    )


def tell(
    output: Output, out: Path, model: Any, settings: dict[str, Any], notes: Sequence[str], with_report: bool
) -> None:
    """The end of a fit, for people."""
    bound = settings["lower_bound"]
    lines = [
        ["outcome", settings["outcome"]],
        ["iterations", str(settings["n_iter"])],
        ["mean log evidence", "not known" if bound is None else f"{bound:.4f}"],
        ["seconds", f"{settings['seconds']:.1f}"],
    ]
    output.table(f"{settings['estimator']}, {len(model.components_)} components", ["", ""], lines)
    for note in notes:
        output.say(f"Warning: {note}", style="yellow")
    output.say(f"Model: {out / MODEL}")
    if with_report:
        output.say(f"Report: {out / REPORT}")
