"""HTML page of a report: template, style and script in one file that needs no network."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from importlib.resources import files
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_array

from multicause.app.preparation import PreparedModel, RowPreparation
from multicause.app.report.contents import collect
from multicause.persistence.container import write_whole
from multicause.plotting.validation import check_components, check_image_shape
from multicause.runtime.optional import need
from multicause.version import __version__

KINDS = ("table", "images", "patches", "spectrogram", "waveform")


def write_report(
    model: Any,
    X: ArrayLike,
    path: str | PathLike[str],
    *,
    image_shape: tuple[int, int] | None = None,
    kind: str | None = None,
    feature_names: Sequence[str] | None = None,
    title: str | None = None,
    warnings: Sequence[str] = (),
    component_curve: Any = None,
    reasons: Sequence[str] = (),
    media: dict[str, Any] | None = None,
    axes: str | None = None,
    preparation: RowPreparation | None = None,
) -> Path:
    """Write a report of a fitted model as one HTML file, which needs no network; return its path.

    Parameters
    ----------
    model : fitted estimator of this library
        Fitted model.
    X : array-like of shape (n_samples, n_features)
        Rows to explain, usually those of the fit. All are used; some hundreds are shown.
    path : path-like
        File to write; an existing file is replaced.
    image_shape : (int, int), optional
        Height and width of a row, if it is an image.
    kind : {"table", "images", "patches", "spectrogram", "waveform"}, optional
        How rows are drawn: by default as images if there is an ``image_shape``, else as a bar for each feature. The
        lowest frequency of a spectrogram comes first in a row, and is drawn at the bottom.
    feature_names : sequence of str, optional
        Names of the columns; by default those of a data frame.
    title : str, optional
        Title of the page.
    warnings : sequence of str
        Texts that the page shows at its top, such as warnings of the fit.
    component_curve : ComponentCurve or dict, optional
        Held-out scores of other numbers of components, from :func:`multicause.selection.component_curve`.
    reasons : sequence of str
        Texts that say why this model and preparation of rows were chosen.
    media : dict, optional
        Images or sounds before and after reconstruction, from :func:`multicause.app.report.media.media_of`.
    axes : str, optional
        What the axes of a picture of a component are, with units.
    preparation : RowPreparation, optional
        How rows were prepared before learning; by default not at all.
    """
    check_components(model)
    prepared = PreparedModel(model, preparation or RowPreparation())
    if feature_names is None and hasattr(X, "columns"):
        feature_names = [str(name) for name in X.columns]
    rows = check_array(X, dtype=[np.float64, np.float32], ensure_all_finite="allow-nan")
    n_features = len(model.components_[0])
    if rows.shape[1] != n_features:
        raise ValueError(f"X must have the {n_features} features that the model has learned from; got {rows.shape[1]}.")
    if kind is None:
        kind = "table" if image_shape is None else "images"
    if kind not in KINDS:
        raise ValueError(f"Unknown kind {kind!r}. Known: {', '.join(KINDS)}.")
    check_image_shape(image_shape, n_features, "rows")
    if image_shape is None and kind not in ("table", "waveform"):
        raise ValueError(f"kind={kind!r} needs an image_shape.")
    if feature_names is not None and len(feature_names) != n_features:
        raise ValueError(f"feature_names must have {n_features} names; got {len(feature_names)}.")
    contents = collect(
        prepared,
        rows,
        image_shape=image_shape,
        kind=kind,
        feature_names=feature_names,
        title=type(model).__name__ if title is None else title,
        warnings=warnings,
        component_curve=component_curve,
        reasons=reasons,
        media=media,
        axes=axes,
    )
    path = Path(path)
    write_whole(path, render(contents).encode("utf-8"))
    return path


def render(contents: dict[str, Any]) -> str:
    """Return the HTML of a report. Its script is allowed by its checksum, and nothing may be loaded."""
    environment = need("jinja2", "reports", "app").Environment(autoescape=True)
    here = files("multicause.app.report")
    style, files_script, page_script, template = (
        here.joinpath(name).read_text(encoding="utf-8")
        for name in ("report.css", "downloads.js", "report.js", "report.html.jinja")
    )
    script = files_script + page_script
    checksum = base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")
    page = environment.from_string(template)
    return page.render(contents=contents, style=style, script=script, checksum=checksum, version=__version__)
