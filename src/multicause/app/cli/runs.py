"""Folder of a run: model, history, settings and versions, written atomically."""

from __future__ import annotations

import csv
import json
import platform
from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from multicause.app.cli.file_names import HISTORY, MODEL, PREPARATION, SETTINGS, VERSIONS, describe_paths
from multicause.app.cli.message_translation import reading_errors_in_options, reading_in_options
from multicause.app.preparation import PreparedModel, RowPreparation
from multicause.datasets.reading import Reading, UserData, read_data
from multicause.metrics.reconstruction import reconstruction_quality

FORMAT = 2
PACKAGES = ("multicause", "numpy", "scipy", "scikit-learn", "jax", "jaxlib")
# Columns of the history, and the attributes of a fitted model that hold them; families of models differ.
CURVES = {
    "bound": "lower_bounds_",
    "temperature": "temperatures_",
    "rows_kept": "rows_kept_",
    "contrast": "contrasts_",
    "acceptance": "acceptance_rates_",
}


class Run(NamedTuple):
    """Fitted model with the settings of its run."""

    folder: Path
    model: Any
    settings: dict[str, Any]

    @property
    def reading(self) -> Reading:
        """Return the settings by which the data of the fit were read."""
        return Reading.from_settings(self.settings["reading"])

    @property
    def data(self) -> dict[str, Any]:
        """Return the description of the data: paths, kind, number of rows and so on."""
        return self.settings["data"]

    @property
    def paths(self) -> list[Path]:
        """Return the files and folders that the model was fitted to."""
        return [Path(path) for path in self.data["paths"]]

    @property
    def image_shape(self) -> tuple[int, int] | None:
        """Return the height and width of a row, or None if it is not an image."""
        shape = self.data["image_shape"]
        return None if shape is None else (shape[0], shape[1])

    @property
    def memory_budget(self) -> str | int:
        """Return the memory budget with which the run was fitted."""
        return getattr(self.model.engine, "memory_budget", "2GiB")

    def read(self, paths: Sequence[Path], *, memory_budget: str | int | None = None, **changes: Any) -> UserData:
        """Read data for this model like those of its fit; by default all of them are loaded."""
        names = self.data["names"]
        given = {key: value for key, value in changes.items() if value is not None}
        columns = None if names is None else tuple(names)
        if given.get("separator", self.reading.separator) != self.reading.separator:
            # A file of another format, whose decimal marks are detected, too.
            given = {"decimal": None, "thousands": None, **given}
        reading = replace(self.reading, drop=(), index="none", columns=columns, **given)
        with reading_errors_in_options():
            data = read_data(paths, reading, memory_budget=memory_budget)
        data = data._replace(remarks=tuple(map(reading_in_options, data.remarks)))
        if data.rows.shape[1] != self.model.n_features_in_:
            raise ValueError(
                f"{describe_paths(paths)} gives rows of {data.rows.shape[1]} values, but the model was fitted to "
                f"rows of {self.model.n_features_in_} ({self.data['kind']} of {describe_paths(self.paths)})."
            )
        return data


def open_run(folder: Path, device: str) -> Run:
    """Open the run in a folder, to be used on a device."""
    from multicause import load
    from multicause.runtime.devices import use_device

    use_device(device)
    if not folder.exists():
        raise FileNotFoundError(
            f"There is no {str(folder)!r}. 'multicause fit DATA --out {folder}' creates such a folder."
        )
    missing = [name for name in (MODEL, SETTINGS) if not (folder / name).is_file()]
    if missing:
        raise ValueError(f"{str(folder)!r} is not a folder written by 'multicause fit': it has no {missing[0]}.")
    try:
        settings = json.loads((folder / SETTINGS).read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{str(folder / SETTINGS)!r} is damaged: {error}.") from error
    if not isinstance(settings, dict) or settings.get("format") != FORMAT:
        raise ValueError(f"{str(folder / SETTINGS)!r} was not written by this version of multicause.")
    if not _is_complete(settings):
        raise ValueError(f"{str(folder / SETTINGS)!r} is damaged: parts of it are missing. Restore it, or fit again.")
    steps = settings.get("preparation", {})
    preparation = RowPreparation.load(folder / PREPARATION, center=bool(steps.get("center")))
    if preparation.shift is None and (steps.get("standardize") or steps.get("whiten")):
        raise ValueError(f"{str(folder)!r} has no {PREPARATION}, without which its model cannot be used; fit again.")
    return Run(folder, PreparedModel(load(folder / MODEL), preparation), settings)


def _is_complete(settings: dict[str, Any]) -> bool:
    """Return whether settings have all entries that commands read."""
    data, reading = settings.get("data"), settings.get("reading")
    if not isinstance(data, dict) or not isinstance(reading, dict) or not {"estimator", "warnings"} <= settings.keys():
        return False
    shape = data.get("image_shape")
    is_shape = isinstance(shape, list) and [type(n) for n in shape] == [int, int]
    has_paths = isinstance(data.get("paths"), list) and bool(data["paths"])
    return {"kind", "image_shape", "names"} <= data.keys() and has_paths and (shape is None or is_shape)


def describe_run(
    paths: Sequence[Path],
    data: UserData,
    shown: UserData,
    name: str,
    model: Any,
    seconds: float,
    notes: Sequence[str],
) -> dict[str, Any]:
    """Return the settings of a run as plain values; ``shown`` has the rows that are reconstructed."""
    quality = reconstruction_quality(model, shown.rows) if hasattr(model, "reconstruct") else None
    return {
        "format": FORMAT,
        "model": name,
        "estimator": type(model.estimator).__name__,
        "parameters": {key: plain(value) for key, value in model.get_params(deep=False).items()},
        "data": {
            "paths": [str(path.resolve()) for path in paths],
            "kind": data.kind,
            "n_rows": int(data.rows.shape[0]),
            "n_features": int(data.rows.shape[1]),
            "image_shape": data.image_shape,
            "names": data.names,
            "summary": data.summary,
        },
        "reading": data.reading.settings(),
        "outcome": model.outcome_,
        "n_iter": int(model.n_iter_),
        "lower_bound": float(model.lower_bound_) if np.isfinite(model.lower_bound_) else None,
        "lower_bound_is": f"mean {model.value_labels().bound}",
        "r2": None if quality is None else _finite(quality.r2),
        "r2_without_row_means": None if quality is None else _finite(quality.r2_without_row_means),
        "seconds": seconds,
        "warnings": list(notes),
    }


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None


def write_run(folder: Path, model: Any, settings: dict[str, Any]) -> None:
    """Write all files of a run, except its report, into a folder."""
    model.estimator.save(folder / MODEL)
    model.preparation.save(folder / PREPARATION)
    write_history(folder / HISTORY, model)
    text = {SETTINGS: settings, VERSIONS: versions()}
    for name, value in text.items():
        (folder / name).write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")


def write_history(path: Path, model: Any) -> None:
    """Write one line for each iteration, with one column for each curve of the model."""
    by_name = {name: getattr(model, attribute, None) for name, attribute in CURVES.items()}
    curves = {name: np.asarray(values) for name, values in by_name.items() if values is not None}
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["iteration", *curves])
        for number, line in enumerate(zip(*curves.values(), strict=True)):
            writer.writerow([number, *(repr(float(value)) for value in line)])


def versions() -> dict[str, str]:
    """Return the versions of the packages that made a run."""
    import jax

    installed = {"python": platform.python_version(), "platform": platform.platform(), "device": jax.default_backend()}
    for package in PACKAGES:
        try:
            installed[package] = version(package)
        except PackageNotFoundError:
            installed[package] = "not installed"
    return installed


def plain(value: Any) -> Any:
    """Convert a setting to a JSON value; a part becomes its text."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    return repr(value)
