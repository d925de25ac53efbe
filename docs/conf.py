"""How the pages are built: ``make docs``. Nothing is fetched, and a warning is an error."""

import re
from typing import Any

from multicause import __version__

project = "multicause"
author = "The multicause developers"
version = release = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["images"]

html_theme = "furo"
html_title = "multicause"
html_copy_source = False
# Sections of a page can be linked to by their titles.
myst_heading_anchors = 3

# Docstrings have numpydoc's sections; types are said there, in words.
napoleon_google_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False
autodoc_member_order = "bysource"
autodoc_typehints = "none"


def setup(app: Any) -> None:
    """Sphinx calls this."""
    app.connect("autodoc-skip-member", leave_out_what_is_inherited_from_scikit_learn)
    # After napoleon, which has turned sections into fields.
    app.connect("autodoc-process-docstring", take_mathematics_literally, priority=900)


def leave_out_what_is_inherited_from_scikit_learn(
    app: Any, what: str, name: str, member: Any, skip: bool, options: Any
) -> bool | None:
    """Its pages describe it."""
    return True if str(getattr(member, "__module__", "")).startswith("sklearn.") else None


def take_mathematics_literally(app: Any, what: str, name: str, member: Any, options: Any, lines: list[str]) -> None:
    """|s| is a number of causes and n_iter_ an attribute, not a reference of reStructuredText."""
    literal_below: int | None = None
    for number, line in enumerate(lines):
        indent = len(line) - len(line.lstrip())
        if literal_below is not None and line.strip() and indent <= literal_below:
            literal_below = None
        if literal_below is None and not line.lstrip().startswith(".. "):
            pieces = re.split(r"(`+.*?`+)", line)
            pieces[::2] = [re.sub(r"\\?(\||(?<=\w)_(?!\w))", r"\\\1", piece) for piece in pieces[::2]]
            lines[number] = "".join(pieces)
        if line.rstrip().endswith("::"):
            literal_below = indent
