"""Page that compares two or more runs: their numbers side by side, and components that match."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment

from multicause.persistence.container import write_whole
from multicause.runtime.optional import need
from multicause.version import __version__

# Pairs of components that are shown; points of the drawing of a component that is no image.
MOST_PAIRS, POINTS = 100, 200
# Colours of the smallest value, of zero and of the largest value of components with both signs.
NEGATIVE, MIDDLE, POSITIVE = (33, 102, 172), (247, 247, 247), (178, 24, 43)


class ComparedRun(NamedTuple):
    """Components and facts of one run, as shown on the page."""

    name: str
    components: np.ndarray  # (H, D)
    image_shape: tuple[int, int] | None
    kind: str
    facts: dict[str, str]


class Match(NamedTuple):
    """Pairs of components of two runs, most similar first."""

    first: np.ndarray
    second: np.ndarray
    similarity: np.ndarray  # absolute cosine


def matched_components(first: np.ndarray, second: np.ndarray) -> Match:
    """Assign components to each other, one to one, with the largest sum of absolute cosines."""
    lengths = [
        np.maximum(np.linalg.norm(each, axis=1, keepdims=True), np.finfo(float).tiny) for each in (first, second)
    ]
    cosines = np.abs((first / lengths[0]) @ (second / lengths[1]).T)
    rows, columns = linear_sum_assignment(-cosines)
    order = np.argsort(-cosines[rows, columns], kind="stable")
    return Match(rows[order], columns[order], cosines[rows, columns][order])


def _directions(components: np.ndarray) -> np.ndarray:
    return components / np.maximum(np.linalg.norm(components, axis=1, keepdims=True), np.finfo(float).tiny)


def write_runs_comparison(path: Path, runs: Sequence[ComparedRun], *, same_data: bool) -> list[float | None]:
    """Write the page; return the mean similarity of each later run's components to those of the first.

    It is None for a run whose rows have another number of values. ``same_data`` says whether the numbers of all runs
    are those of the same data, so that R² can be compared.
    """
    names = list(dict.fromkeys(name for run in runs for name in run.facts))
    table = [(name, [run.facts.get(name, "–") for run in runs]) for name in names]
    pairs, means = [], []
    for run in runs[1:]:
        match = None
        if run.components.shape[1] == runs[0].components.shape[1]:
            match = matched_components(runs[0].components.astype(float), run.components.astype(float))
        means.append(None if match is None else float(match.similarity.mean()))
        pairs.append((run.name, means[-1], [] if match is None else _drawn(runs[0], run, match)))
    page = need("jinja2", "reports", "app").Environment(autoescape=True)
    here = files("multicause.app.report")
    template, style = (here.joinpath(name).read_text(encoding="utf-8") for name in ("runs.html.jinja", "report.css"))
    text = page.from_string(template).render(
        names=[run.name for run in runs],
        table=table,
        pairs=pairs,
        style=style,
        version=__version__,
        most=MOST_PAIRS,
        same_data=same_data,
    )
    write_whole(path, text.encode("utf-8"))
    return means


def _drawn(first: ComparedRun, second: ComparedRun, match: Match) -> list[dict[str, Any]]:
    found = []
    for a, b, similarity in list(zip(*match, strict=True))[:MOST_PAIRS]:
        one, other = first.components[a], second.components[b]
        sign = -1 if one @ other < 0 and (one < 0).any() else 1
        found.append(
            {
                "first": int(a),
                "second": int(b),
                "similarity": f"{similarity:.2f}",
                "pictures": [picture_of(one, first), picture_of(sign * other, second)],
                "flipped": sign < 0,
            }
        )
    return found


def picture_of(values: np.ndarray, run: ComparedRun) -> str:
    """Return a component as a data URL: a picture for images, else a curve."""
    if run.image_shape is None:
        return _curve(values)
    from PIL import Image

    image = values.reshape(run.image_shape).astype(float)
    if run.kind == "spectrogram":
        image = image[::-1]
    most = np.abs(image).max() or 1.0
    if image.min() < -0.01 * most:
        share = (image / most)[..., None]
        ends = np.where(share < 0, np.array(NEGATIVE), np.array(POSITIVE))
        pixels = np.array(MIDDLE) + np.abs(share) * (ends - np.array(MIDDLE))
    else:
        pixels = 255 * np.clip(image / most, 0, 1)
    buffer = io.BytesIO()
    Image.fromarray(np.rint(pixels).astype(np.uint8)).save(buffer, format="png")
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")


def _curve(values: np.ndarray) -> str:
    places = np.unique(np.linspace(0, len(values) - 1, min(POINTS, len(values))).astype(int))
    low, high = min(0.0, float(values.min())), max(0.0, float(values.max()))
    span = high - low or 1.0
    points = " ".join(
        f"{100 * n / max(1, len(places) - 1):.1f},{48 - 46 * (values[d] - low) / span:.1f}"
        for n, d in enumerate(places)
    )
    drawing = (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 100 50">'
        f'<polyline points="{points}" fill="none" stroke="#3b78cf" stroke-width="1.5"/></svg>'
    )
    return "data:image/svg+xml;base64," + base64.b64encode(drawing.encode("utf-8")).decode("ascii")
