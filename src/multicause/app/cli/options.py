"""Options shared by several commands, and parsing of their values."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

Json = Annotated[bool, typer.Option("--json", help="Print the result as one JSON object.")]
Verbose = Annotated[bool, typer.Option("--verbose", help="Show the traceback of an error.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite existing output.")]
Seed = Annotated[int, typer.Option(help="Random seed.", min=0, max=2**32 - 1)]
Device = Annotated[str, typer.Option(help="Device: auto, cpu or gpu.")]
Memory = Annotated[str, typer.Option(help="Memory budget of temporary arrays, such as 512MiB.")]
RunFolder = Annotated[Path, typer.Argument(help="Folder that 'multicause fit' wrote.", show_default=False)]
DataPaths = Annotated[
    list[Path],
    typer.Argument(help="Files or folders, of the kind that the model was fitted to.", show_default=False),
]
Array = Annotated[str | None, typer.Option(help="Name of an array in an npz file.")]
Channel = Annotated[int | None, typer.Option(help="Channel of a sound, counted from 0.", min=0)]
# Format options of text files; those that are not given are detected.
TEXT = "Text files"
Separator = Annotated[
    str | None,
    typer.Option("--sep", "--separator", help="Column separator, or 'tab' or 'space'.", rich_help_panel=TEXT),
]
Header = Annotated[
    bool | None,
    typer.Option("--header/--no-header", help="Whether the first line has column names.", rich_help_panel=TEXT),
]
Decimal = Annotated[str | None, typer.Option(help="Decimal mark: a point or a comma.", rich_help_panel=TEXT)]
Thousands = Annotated[str | None, typer.Option(help="Thousands separator.", rich_help_panel=TEXT)]
Encoding = Annotated[str | None, typer.Option(help="Encoding, such as utf-8 or latin-1.", rich_help_panel=TEXT)]


def numbers_from(text: str, name: str) -> list[int]:
    """Parse whole numbers such as "5,10,20"."""
    words = text.split(",")
    if not all(re.fullmatch(r"\s*[1-9]\d*\s*", word) for word in words) or len({*map(int, words)}) < len(words):
        raise ValueError(f"{name} must be a whole number of at least 1, or several such as 5,10,20; got {text!r}.")
    return sorted(map(int, words))


def shape_from(text: str | None, name: str) -> tuple[int, int] | None:
    """Parse a height and a width such as "10x10"."""
    if text is None:
        return None
    match = re.fullmatch(r"\s*(\d+)\s*[x×,]\s*(\d+)\s*", text)
    if match is None or int(match[1]) < 1 or int(match[2]) < 1:
        raise ValueError(f"{name} must be a height and a width such as 10x10; got {text!r}.")
    return int(match[1]), int(match[2])
