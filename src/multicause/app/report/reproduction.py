"""Page with all tables and figures of the papers' experiments, ours beside the published numbers."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from multicause.app.experiments import PAPERS
from multicause.persistence.container import write_whole
from multicause.runtime.optional import need
from multicause.version import __version__

# A line of a table that names the file of a figure.
PICTURE = "picture"


class Section(NamedTuple):
    """Result of one experiment."""

    name: str
    subject: str
    lines: Sequence[Any]
    seconds: float
    problem: str  # why there is no result, or empty


def write_reproduction(path: Path, sections: Sequence[Section], *, quick: bool, n_experiments: int) -> None:
    """Write the page, with the figures in it."""
    papers = []
    for start, title in PAPERS.items():
        own = [_described(section) for section in sections if section.name.startswith(start)]
        if own:
            papers.append((title, own))
    here = files("multicause.app.report")
    names = ("reproduction.html.jinja", "report.css")
    template, style = (here.joinpath(name).read_text(encoding="utf-8") for name in names)
    page = need("jinja2", "reports", "app").Environment(autoescape=True).from_string(template)
    counts = (len(sections), n_experiments)
    text = page.render(papers=papers, style=style, quick=quick, counts=counts, version=__version__)
    write_whole(path, text.encode("utf-8"))


def _described(section: Section) -> dict[str, Any]:
    lines = [line for line in section.lines if line.what != PICTURE]
    drawn = [Path(line.found) for line in section.lines if line.what == PICTURE]
    pictures = [
        (file.stem, "data:image/png;base64," + base64.b64encode(file.read_bytes()).decode("ascii"))
        for file in drawn
        if file.is_file()
    ]
    return {
        "name": section.name,
        "subject": section.subject,
        "lines": lines,
        "pictures": pictures,
        "seconds": f"{section.seconds:.0f} s",
        "problem": section.problem,
    }
