"""Options that several commands share, and how their texts are read."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

Json = Annotated[bool, typer.Option("--json", help="Print the result as one JSON object.")]
Verbose = Annotated[bool, typer.Option("--verbose", help="Show the traceback of an error.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite existing output.")]
Seed = Annotated[int, typer.Option(help="Random seed.", min=0, max=2**32 - 1)]
Device = Annotated[str, typer.Option(help="Where to compute: auto, cpu or gpu.")]
Memory = Annotated[str, typer.Option(help="Most memory of temporary arrays, such as 512MiB.")]
RunFolder = Annotated[Path, typer.Argument(help="Folder that 'multicause fit' wrote.", show_default=False)]
DataPaths = Annotated[
    list[Path],
    typer.Argument(help="Files or folders, of the kind that the model has learned from.", show_default=False),
]
Array = Annotated[str | None, typer.Option(help="Which array of a npz file.")]
Channel = Annotated[int | None, typer.Option(help="Which channel of a sound, counted from 0.", min=0)]
# The format of a text file; what is not given is detected.
TEXT = "Text files"
Separator = Annotated[
    str | None,
    typer.Option("--sep", "--separator", help="What separates columns, or 'tab' or 'space'.", rich_help_panel=TEXT),
]
Header = Annotated[
    bool | None,
    typer.Option("--header/--no-header", help="Whether the first line has names of columns.", rich_help_panel=TEXT),
]
Decimal = Annotated[str | None, typer.Option(help="Decimal mark: a point or a comma.", rich_help_panel=TEXT)]
Thousands = Annotated[str | None, typer.Option(help="What separates thousands.", rich_help_panel=TEXT)]
Encoding = Annotated[str | None, typer.Option(help="Encoding, such as utf-8 or latin-1.", rich_help_panel=TEXT)]


def numbers_from(text: str, name: str) -> list[int]:
    """Whole numbers from text such as "5,10,20"."""
    words = text.split(",")
    if not all(re.fullmatch(r"\s*[1-9]\d*\s*", word) for word in words) or len({*map(int, words)}) < len(words):
        raise ValueError(f"{name} must be a whole number of at least 1, or several such as 5,10,20; got {text!r}.")
    return sorted(map(int, words))


def shape_from(text: str | None, name: str) -> tuple[int, int] | None:
    """Height and width from text such as "10x10"."""
    if text is None:
        return None
    match = re.fullmatch(r"\s*(\d+)\s*[x×,]\s*(\d+)\s*", text)
    if match is None or int(match[1]) < 1 or int(match[2]) < 1:
        raise ValueError(f"{name} must be a height and a width such as 10x10; got {text!r}.")
    return int(match[1]), int(match[2])
