"""Options shared by several commands, and parsing of their values."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields, is_dataclass
from functools import wraps
from inspect import Parameter, signature
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

Json = Annotated[bool, typer.Option("--json", help="Print the result as one JSON object.")]
Verbose = Annotated[bool, typer.Option("--verbose", help="Show the traceback of an error.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite existing output.")]
Seed = Annotated[int, typer.Option(help="Random seed.", min=0, max=2**32 - 1)]
Device = Annotated[str, typer.Option(help="Device: auto, cpu or gpu.")]
MemoryBudget = Annotated[str, typer.Option(help="Memory budget of temporary arrays, such as 512MiB.")]
RunFolder = Annotated[Path, typer.Argument(help="Folder that 'multicause fit' wrote.", show_default=False)]
DataPaths = Annotated[
    list[Path],
    typer.Argument(help="Files or folders, of the kind that the model was fitted to.", show_default=False),
]
TEXT = "Text files"


@dataclass(frozen=True)
class FileOptions:
    """Options of all commands that read files. What is not given is detected, or read as for the fit.

    The names are those of :class:`multicause.datasets.reading.Reading`.
    """

    array: Annotated[str | None, typer.Option(help="Name of an array in an npz file.")] = None
    channel: Annotated[int | None, typer.Option(help="Channel of a sound, counted from 0.", min=0)] = None
    separator: Annotated[
        str | None,
        typer.Option("--sep", "--separator", help="Column separator, or 'tab' or 'space'.", rich_help_panel=TEXT),
    ] = None
    header: Annotated[
        bool | None,
        typer.Option("--header/--no-header", help="Whether the first line has column names.", rich_help_panel=TEXT),
    ] = None
    decimal: Annotated[str | None, typer.Option(help="Decimal mark: a point or a comma.", rich_help_panel=TEXT)] = None
    thousands: Annotated[str | None, typer.Option(help="Thousands separator.", rich_help_panel=TEXT)] = None
    encoding: Annotated[str | None, typer.Option(help="Encoding, such as utf-8 or latin-1.", rich_help_panel=TEXT)] = (
        None
    )

    def settings(self) -> dict[str, Any]:
        """Return the options by name."""
        return asdict(self)


def with_option_groups(function: Callable[..., None]) -> Callable[..., None]:
    """Return a command in which each parameter that is a dataclass of options is replaced by these options."""
    own_signature = signature(function, eval_str=True)
    groups: dict[str, Any] = {
        name: p.annotation for name, p in own_signature.parameters.items() if is_dataclass(p.annotation)
    }

    @wraps(function)
    def with_groups(**values: Any) -> None:
        for name, group in groups.items():
            values[name] = group(**{field.name: values.pop(field.name) for field in fields(group)})
        function(**values)

    options: list[Parameter] = []
    for name, parameter in own_signature.parameters.items():
        if name in groups:
            hints = get_type_hints(groups[name], include_extras=True)
            options += [
                Parameter(field.name, Parameter.KEYWORD_ONLY, default=field.default, annotation=hints[field.name])
                for field in fields(groups[name])
            ]
        else:
            options.append(parameter.replace(kind=Parameter.KEYWORD_ONLY))
    with_groups.__signature__ = own_signature.replace(parameters=options)  # type: ignore[attr-defined]
    with_groups.__annotations__ = {option.name: option.annotation for option in options}
    return with_groups


def whole_numbers(text: str, name: str) -> list[int]:
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
